#!/usr/bin/env bash
# Owns the comparison with plain git: the same work, both ways, in one run, as ratios.
#
#   benches/side-by-side.sh [REPO] [RUNS]
#
# REPO is cloned, never changed; without it a repository of 3,000 files is made. RUNS is 15 by default. Everything
# happens in a throw-away folder below BENCH_DIR (a memory-backed one takes the disk out of the figures: /dev/shm).
# PROQ names the program; by default the release build of this checkout. Needs hyperfine.
set -euo pipefail

runs=${2:-15}
here=$(cd "$(dirname "$0")/.." && pwd)
proq=${PROQ:-$here/target/release/git-proq}
command -v hyperfine >/dev/null || { echo "hyperfine is needed: apt-get install hyperfine, or cargo install hyperfine" >&2; exit 1; }
[ -x "$proq" ] || { echo "build first: cargo build --release --locked" >&2; exit 1; }

work=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/proq-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config GIT_CONFIG_NOSYSTEM=1
mkdir -p "$HOME"
git config --global user.name Bench
git config --global user.email bench@example.org
git config --global init.defaultBranch main
git config --global gc.auto 0

repo=$work/repo
if [ -n "${1:-}" ]; then
  git clone -q --no-hardlinks "$1" "$repo"
else
  git init -q "$repo"
  for d in $(seq 60); do
    mkdir -p "$repo/dir$d"
    for f in $(seq 50); do printf 'line %s of %s\n' "$(seq 120)" "$d/$f" >"$repo/dir$d/file$f.txt"; done
  done
  git -C "$repo" add -A
  git -C "$repo" commit -qm start
fi
base=$(git -C "$repo" symbolic-ref --short HEAD)
start=$(git -C "$repo" rev-parse HEAD)
file=$(git -C "$repo" ls-files | sed -n 2p)

echo "git $(git version | cut -d' ' -f3), $("$proq" --version), $(git -C "$repo" ls-files | wc -l) files, $runs runs, $(nproc 2>/dev/null || sysctl -n hw.ncpu) cores"
printf '%-46s %22s %22s %8s\n' 'work' 'git: median (min-max)' 'own: median (min-max)' 'own/git'

# pair NAME PREPARE-GIT GIT PREPARE-OWN OWN: medians and spread in ms, and the ratio of the medians. Two rounds, the
# second in the other order, so that a machine that slows down or warms up does not favour one side.
pair() {
  local name=$1 csv=$work/pair.csv
  : >"$work/all.csv"
  hyperfine -N -w 1 -r "$runs" --export-csv "$csv" --style none \
    --prepare "$2" -n git "$3" --prepare "$4" -n own "$5" >/dev/null 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
  tail -n +2 "$csv" >>"$work/all.csv"
  hyperfine -N -w 1 -r "$runs" --export-csv "$csv" --style none \
    --prepare "$4" -n own "$5" --prepare "$2" -n git "$3" >/dev/null 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
  tail -n +2 "$csv" >>"$work/all.csv"
  awk -F, -v name="$name" '
    { med[$1] += $4 / 2; if (!($1 in lo) || $7 < lo[$1]) lo[$1] = $7; if ($8 > hi[$1]) hi[$1] = $8 }
    END { printf "%-46s %8.1f (%.1f-%.1f) %8.1f (%.1f-%.1f) %8.2f\n", name,
      med["git"] * 1000, lo["git"] * 1000, hi["git"] * 1000,
      med["own"] * 1000, lo["own"] * 1000, hi["own"] * 1000, med["own"] / med["git"] }' "$work/all.csv"
}
script() { printf '#!/bin/sh\nset -e\n%s\n' "$2" >"$work/$1"; chmod +x "$work/$1"; echo "$work/$1"; }

pair 'start-up: --version' true 'git --version' true "$proq --version"

clean=$(script clean "cd '$repo'
'$proq' discard -q --force x >/dev/null 2>&1 || true
git worktree remove --force '$work/wt' >/dev/null 2>&1 || true
git branch -qD wt >/dev/null 2>&1 || true
rm -rf .git/proq/trash/* .git/proq/history/*
git for-each-ref --format='delete %(refname)' refs/proq/ | git update-ref --stdin")
pair 'spawn --empty / worktree add' \
  "$clean" "git -C $repo worktree add -q -b wt $work/wt" \
  "$clean" "$proq -C $repo spawn -q --empty -n x"
"$clean"

# One lane with one commit, the base one commit ahead, the base checked out.
reset=$(script reset "cd '$repo'
git checkout -q '$base' && git reset -q --hard '$start'
'$clean'
echo base >>'$(git -C "$repo" ls-files | sed -n 3p)'; git commit -qam base; git reset -q --hard '$start'")
git_lane=$(script git-lane "'$reset'
cd '$repo'; git worktree add -q -b wt '$work/wt'; echo lane >>'$work/wt/$file'; git -C '$work/wt' commit -qam lane
echo base >base.txt; git add base.txt; git commit -qm base; git status >/dev/null")
own_lane=$(script own-lane "'$reset'
cd '$repo'; '$proq' spawn -q --empty -n x >/dev/null; echo lane >>'.proq-worktrees/x/$file'; git -C .proq-worktrees/x commit -qam lane
echo base >base.txt; git add base.txt; git commit -qm base; git status >/dev/null")
git_land=$(script git-land "cd '$repo'; git merge -q --no-ff --no-edit wt")
git_land_all=$(script git-land-all "cd '$repo'; git merge -q --no-ff --no-edit wt; git worktree remove '$work/wt'; git branch -q -d wt")
own_land=$(script own-land "'$proq' -C '$repo' merge -q --no-cleanup x >/dev/null")
own_land_all=$(script own-land-all "'$proq' -C '$repo' merge -q x >/dev/null")
pair 'land one clean lane / merge --no-ff' "$git_lane" "$git_land" "$own_lane" "$own_land"
pair 'the same, lane removed' "$git_lane" "$git_land_all" "$own_lane" "$own_land_all"
"$reset"

# Fifty lanes, two commits each, every fifth dirty.
for i in $(seq 50); do
  "$proq" -C "$repo" spawn -q --empty -n "l$i" >/dev/null
  lane=$repo/.proq-worktrees/l$i
  for c in 1 2; do echo "$i $c" >"$lane/new$i-$c.txt"; git -C "$lane" add -A; git -C "$lane" commit -qm "c$c"; done
  if [ $((i % 5)) = 0 ]; then echo dirty >>"$lane/$file"; fi
done
git_list=$(script git-list "git -C '$repo' worktree list --porcelain | sed -n 's/^worktree //p' | while read -r w; do
  git -C \"\$w\" status --porcelain; git -C \"\$w\" rev-list --left-right --count '$base...HEAD'; done >/dev/null")
own_list=$(script own-list "'$proq' -C '$repo' list >/dev/null")
pair 'list 50 lanes / status + rev-list in each' true "$git_list" true "$own_list"
