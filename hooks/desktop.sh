#!/bin/sh
# Shows a notice of the desktop for an event, by notify-send or osascript.
#
# usage: git config proq.hook.run.ended /path/to/desktop.sh
#
# Needs nothing but a POSIX shell and sed.

set -eu
title="git proq${PROQ_LANE:+: $PROQ_LANE}"

if command -v notify-send >/dev/null 2>&1; then
    # What looks like markup is text.
    text=$(printf '%s\n' "$PROQ_MESSAGE" | sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g')
    exec notify-send -- "$title" "$text"
fi
if command -v osascript >/dev/null 2>&1; then
    exec osascript -e 'on run argv' \
        -e 'display notification (item 2 of argv) with title (item 1 of argv)' \
        -e 'end run' "$title" "$PROQ_MESSAGE"
fi
echo "neither notify-send nor osascript was found" >&2
exit 1
