# Owns what all benches start from: a throw-away home and repository, and pairs that are measured side by side in one run.
# Sourced by them, with $bench set to the name of the throw-away folder. Everything happens below BENCH_DIR (a memory-backed
# folder takes the disk out of the figures: /dev/shm).

command -v hyperfine >/dev/null || { echo "hyperfine is needed: apt-get install hyperfine, or cargo install hyperfine" >&2; exit 1; }
work=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/$bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config GIT_CONFIG_NOSYSTEM=1
mkdir -p "$HOME"
git config --global user.name Bench
git config --global user.email bench@example.org
git config --global init.defaultBranch main
git config --global gc.auto 0
repo=$work/repo

# The program under test: PROQ, or the release build of this checkout.
own_program() {
  proq=${PROQ:-$(cd "$(dirname "$0")/.." && pwd)/target/release/git-proq}
  [ -x "$proq" ] || { echo "build first: cargo build --release --locked" >&2; exit 1; }
}

# make_repo [REPO]: a clone of REPO, which is never changed; without it a repository of 3,000 files. Sets base and start.
make_repo() {
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
  start=$(git -C "$repo" rev-parse HEAD)
}

# A command line as a program of its own: script NAME TEXT prints where it is.
script() { printf '#!/bin/sh\nset -e\n%s\n' "$2" >"$work/$1"; chmod +x "$work/$1"; echo "$work/$1"; }

# Text that lets worktrees get older: age DIR... Git reads every file that is as young as its index, again and again until
# the index is written anew in a later second, as any work in it does.
age() { printf 'sleep 1\n'; for dir in "$@"; do printf 'git -C %q status >/dev/null\n' "$dir"; done; }

# sides ONE OTHER: names the sides, and prints the head of the table.
sides() {
  one=$1 other=$2
  echo "git $(git version | cut -d' ' -f3), $(git -C "$repo" ls-files | wc -l) files, $runs runs a side and round, $(nproc 2>/dev/null || sysctl -n hw.ncpu) cores"
  printf '%-46s %22s %22s %10s %7s\n' 'work' "$one: median (min-max)" "$other: median (min-max)" 'difference' 'ratio'
}

# pair NAME PREPARE-ONE ONE PREPARE-OTHER OTHER: medians and spread in ms. Two rounds, the second in the other order, so that
# a machine that slows down or warms up does not favor one side.
pair() {
  : >"$work/all.csv"
  for order in "$one $other" "$other $one"; do
    local args=()
    for side in $order; do
      if [ "$side" = "$one" ]; then args+=(--prepare "$2" -n "$one" "$3"); else args+=(--prepare "$4" -n "$other" "$5"); fi
    done
    hyperfine -N -w 1 -r "$runs" --export-csv "$work/pair.csv" --style none "${args[@]}" >/dev/null 2>"$work/err" ||
      { cat "$work/err" >&2; exit 1; }
    tail -n +2 "$work/pair.csv" >>"$work/all.csv"
  done
  awk -F, -v name="$1" -v one="$one" -v other="$other" '
    { med[$1] += $4 / 2; if (!($1 in lo) || $7 < lo[$1]) lo[$1] = $7; if ($8 > hi[$1]) hi[$1] = $8 }
    function shown(side) { return sprintf("%.1f (%.1f-%.1f)", med[side] * 1000, lo[side] * 1000, hi[side] * 1000) }
    END { printf "%-46s %22s %22s %+7.1f ms %7.2f\n", name, shown(one), shown(other),
      (med[other] - med[one]) * 1000, med[other] / med[one] }' "$work/all.csv"
}

# in_turn NAME ONE OTHER [PREPARE]: the same for what cannot be repeated, or is slowed down by clearing away what the run before has
# made: ext4 avoids the numbers of files that were removed within some minutes, and looks at each of them for every new file.
# The sides take turns, the first of both in turn too, which evens out a machine that others use as well. {n} in a command is the
# number of the run; PREPARE runs before each.
in_turn() {
  : >"$work/all.txt"
  local n order command
  for n in $(seq $((runs * 2))); do
    order="$one $other"
    ((n % 2)) || order="$other $one"
    for side in $order; do
      if [ "$side" = "$one" ]; then command=$2; else command=$3; fi
      hyperfine -N -r 1 ${4:+--prepare "$4"} --export-csv "$work/turn.csv" --style none "${command//\{n\}/$n}" >/dev/null 2>"$work/err" ||
        { cat "$work/err" >&2; exit 1; }
      tail -n 1 "$work/turn.csv" | cut -d, -f2 | sed "s/^/$side /" >>"$work/all.txt"
    done
  done
  sort -k1,1 -k2,2g "$work/all.txt" | awk -v name="$1" -v one="$one" -v other="$other" '
    { time[$1, ++count[$1]] = $2 * 1000 }
    function median(side, n) { n = count[side]; return (time[side, int((n + 1) / 2)] + time[side, int(n / 2) + 1]) / 2 }
    function shown(side) { return sprintf("%.1f (%.1f-%.1f)", median(side), time[side, 1], time[side, count[side]]) }
    END { printf "%-46s %22s %22s %+7.1f ms %7.2f\n", name, shown(one), shown(other),
      median(other) - median(one), median(other) / median(one) }'
}
