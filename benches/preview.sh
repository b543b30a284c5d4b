#!/usr/bin/env bash
# Owns the comparison of a preview with what git has for it: uncommitted changes are put away, a lane is shown in the main
# checkout, and everything comes back as it was.
#
#   benches/preview.sh [REPO] [RUNS]
#
# REPO is cloned, never changed; without it a repository of 3,000 files is made. RUNS is 7 by default. BENCH_DIR chooses the
# disk. PROQ names the program; by default the release build of this checkout. Needs hyperfine.
set -euo pipefail

runs=${2:-7} bench=proq-preview
. "$(dirname "$0")/setup.sh"
own_program
make_repo "${1:-}"
# name N: the N-th file of those that are files, and no links.
name() { git -C "$repo" ls-files -s | sed -n 's/^1006[0-9]* [^\t]*\t//p' | sed -n "$1p"; }
shown=$(name 2) mine=$(name 4)

# What a checkout has written within the last second git reads again; nobody's main checkout is that young.
find "$repo" -path "$repo/.git" -prune -o -type f -exec touch -d '2026-01-01' {} +
git -C "$repo" status >/dev/null
"$proq" -C "$repo" spawn -q --empty -n x >/dev/null
echo lane >>"$repo/.proq-worktrees/x/$shown"
git -C "$repo/.proq-worktrees/x" commit -qam lane
git -C "$repo" branch -q wt proq/x
echo mine >>"$repo/$mine"
echo new >"$repo/mine.txt"

"$proq" --version
sides git own
# A file that was just put back is as young as the index, until that is written anew.
ready=$(script ready "cd '$repo'; $(age "$repo"); git update-index -q --refresh >/dev/null || true")
git_both=$(script git-both "cd '$repo'; git stash push -q -u; git switch -q --detach wt; git switch -q '$base'; git stash pop -q")
own_both=$(script own-both "cd '$repo'; '$proq' preview -q x >/dev/null; '$proq' preview -q --back >/dev/null")
pair 'preview from dirty, and back / stash, switch' "$ready" "$git_both" "$ready" "$own_both"
left=$(git -C "$repo" status --porcelain)
[ "$left" = " M $mine
?? mine.txt" ] || { printf 'not as it was:\n%s\n' "$left" >&2; exit 1; }
