#!/usr/bin/env bash
# Owns the count of landings that are refused because git tidies the repository up at the same time: one loop of `git gc` and one of
# `git repack -d` run for as long as the landings do. What fails of the commits that are landed is counted by itself: those are
# git's own, as an agent makes them.
#
#   benches/beside-gc.sh [LANDINGS]
#
# LANDINGS is 200 by default, one at a time. What is missing afterwards is
# said by git fsck. BENCH_DIR chooses the disk. PROQ names the program; by default the release build of
# this checkout. It ends with 1 if a landing was refused, or if main has not all of them.
set -euo pipefail

landings=${1:-200}
proq=${PROQ:-$(cd "$(dirname "$0")/.." && pwd)/target/release/git-proq}
[ -x "$proq" ] || { echo "build first: cargo build --release --locked" >&2; exit 1; }
work=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/proq-gc.XXXXXX")
loops=()
stop() { [ ${#loops[@]} = 0 ] || kill "${loops[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"; }
trap stop EXIT
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config GIT_CONFIG_NOSYSTEM=1
repo=$work/repo
mkdir -p "$HOME"
git config --global user.name Bench
git config --global user.email bench@example.org
git config --global init.defaultBranch main
git config --global gc.auto 0
git init -q "$repo"
cd "$repo"
for n in $(seq 50); do echo "line of $n" >"file$n.txt"; done
git add -A
git commit -qm start

# Each loop ends with the first round after its file is gone.
touch "$work/on"
(rounds=0; while [ -e "$work/on" ]; do git gc -q 2>/dev/null || true; rounds=$((rounds + 1)); echo $rounds >"$work/gc"; done) &
loops+=($!)
(rounds=0; while [ -e "$work/on" ]; do git repack -qd 2>/dev/null || true; rounds=$((rounds + 1)); echo $rounds >"$work/repack"; done) &
loops+=($!)

# tried TIMES WHAT: gives up where the same fails again and again.
tried() { [ "$1" -lt 10 ] || { echo "$2: gave up" >&2; exit 1; }; }
refused=0 commits=0 spawns=0
for n in $(seq "$landings"); do
  tries=0
  until "$proq" spawn -q --empty -n "l$n" >/dev/null 2>"$work/err"; do
    spawns=$((spawns + 1)) tries=$((tries + 1))
    echo "spawn $n: $(head -n 2 "$work/err" | tr '\n' ' ')"
    tried "$tries" "spawn $n"
  done
  lane=.proq-worktrees/l$n
  echo "$n" >"$lane/new$n.txt"
  until git -C "$lane" add -A 2>"$work/err" && git -C "$lane" commit -qm "l$n" 2>"$work/err"; do
    commits=$((commits + 1)) tries=$((tries + 1))
    echo "git's commit $n: $(head -n 1 "$work/err")"
    tried "$tries" "git's commit $n"
  done
  if ! "$proq" merge -q "l$n" >"$work/out" 2>"$work/err"; then
    refused=$((refused + 1))
    echo "landing $n: $(cat "$work/out" "$work/err" | head -n 3 | tr '\n' ' ')"
  fi
done
rm "$work/on"
wait "${loops[@]}" || true
loops=()

on_main=$(git ls-tree --name-only main | grep -c '^new')
git fsck --connectivity-only --no-dangling --no-progress
"$proq" --version
echo "git $(git version | cut -d' ' -f3), $(nproc 2>/dev/null || sysctl -n hw.ncpu) cores: $landings landings beside $(cat "$work/gc") git gc and $(cat "$work/repack") git repack -d"
echo "refused: $refused landings, $spawns spawns; failed: $commits of git's own commits; on main: $on_main"
[ "$refused" = 0 ] && [ "$on_main" = "$landings" ]
