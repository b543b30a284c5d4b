#!/usr/bin/env bash
# Owns the comparison of `git proq matrix` with one batch of `git merge-tree` over the same merges, in one run, as ratios.
#
#   benches/matrix.sh [REPO] [RUNS]
#
# REPO is cloned, never changed; without it a repository of 3,000 files is made. 50 lanes of two commits each are cut from it:
# 1,225 pairs and 50 merges with the base. RUNS is 15 by default. BENCH_DIR chooses the disk. PROQ names the program; by
# default the release build of this checkout. Needs hyperfine.
set -euo pipefail

runs=${2:-15} lanes=50 bench=proq-matrix
. "$(dirname "$0")/setup.sh"
own_program
make_repo "${1:-}"
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

eval "$(age "$repo"/.proq-worktrees/l*)"
branch() { git -C "$repo" rev-parse "proq/l$1"; }
for i in $(seq $lanes); do
  echo "$(git -C "$repo" rev-parse "$base") $(branch "$i")"
  for j in $(seq $((i + 1)) $lanes); do echo "$i $j"; done
done | awk 'FNR == NR { id[FNR] = $1; next } $1 in id && $2 in id { print id[$1], id[$2]; next } { print }' \
  <(for i in $(seq $lanes); do branch "$i"; done) - >"$work/pairs"
grep -n "$(branch 7)" "$work/pairs" | cut -d: -f2 >"$work/pairs-of-one"

echo "$(wc -l <"$work/pairs") merges"
"$proq" -C "$repo" matrix --committed 2>/dev/null | tail -n 1
sides git own
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
