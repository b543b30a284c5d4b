#!/usr/bin/env bash
# Owns the comparison of two builds of git-proq: the same work by both, in one run, as a ratio and a difference.
#
#   benches/two-builds.sh BEFORE AFTER [REPO] [RUNS]
#
# BEFORE and AFTER are two git-proq programs, for example from the commit before the journal came and from this one: that is
# how what the journal costs was measured. REPO is cloned, never changed; without it a repository of 3,000 files is made.
# RUNS is 15 by default. BENCH_DIR chooses the disk, which decides what syncing costs. Needs hyperfine.
set -euo pipefail

[ $# -ge 2 ] || { sed -n 's/^# \{0,1\}//p' "$0" | head -n 8 >&2; exit 2; }
before=$1 after=$2 runs=${4:-15}
command -v hyperfine >/dev/null || { echo "hyperfine is needed: apt-get install hyperfine" >&2; exit 1; }

work=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/proq-builds.XXXXXX")
trap 'rm -rf "$work"' EXIT
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config GIT_CONFIG_NOSYSTEM=1
mkdir -p "$HOME"
git config --global user.name Bench
git config --global user.email bench@example.org
git config --global init.defaultBranch main
git config --global gc.auto 0

repo=$work/repo
if [ -n "${3:-}" ]; then
  git clone -q --no-hardlinks "$3" "$repo"
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
script() { printf '#!/bin/sh\nset -e\n%s\n' "$2" >"$work/$1"; chmod +x "$work/$1"; echo "$work/$1"; }

# The median, smallest and largest of both, in ms; two rounds, the second in the other order.
pair() {
  local name=$1 prepare=$2 one=$3 other=$4
  : >"$work/all.csv"
  for order in "before:$one after:$other" "after:$other before:$one"; do
    local args=()
    for side in $order; do args+=(--prepare "$prepare" -n "${side%%:*}" "${side#*:}"); done
    hyperfine -N -w 1 -r "$runs" --export-csv "$work/pair.csv" --style none "${args[@]}" >/dev/null 2>"$work/err" ||
      { cat "$work/err" >&2; exit 1; }
    tail -n +2 "$work/pair.csv" >>"$work/all.csv"
  done
  awk -F, -v name="$name" '
    { med[$1] += $4 / 2; if (!($1 in lo) || $7 < lo[$1]) lo[$1] = $7; if ($8 > hi[$1]) hi[$1] = $8 }
    END { printf "%-34s %7.1f (%.1f-%.1f) %7.1f (%.1f-%.1f) %+7.1f ms %6.2f\n", name,
      med["before"] * 1000, lo["before"] * 1000, hi["before"] * 1000,
      med["after"] * 1000, lo["after"] * 1000, hi["after"] * 1000,
      (med["after"] - med["before"]) * 1000, med["after"] / med["before"] }' "$work/all.csv"
}

echo "git $(git version | cut -d' ' -f3), $(git -C "$repo" ls-files | wc -l) files, $runs runs a side and round"
printf '%-34s %20s %20s %10s %6s\n' 'work' 'before: median' 'after: median' 'difference' 'ratio'
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
pair 'land one lane' "$lane" "$work/land-before" "$work/land-after"
pair 'land and remove it' "$lane" "$work/all-before" "$work/all-after"
pair 'preview, dirty, and back' "$dirty" "$work/show-before" "$work/show-after"
pair 'spawn --empty' "$clean" "$work/spawn-before" "$work/spawn-after"
