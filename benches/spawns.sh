#!/usr/bin/env bash
# Owns the count of lanes that are not whole where many are made at once while the agents of others commit already.
#
#   benches/spawns.sh [ROUNDS] [LANES]
#
# In each of ROUNDS rounds (100), LANES (60) `git proq spawn` begin at the same time in a new repository; each agent writes and
# commits six times as soon as it runs. A lane is whole when its spawn and its agent ended well, nothing in it is uncommitted or
# missing, and its branch has the six commits. It ends with 1 when any lane is not, when git fsck finds anything, or when anything
# panicked. PROQ names another program than the release build of this checkout; BENCH_DIR another folder.
set -euo pipefail

rounds=${1:-100} lanes=${2:-60}
proq=${PROQ:-$(cd "$(dirname "$0")/.." && pwd)/target/release/git-proq}
[ -x "$proq" ] || { echo "build first: cargo build --release --locked" >&2; exit 2; }
work=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/proq-spawns.XXXXXX")
remove() {
  local try
  # What copies uncommitted changes ends a moment after the last agent.
  for try in $(seq 100); do
    rm -rf "$work" 2>/dev/null && return
    sleep 0.1
  done
}
trap remove EXIT
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config GIT_CONFIG_NOSYSTEM=1
mkdir -p "$HOME"
git config --global user.name Bench
git config --global user.email bench@example.org
git config --global init.defaultBranch main

whole=0 broken=0 panics=0
# look NAME: whether the lane NAME of this repository is whole; says what is not.
look() {
  local lane=.proq-worktrees/$1 said
  said=$(
    cat "$out/$1.failed" 2>/dev/null
    git -C "$lane" status --porcelain 2>&1 | head -n 3
    [ "$(git -C "$lane" ls-files 2>&1 | tr '\n' ' ')" = "a b c own.txt " ] || echo "its index has other files"
    [ "$(git rev-list --count "main..proq/$1" 2>&1)" = 6 ] || echo "its branch has not six commits"
    [ "$(cat "$lane/own.txt" 2>&1)" = 6 ] || echo "its file is another"
  )
  [ -z "$said" ] || { echo "round $round, $1: $said"; return 1; }
}
for round in $(seq "$rounds"); do
  repo=$work/repo$round out=$work/out$round
  git init -q "$repo"
  mkdir "$out"
  cd "$repo"
  for f in a b c; do echo $f >$f; done
  git add -A
  git commit -qm start
  for n in $(seq "$lanes"); do
    ("$proq" spawn -q -n "p$n" --wait -- sh -ec \
      'for k in 1 2 3 4 5 6; do echo $k >own.txt; git add -A; git commit -qm $k; done' >"$out/p$n" 2>&1 ||
      echo "spawn ended with $?: $(head -n 3 "$out/p$n")" >"$out/p$n.failed") &
  done
  wait
  for n in $(seq "$lanes"); do if look "p$n"; then whole=$((whole + 1)); else broken=$((broken + 1)); fi; done
  panics=$((panics + $(cat "$out"/* .git/proq/log/* 2>/dev/null | grep -c 'panicked at' || true)))
  git fsck --no-dangling --no-progress || broken=$((broken + 1))
  cd "$work"
  [ "$broken" != 0 ] || rm -rf "$repo" "$out" 2>/dev/null || true
done
"$proq" --version
echo "git $(git version | cut -d' ' -f3), $(nproc 2>/dev/null || sysctl -n hw.ncpu) cores: $rounds rounds of $lanes: $whole whole lanes, $broken not, $panics panics"
[ "$broken" = 0 ] && [ "$panics" = 0 ]
