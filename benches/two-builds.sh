#!/usr/bin/env bash
# Owns the comparison of two builds of git-proq: the same work by both, in one run, as a ratio and a difference.
#
#   benches/two-builds.sh BEFORE AFTER [REPO] [RUNS]
#
# BEFORE and AFTER are two git-proq programs, for example from the commit before the journal came and from this one: that is
# how what the journal costs was measured. REPO is cloned, never changed; without it a repository of 3,000 files is made.
# RUNS is 15 by default. BENCH_DIR chooses the disk, which decides what syncing costs. Needs hyperfine.
set -euo pipefail

[ $# -ge 2 ] || { sed -n 's/^# \{0,1\}//p' "$0" | head -n 8 >&2; exit 2; }
before=$1 after=$2 runs=${4:-15} bench=proq-builds
. "$(dirname "$0")/setup.sh"
make_repo "${3:-}"
file=$(git -C "$repo" ls-files | sed -n 2p)
sides before after
clean=$(script clean "cd '$repo'
git checkout -q '$base'; git reset -q --hard '$start'
git worktree remove --force .proq-worktrees/x >/dev/null 2>&1 || true
git branch -qD proq/x >/dev/null 2>&1 || true
rm -rf .git/proq
git for-each-ref --format='delete %(refname)' refs/proq/ | git update-ref --stdin")
lane=$(script lane "'$clean'
cd '$repo'; '$before' spawn -q --empty -n x >/dev/null; echo lane >>'.proq-worktrees/x/$file'
git -C .proq-worktrees/x commit -qam lane
echo base >base.txt; git add base.txt; git commit -qm base; git status >/dev/null")
for side in before after; do
  script "land-$side" "'${!side}' -C '$repo' merge -q --no-cleanup x >/dev/null" >/dev/null
  script "all-$side" "'${!side}' -C '$repo' merge -q x >/dev/null" >/dev/null
  script "show-$side" "cd '$repo'; '${!side}' preview -q x >/dev/null; '${!side}' preview -q --back >/dev/null" >/dev/null
  script "spawn-$side" "'${!side}' -C '$repo' spawn -q --empty -n x >/dev/null" >/dev/null
done
dirty=$(script dirty "'$lane'
cd '$repo'; echo mine >>'$(git -C "$repo" ls-files | sed -n 3p)'; echo new >new.txt")
pair 'land one lane' "$lane" "$work/land-before" "$lane" "$work/land-after"
pair 'land and remove it' "$lane" "$work/all-before" "$lane" "$work/all-after"
pair 'preview, dirty, and back' "$dirty" "$work/show-before" "$dirty" "$work/show-after"
pair 'spawn --empty' "$clean" "$work/spawn-before" "$clean" "$work/spawn-after"
