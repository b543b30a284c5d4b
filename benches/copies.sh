#!/usr/bin/env bash
# Owns the measuring of what it costs to copy uncommitted changes while agents work: the processor time of the one process that
# copies, with all the programs that it starts, as a part of one core.
#
#   benches/copies.sh [AGENTS] [SECONDS] [FILES]
#
# AGENTS scripted agents (8) work in a repository of FILES files (3,000): each writes five times a second and commits every other
# second. Meanwhile somebody edits the main checkout each second, and one of four idle lanes. It looks for SECONDS seconds (300),
# the first copies of all worktrees included, and ends with 1 when that took 2 % of a core or more, or when nothing
# was copied. PROQ names another program than the release build of this checkout; BENCH_DIR another folder. Linux only.
set -euo pipefail

agents=${1:-8} seconds=${2:-300} files=${3:-3000}
work=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/proq-copies.XXXXXX")
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config GIT_CONFIG_NOSYSTEM=1
built=${PROQ:-$(cd "$(dirname "$0")/.." && pwd)/target/release/git-proq}
[ -x "$built" ] || { echo "build first: cargo build --release --locked" >&2; exit 2; }
# A copy of its own, by whose path the process is found.
proq=$work/git-proq
cp "$built" "$proq"
remove() {
  local try
  touch "$work/stop"
  "$proq" -C "$work/repo" stop --all >/dev/null 2>&1 || true
  # What copies ends a moment after the last agent.
  for try in $(seq 100); do
    rm -rf "$work" 2>/dev/null && return
    sleep 0.1
  done
}
trap remove EXIT
mkdir -p "$HOME" "$work/repo"
cd "$work/repo"
git config --global user.name Bench
git config --global user.email bench@example.org
git config --global gc.auto 0
git init -q -b main
for d in $(seq $((files / 50))); do
  mkdir "dir$d"
  for f in $(seq 50); do seq -f "line %g of $d/$f" 120 >"dir$d/file$f.txt"; done
done
git add -A
git commit -qm start
for n in 1 2 3 4; do
  "$proq" spawn -q --empty -n "idle$n" >/dev/null
  echo mine >>".proq-worktrees/idle$n/dir$n/file1.txt"
done
echo mine >>dir1/file1.txt

cat >"$work/agent" <<EOF
#!/bin/sh
i=0
until [ -e "$work/stop" ]; do
  i=\$((i + 1))
  echo "\$i" >>"dir\$((i % 5 + 1))/file\$((i % 50 + 1)).txt"
  [ \$((i % 10)) != 0 ] || git commit -qam "\$i"
  sleep 0.2
done
EOF
chmod +x "$work/agent"
begin=$(date +%s%N)
for n in $(seq "$agents"); do "$proq" spawn -q -n "l$n" -- "$work/agent" >/dev/null 2>&1; done
pid=$(pgrep -f "^$proq _snapshots")
for s in $(seq "$seconds"); do
  echo "$s" >>dir1/file2.txt
  echo "$s" >>".proq-worktrees/idle$((s % 4 + 1))/dir2/file3.txt"
  sleep 1
done
# Ticks of it and of the programs that it waited for; its name holds no space.
ticks=$(awk '{ print $14 + $15 + $16 + $17 }' "/proc/$pid/stat")
elapsed=$((($(date +%s%N) - begin) / 1000000))
copies=$("$proq" snap list --json | grep -c '"automatic"' || true)
"$proq" --version
awk -v ticks="$ticks" -v hz="$(getconf CLK_TCK)" -v ms="$elapsed" -v agents="$agents" -v files="$files" -v copies="$copies" 'BEGIN {
  part = ticks / hz / ms * 100000
  printf "%d agents, %d files, %.0f s: %.2f s of a core, %.2f %%; %d copies kept\n", agents, files, ms / 1000, ticks / hz, part, copies
  exit part >= 2 || copies == 0
}'
