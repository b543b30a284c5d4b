#!/bin/sh
# Tells you when a lane's agent ends, when a lane lands and when it conflicts.
#
# usage: notify.sh [OPTION OF git proq events ...]
#
# Run it in a repository and leave it running: hooks/notify.sh &
# With `--last N` it begins with the N events before. PROQ_NOTIFY names the events that are worth a notice.
# Needs nothing but a POSIX shell and sed; takes notify-send or osascript where there is one, else rings the bell.

set -u
wanted=${PROQ_NOTIFY:-run.ended merge.landed merge.conflict merge.check-failed}

# A field of the event in $line, as plain text; empty when it has none.
field() {
    printf '%s\n' "$line" |
        sed -n -E 's/^.*[{,]"'"$1"'":"(([^"\\]|\\.)*)".*$/\1/p' |
        sed -e 's/\\[nrt]/ /g' -e 's/\\\(.\)/\1/g'
}

notify() {
    if command -v notify-send >/dev/null 2>&1; then
        # What looks like markup is text.
        text=$(printf '%s\n' "$2" | sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g')
        notify-send -- "$1" "$text" && return
    elif command -v osascript >/dev/null 2>&1; then
        osascript -e 'on run argv' \
            -e 'display notification (item 2 of argv) with title (item 1 of argv)' \
            -e 'end run' "$1" "$2" >/dev/null && return
    fi
    printf '\a%s: %s\n' "$1" "$2"
}

git proq events --follow --json "$@" | while IFS= read -r line; do
    event=$(field event)
    case " $wanted " in
    *" $event "*) notify "git proq: $(field lane)" "$(field message)" ;;
    esac
done
