#!/usr/bin/env bash
# Owns the comparison of a list of many lanes with the same facts gathered by git: how each branch and the base relate, by one
# `for-each-ref`, and what is uncommitted, by a `status` in each worktree.
#
#   benches/list.sh [REPO] [LANES] [RUNS]
#
# REPO is cloned, never changed; without it a repository of 3,000 files is made. LANES is 200 by default, RUNS 7: lanes of two
# commits each, the first half one commit behind, every fifth with an edited and a new file. BENCH_DIR chooses the disk: it
# holds LANES times the files. PROQ names the program; by default the release build of this checkout. Needs hyperfine.
set -euo pipefail

lanes=${2:-200} runs=${3:-7} bench=proq-list
. "$(dirname "$0")/setup.sh"
own_program
make_repo "${1:-}"
file=$(git -C "$repo" ls-files | sed -n 2p)

# make_lanes COUNT NAME: so many lanes, fifty at a time at most.
make_lanes() {
  local left=$1 part=0
  while [ "$left" -gt 0 ]; do
    part=$((part + 1))
    "$proq" -C "$repo" spawn -q --empty --count $((left < 50 ? left : 50)) -n "$2$part" >/dev/null
    left=$((left - 50))
  done
}
make_lanes $((lanes / 2)) old
git -C "$repo" commit -q --allow-empty -m 'base moved'
make_lanes $((lanes - lanes / 2)) new
n=0
for lane in "$repo"/.proq-worktrees/*/; do
  n=$((n + 1))
  for c in 1 2; do echo "$n $c" >"$lane/own$n-$c.txt"; git -C "$lane" add "own$n-$c.txt"; git -C "$lane" commit -qm "c$c"; done
  if [ $((n % 5)) = 0 ]; then echo dirty >>"$lane/$file"; echo new >"$lane/left$n.txt"; fi
done
# Nobody's worktrees are as young as their indexes, and a folder is known once it has been left alone for a while.
sleep 3
eval "$(age "$repo"/.proq-worktrees/*/)"

facts="git -C '$repo' for-each-ref --format='%(refname) %(ahead-behind:$base)' refs/heads/proq/ >/dev/null"
git_one=$(script git-one "$facts; for w in '$repo'/.proq-worktrees/*/; do git -C \"\$w\" status --porcelain; done >/dev/null")
git_two=$(script git-two "$facts; printf '%s\\0' '$repo'/.proq-worktrees/*/ | xargs -0 -P 2 -I{} git -C {} status --porcelain >/dev/null")
own_list=$(script own-list "'$proq' -C '$repo' list --json >/dev/null")
forget="rm -rf '$repo/.git/proq/cache'"
fresh=$(script fresh "$forget")

"$proq" --version
sides git own
echo "$n lanes"
pair 'list / git, one after the other' true "$git_one" true "$own_list"
pair 'list / git, two at a time' true "$git_two" true "$own_list"
pair 'the first list / git, one after the other' true "$git_one" "$fresh" "$own_list"
if [ "$(stat -f -c %T "$work")" != tmpfs ] && sync && echo 3 2>/dev/null >/proc/sys/vm/drop_caches; then
  drop=$(script drop "$forget; sync; echo 3 >/proc/sys/vm/drop_caches")
  runs=3 pair 'with nothing of the disk in memory' "$drop" "$git_one" "$drop" "$own_list"
else
  echo 'with nothing of the disk in memory: not measured, since it lies in memory or nobody may take it out'
fi

# The most memory that a process and those it starts have at once, in MB.
peak() { python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 1))' "$@"; }
echo "peak memory of one process, MB: git $(peak "$git_one"), own $(peak "$own_list")"
