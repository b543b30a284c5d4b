#!/usr/bin/env bash
# Owns the comparison of `git proq matrix` with one batch of `git merge-tree` over the same merges, in one run, as ratios.
#
#   benches/matrix.sh [REPO] [RUNS]
#
# REPO is cloned, never changed; without it a repository of 3,000 files is made. 50 lanes of two commits each are cut from it:
# 1,225 pairs and 50 merges with the base. RUNS is 15 by default. Everything happens in a throw-away folder below BENCH_DIR
# (a memory-backed one takes the disk out of the figures: /dev/shm). PROQ names the program; by default the release build of
# this checkout. Needs hyperfine.
set -euo pipefail

runs=${2:-15} lanes=50
here=$(cd "$(dirname "$0")/.." && pwd)
proq=${PROQ:-$here/target/release/git-proq}
command -v hyperfine >/dev/null || { echo "hyperfine is needed: apt-get install hyperfine, or cargo install hyperfine" >&2; exit 1; }
[ -x "$proq" ] || { echo "build first: cargo build --release --locked" >&2; exit 1; }

work=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/proq-matrix.XXXXXX")
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
    for f in $(seq 50); do seq -f "line %g of $d/$f" 120 >"$repo/dir$d/file$f.txt"; done
  done
  git -C "$repo" add -A
  git -C "$repo" commit -qm start
  git -C "$repo" repack -qad
fi
base=$(git -C "$repo" symbolic-ref --short HEAD)
git -C "$repo" ls-files '*.txt' '*.rs' '*.c' '*.md' >"$work/files"
files=$(wc -l <"$work/files")

# Each lane changes four files, one of which other lanes change too, and adds one.
for i in $(seq $lanes); do
  "$proq" -C "$repo" spawn -q --empty -n "l$i" >/dev/null
  lane=$repo/.proq-worktrees/l$i
  for c in 1 2; do
    for k in 1 2; do
      file=$(sed -n "$(((i * 53 + c * 17 + k * 7) % files + 1))p" "$work/files")
      sed -i "$((i % 5 + 3))s/\$/ by lane $i/" "$lane/$file"
    done
    echo "$i $c" >"$lane/new$i-$c"
    git -C "$lane" add -A
    git -C "$lane" commit -qm "l$i: $c"
  done
  shared=$(sed -n "$((i % 7 + 1))p" "$work/files")
  sed -i "$((i % 3 * 5 + 1))s/\$/ by lane $i/" "$lane/$shared"
  git -C "$lane" commit -q --amend -a --no-edit
done
file=$(sed -n 40p "$work/files")
echo base >>"$repo/$file"; git -C "$repo" commit -qam base

branch() { git -C "$repo" rev-parse "proq/l$1"; }
for i in $(seq $lanes); do
  echo "$(git -C "$repo" rev-parse "$base") $(branch "$i")"
  for j in $(seq $((i + 1)) $lanes); do echo "$i $j"; done
done | awk 'FNR == NR { id[FNR] = $1; next } $1 in id && $2 in id { print id[$1], id[$2]; next } { print }' \
  <(for i in $(seq $lanes); do branch "$i"; done) - >"$work/pairs"
grep -n "$(branch 7)" "$work/pairs" | cut -d: -f2 >"$work/pairs-of-one"

script() { printf '#!/bin/sh\nset -e\n%s\n' "$2" >"$work/$1"; chmod +x "$work/$1"; echo "$work/$1"; }
# pair NAME PREPARE-GIT GIT PREPARE-OWN OWN: medians and spread in ms, and the ratio of the medians; two rounds, the second
# in the other order.
pair() {
  local name=$1 csv=$work/pair.csv
  : >"$work/all.csv"
  for order in "git own" "own git"; do
    local args=()
    for side in $order; do
      if [ "$side" = git ]; then args+=(--prepare "$2" -n git "$3"); else args+=(--prepare "$4" -n own "$5"); fi
    done
    hyperfine -N -w 2 -r "$runs" --export-csv "$csv" --style none "${args[@]}" >/dev/null 2>"$work/err" ||
      { cat "$work/err" >&2; exit 1; }
    tail -n +2 "$csv" >>"$work/all.csv"
  done
  awk -F, -v name="$name" '
    { med[$1] += $4 / 2; if (!($1 in lo) || $7 < lo[$1]) lo[$1] = $7; if ($8 > hi[$1]) hi[$1] = $8 }
    END { printf "%-44s %8.1f (%.1f-%.1f) %8.1f (%.1f-%.1f) %8.2f\n", name,
      med["git"] * 1000, lo["git"] * 1000, hi["git"] * 1000,
      med["own"] * 1000, lo["own"] * 1000, hi["own"] * 1000, med["own"] / med["git"] }' "$work/all.csv"
}

echo "git $(git version | cut -d' ' -f3), $("$proq" --version), $(git -C "$repo" ls-files | wc -l) files, $(wc -l <"$work/pairs") merges, $runs runs a side and round"
"$proq" -C "$repo" matrix --committed 2>/dev/null | tail -n 1
printf '%-44s %22s %22s %8s\n' 'work' 'git: median (min-max)' 'own: median (min-max)' 'own/git'
cache=$repo/.git/proq/cache/forecast
aside=$work/objects
# Forecasts that leave nothing behind, and git at its fastest: what it makes is there already.
batch=$(script batch "cd '$repo'; exec git merge-tree --write-tree -z --stdin <'$work/pairs' >/dev/null")
batch_aside=$(script batch-aside "cd '$repo'; export GIT_OBJECT_DIRECTORY='$aside' GIT_ALTERNATE_OBJECT_DIRECTORIES='$repo/.git/objects'
exec git merge-tree --write-tree -z --stdin <'$work/pairs' >/dev/null")
of_one=$(script of-one "cd '$repo'; exec git merge-tree --write-tree -z --stdin <'$work/pairs-of-one' >/dev/null")
fresh=$(script fresh "rm -rf '$aside'; mkdir '$aside'")
forget=$(script forget "rm -f '$cache'")
own=$(script own "'$proq' -C '$repo' matrix --committed --json >/dev/null")
whole=$(script whole "'$proq' -C '$repo' matrix --json >/dev/null")
pair 'all anew / batch into a throw-away folder' "$fresh" "$batch_aside" "$forget" "$own"
pair 'all anew / batch, objects already there' true "$batch" "$forget" "$own"
"$own"; cp "$cache" "$work/before"
echo more >>"$repo/.proq-worktrees/l7/$file"; git -C "$repo/.proq-worktrees/l7" commit -qam more
sed -i "s/$(git -C "$repo" rev-parse proq/l7~1)/$(branch 7)/" "$work/pairs" "$work/pairs-of-one"
pair 'one lane moved / batch of its merges' true "$of_one" "cp $work/before $cache" "$own"
pair 'one lane moved / batch of all' true "$batch" "cp $work/before $cache" "$own"
pair 'nothing moved / batch of all' true "$batch" true "$own"
pair 'with uncommitted work / batch of all' true "$batch" true "$whole"
