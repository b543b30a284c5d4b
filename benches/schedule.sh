#!/usr/bin/env bash
# Owns what scheduling costs: batches of 1,000 tasks, of each mode, from the first event to the last.
#
#   benches/schedule.sh
#
# Prints medians and spread of processor time of an optimized build, without git or agents in it: the test that it runs
# plays them in memory, and fails when a median is over 50 ms.
set -euo pipefail
cd "$(dirname "$0")/.."

# Optimizing over all crates takes minutes and changes nothing here.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
PROQ_BENCH_REPORT=$(mktemp "${BENCH_DIR:-${TMPDIR:-/tmp}}/proq-schedule.XXXXXX")
export PROQ_BENCH_REPORT
trap 'cat "$PROQ_BENCH_REPORT"; rm -f "$PROQ_BENCH_REPORT"' EXIT
cargo test --release --locked --quiet -p proq-plan --lib a_thousand_tasks_cost_little >&2
