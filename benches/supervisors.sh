#!/usr/bin/env bash
# Owns the measuring of what supervisors keep in memory while their agents run, silent or talking.
#
#   benches/supervisors.sh [AGENTS] [LINES]
#
# Starts AGENTS scripted agents (20) at once, looks at each supervisor while they are silent, while each prints LINES lines (10,000),
# and when they are silent again. Ends with 1 when any had more than 6 MB resident, or more than 2 MB that is in no file, which is
# what one more supervisor takes from everybody else. The code is in the system's cache anyway, for all supervisors once
# ("proportional" counts each page by how many have it), and what was only needed for a moment is let go of a second later.
#
# The program lies in memory where there is such a folder: Linux 6.18 maps all of a large folio (up to 2 MB) around each 4 kB that
# are needed, so on ext4 it depends on how the file came into the cache what counts as resident (6.9 to 8.7 MB while talking, where
# it is 3.5 to 4.9 in memory). PROQ names another program than the release build of this checkout; BENCH_DIR another folder. Linux only.
set -euo pipefail

agents=${1:-20} lines=${2:-10000} most=6144 most_anonymous=2048
# Where programs may be started from memory.
in_memory=/dev/shm
{ probe=$(mktemp -p "$in_memory") && cp /bin/true "$probe" && chmod +x "$probe" && "$probe"; } 2>/dev/null || in_memory=/var/tmp
[ -z "$probe" ] || rm -f "$probe"
work=$(mktemp -d "${BENCH_DIR:-$in_memory}/proq-supervisors.XXXXXX")
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config GIT_CONFIG_NOSYSTEM=1
proq=${PROQ:-$(cd "$(dirname "$0")/.." && pwd)/target/release/git-proq}
[ -x "$proq" ] || { echo "build first: cargo build --release --locked" >&2; exit 2; }
mkdir -p "$HOME" "$work/bin" "$work/repo"
# A copy of its own: pages that nobody else has count as this one's.
cp "$proq" "$work/bin/git-proq"
export PATH=$work/bin:$PATH
cd "$work/repo"
trap 'touch "$work/stop"; git proq stop --all >/dev/null 2>&1 || true; cd /; remove' EXIT
# What watches for edits to keep ends a moment after the last agent.
remove() {
  local try
  for try in $(seq 100); do
    rm -rf "$work" 2>/dev/null && return
    sleep 0.1
  done
}
git config --global user.name Bench
git config --global user.email bench@example.org
git init -q -b main
git commit -q --allow-empty -m first

cat >"$work/bin/claude" <<EOF
#!/bin/sh
[ "\$1" = --version ] && { echo "9.9.9 (Claude Code)"; exit; }
echo '{"type":"system","subtype":"init","session_id":"s","model":"claude-x","cwd":"/"}'
touch "$work/up-\$PROQ_LANE"
until [ -e "$work/go" ]; do sleep 0.1; done
i=0
while [ \$i -lt $lines ]; do
  i=\$((i + 1))
  echo '{"type":"assistant","message":{"id":"m'\$i'","content":[{"type":"text","text":"line '\$i'"}],"usage":{"input_tokens":10,"output_tokens":5}},"session_id":"s"}'
done
touch "$work/told-\$PROQ_LANE"
until [ -e "$work/stop" ]; do sleep 0.1; done
EOF
chmod +x "$work/bin/claude"

# The supervisors: each holds the run lock of its lane.
supervisors() { sed -n 's/^pid = //p' "$work/repo/.git/proq/locks/lanes/"*.run.holder; }

over=0
look() {
  local pid
  for pid in $(supervisors); do
    awk '/^(VmRSS|RssAnon|RssFile|VmHWM):/ { printf "%s ", $2 }' "/proc/$pid/status"
    awk '/^Pss:/ { print $2 }' "/proc/$pid/smaps_rollup"
  done | awk -v what="$1" -v most="$most" -v most_anonymous="$most_anonymous" '
    # VmHWM, VmRSS, RssAnon, RssFile, Pss
    { for (i = 1; i <= 5; i++) { if (NR == 1 || $i < min[i]) min[i] = $i; if ($i > max[i]) max[i] = $i }; sum += $5 }
    END {
      printf "%-22s resident %d-%d  anonymous %d-%d  of files %d-%d  proportional %d-%d, all %d  peak ever %d kB\n",
        what, min[2], max[2], min[3], max[3], min[4], max[4], min[5], max[5], sum, max[1]
      exit max[2] > most || max[3] > most_anonymous
    }' || over=1
}

for i in $(seq "$agents"); do git proq spawn -q -n "l$i" claude "do $i" 2>/dev/null >&2 & done
# How many files there are of a name.
many() { find "$work" -maxdepth 1 -name "$1-*" | wc -l; }
wait
until [ "$(many up)" -ge "$agents" ]; do sleep 0.2; done
sleep 2
look "silent"
touch "$work/go"
while [ "$(many told)" -lt "$agents" ]; do
  sleep 0.2
  look "talking"
done
sleep 2
look "silent again"
[ "$over" = 0 ] || {
  echo "more than $most kB resident, or $most_anonymous kB that are in no file" >&2
  exit 1
}
