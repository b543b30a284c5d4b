#!/usr/bin/env bash
# Owns the comparison of two builds of git-proq: the same work by both, in one run, as a ratio and a difference.
#
#   benches/two-builds.sh BEFORE AFTER [REPO] [RUNS]
#
# Landings, previews, new lanes, lists, matrices and start-up, in milliseconds.
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
in_turn 'land one lane' "$work/land-before" "$work/land-after" "$lane"
in_turn 'land and remove it' "$work/all-before" "$work/all-after" "$lane"
in_turn 'preview, dirty, and back' "$work/show-before" "$work/show-after" "$dirty"
in_turn 'spawn --empty' "$work/spawn-before" "$work/spawn-after" "$clean"

# Many lanes, made by the older build: what only reads must not have become slower either.
"$clean"
for n in $(seq 20); do
  "$before" -C "$repo" spawn -q --empty -n "many$n" >/dev/null
  lane_dir=$repo/.proq-worktrees/many$n
  echo "lane $n" >>"$lane_dir/$(git -C "$repo" ls-files | sed -n "$((n % 5 + 2))p")"
  git -C "$lane_dir" commit -qam "many $n"
done
eval "$(age "$repo" "$repo"/.proq-worktrees/many*)"
forget=$(script forget "rm -rf '$repo/.git/proq/cache'")
for side in before after; do
  script "list-$side" "'${!side}' -C '$repo' list --json >/dev/null" >/dev/null
  script "matrix-$side" "'${!side}' -C '$repo' matrix --json >/dev/null" >/dev/null
done
in_turn 'list, 20 lanes' "$work/list-before" "$work/list-after"
in_turn 'matrix anew, 20 lanes' "$work/matrix-before" "$work/matrix-after" "$forget"
in_turn 'start-up: --version' "$before --version" "$after --version"
