#!/usr/bin/env bash
# Owns the comparison with plain git: the same work, both ways, in one run, as ratios.
#
#   benches/side-by-side.sh [REPO] [RUNS]
#
# REPO is cloned, never changed; without it a repository of 3,000 files is made. RUNS is 15 by default. BENCH_DIR chooses
# the disk. PROQ names the program; by default the release build of this checkout. Needs hyperfine.
set -euo pipefail

runs=${2:-15} bench=proq-bench
. "$(dirname "$0")/setup.sh"
own_program
make_repo "${1:-}"
file=$(git -C "$repo" ls-files | sed -n 2p)

"$proq" --version
sides git own

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
echo base >base.txt; git add base.txt; git commit -qm base
$(age "$repo" "$work/wt")")
own_lane=$(script own-lane "'$reset'
cd '$repo'; '$proq' spawn -q --empty -n x >/dev/null; echo lane >>'.proq-worktrees/x/$file'; git -C .proq-worktrees/x commit -qam lane
echo base >base.txt; git add base.txt; git commit -qm base
$(age "$repo" "$repo/.proq-worktrees/x")")
git_land=$(script git-land "cd '$repo'; git merge -q --no-ff --no-edit wt")
git_land_all=$(script git-land-all "cd '$repo'; git merge -q --no-ff --no-edit wt; git worktree remove '$work/wt'; git branch -q -d wt")
own_land=$(script own-land "'$proq' -C '$repo' merge -q --no-cleanup x >/dev/null")
own_land_all=$(script own-land-all "'$proq' -C '$repo' merge -q x >/dev/null")
pair 'land one clean lane / merge --no-ff' "$git_lane" "$git_land" "$own_lane" "$own_land"
pair 'the same, lane removed' "$git_lane" "$git_land_all" "$own_lane" "$own_land_all"
"$reset"

# An edited and a new file in the main checkout, which is to show the lane for a moment and then be as it was.
mine="cd '$repo'; echo mine >>'$(git -C "$repo" ls-files | sed -n 4p)'; echo new >mine.txt"
undo="cd '$repo'; git reset -q --hard; rm -f mine.txt"
git_dirty=$(script git-dirty "$undo; '$git_lane'; $mine")
own_dirty=$(script own-dirty "$undo; '$own_lane'; $mine")
git_show=$(script git-show "cd '$repo'; git stash push -q -u; git switch -q --detach wt; git switch -q '$base'; git stash pop -q")
own_show=$(script own-show "cd '$repo'; '$proq' preview -q x >/dev/null; '$proq' preview -q --back >/dev/null")
pair 'preview from dirty, and back / stash, switch' "$git_dirty" "$git_show" "$own_dirty" "$own_show"
eval "$undo"
"$reset"

# Twenty lanes with one commit each; a landing leaves them where they are.
for i in $(seq 20); do
  "$proq" -C "$repo" spawn -q --empty -n "l$i" >/dev/null
  lane=$repo/.proq-worktrees/l$i
  echo "$i" >"$lane/new$i.txt"; echo "lane $i" >>"$lane/$(git -C "$lane" ls-files | sed -n "$((i * 10))p")"
  git -C "$lane" add -A; git -C "$lane" commit -qm "work $i"
done
eval "$(age "$repo"/.proq-worktrees/l*)"
git -C "$repo" commit -q --allow-empty -m base
cp -R "$repo/.git/proq" "$work/records"
again=$(script again "cd '$repo'; git reset -q --hard '$(git -C "$repo" rev-parse HEAD)'
git for-each-ref --format='delete %(refname)' refs/proq/ | git update-ref --stdin
rm -rf .git/proq; cp -R '$work/records' .git/proq; git status >/dev/null")
git_twenty=$(script git-twenty "cd '$repo'; for i in $(seq -s ' ' 20); do git merge -q --no-ff --no-edit proq/l\$i; done")
own_twenty=$(script own-twenty "'$proq' -C '$repo' merge -q --all --no-cleanup >/dev/null")
pair 'land 20 lanes / 20 x merge --no-ff' "$again" "$git_twenty" "$again" "$own_twenty"
"$again"
"$proq" -C "$repo" discard -q --force $(seq -f 'l%g' 20) >/dev/null
"$reset"

# Fifty lanes, two commits each, every fifth dirty.
for i in $(seq 50); do
  "$proq" -C "$repo" spawn -q --empty -n "l$i" >/dev/null
  lane=$repo/.proq-worktrees/l$i
  for c in 1 2; do echo "$i $c" >"$lane/new$i-$c.txt"; git -C "$lane" add -A; git -C "$lane" commit -qm "c$c"; done
  if [ $((i % 5)) = 0 ]; then echo dirty >>"$lane/$file"; fi
done
eval "$(age "$repo"/.proq-worktrees/l*)"
git_list=$(script git-list "git -C '$repo' worktree list --porcelain | sed -n 's/^worktree //p' | while read -r w; do
  git -C \"\$w\" status --porcelain; git -C \"\$w\" rev-list --left-right --count '$base...HEAD'; done >/dev/null")
own_list=$(script own-list "'$proq' -C '$repo' list >/dev/null")
pair 'list 50 lanes / status + rev-list in each' true "$git_list" true "$own_list"
