#!/usr/bin/env bash
# Owns the comparison of making lanes with `git worktree add`: one, ten, and the first status in them, as ratios.
#
#   benches/lanes.sh [REPO] [RUNS]
#
# REPO is cloned, never changed; without it a repository of 300 files is made, and then one of 30,000. RUNS is 7 by default.
# BENCH_DIR chooses the disk. PROQ names the program; by default the release build of this checkout. Needs hyperfine.
set -euo pipefail

runs=${2:-7} bench=proq-lanes
. "$(dirname "$0")/setup.sh"
own_program
"$proq" --version

# files COUNT: a repository of so many files, of 7 KB each on average, fifty in a folder.
files() {
  git init -q "$repo"
  for d in $(seq $(($1 / 50))); do
    mkdir -p "$repo/dir$((d % 20))/sub$d"
    for f in $(seq 50); do seq -f "line %g of $d/$f" $((20 + (d * 31 + f * 17) % 700)) >"$repo/dir$((d % 20))/sub$d/file$f.c"; done
  done
  git -C "$repo" add -A
  git -C "$repo" commit -qm start
  git -C "$repo" repack -qad
  base=main
}

measure() {
  # What a checkout has written within the last second git reads again; nobody's main checkout is that young.
  find "$repo" -path "$repo/.git" -prune -o -type f -exec touch -d '2026-01-01' {} +
  git -C "$repo" status >/dev/null
  sides git own
  # First, before anything is removed. So many lanes of a large repository would not fit.
  if [ "$(git -C "$repo" ls-files | wc -l)" -lt 5000 ]; then
    in_turn 'one lane more, none is removed / worktree add' \
      "git -C $repo worktree add -q -b wt-{n} $work/wt-{n}" \
      "$proq -C $repo spawn -q --empty -n more-{n}"
    for n in $(seq $((runs * 2))); do "$proq" -C "$repo" discard -q --force "more-$n" >/dev/null; done
  fi
  clean=$(script clean "cd '$repo'
for n in x x-1 x-2 x-3 x-4 x-5 x-6 x-7 x-8 x-9 x-10; do '$proq' discard -q --force \$n >/dev/null 2>&1 || true; done
for w in '$work'/wt*; do [ ! -e \"\$w\" ] || rm -rf \"\$w\"; done
rm -rf .git/proq/trash/* .git/proq/history/*
git worktree prune
git for-each-ref --format='delete %(refname)' 'refs/heads/wt*' refs/heads/proq/ refs/proq/ | git update-ref --stdin")
  pair 'one lane / worktree add' \
    "$clean" "git -C $repo worktree add -q -b wt $work/wt" \
    "$clean" "$proq -C $repo spawn -q --empty -n x"
  # A lane lands before each of these, outside of what is measured; with an argument, one that changes every so many-th file.
  at=$(git -C "$repo" rev-parse HEAD) every=$(($(git -C "$repo" ls-files | wc -l) / 100))
  land=$(script land "'$clean'; cd '$repo'; git reset -q --hard $at
'$proq' spawn -q --empty -n old >/dev/null
cd .proq-worktrees/old
[ -z \"\$1\" ] || git ls-files | sed -n \"1~\$1 p\" | while read -r f; do [ -L \"\$f\" ] || echo more >>\"\$f\"; done
git commit -qam work --allow-empty
cd '$repo'; '$proq' merge -q old >/dev/null; git reset -q --hard $at")
  pair 'one lane from the folder of a landed one / worktree add' \
    "$clean" "git -C $repo worktree add -q -b wt $work/wt" \
    "$land" "$proq -C $repo spawn -q --empty -n x"
  # As an agent would be started in it by then. The rest is the look for uncommitted changes, which the next run waits for.
  said=$(script said "'$proq' -C '$repo' spawn -q --empty -n x >'$work/line' & echo \$! >'$work/at-work'
exec 3<'$work/line'; read -r line <&3; cat <&3 >/dev/null &")
  land_after=$(script land-after "[ ! -e '$work/at-work' ] || while kill -0 \$(cat '$work/at-work') 2>/dev/null; do :; done
'$land'; rm -f '$work/line'; mkfifo '$work/line'")
  pair 'the same, until the lane is said / worktree add' \
    "$clean" "git -C $repo worktree add -q -b wt $work/wt" \
    "$land_after" "$said"
  "$land_after"
  pair 'the same, with 100 files changed since / worktree add' \
    "$clean" "git -C $repo worktree add -q -b wt $work/wt" \
    "$land $every" "$proq -C $repo spawn -q --empty -n x"
  git -C "$repo" reset -q --hard "$at"
  # The files that this wrote are as young as the index again.
  eval "$(age "$repo")"
  git_ten=$(script git-ten "cd '$repo'; for i in 1 2 3 4 5 6 7 8 9 10; do git worktree add -q -b wt\$i '$work/wt'\$i; done")
  pair 'ten lanes / worktree add, ten times' "$clean" "$git_ten" \
    "$clean" "$proq -C $repo spawn -q --empty --count 10 -n x"
  "$clean"
  "$proq" -C "$repo" spawn -q --empty -n x >/dev/null
  lane=$repo/.proq-worktrees/x index=$repo/.git/worktrees/x/index
  cp -p "$index" "$work/first"
  one=main other=lane
  pair 'first git status: main checkout, lane' true "git -C $repo status" \
    "cp -p $work/first $index" "git -C $lane status"
  "$clean"
}

if [ -n "${1:-}" ]; then
  make_repo "$1"
  measure
else
  for count in 300 30000; do
    files "$count"
    measure
    rm -rf "$repo"
  done
fi
