#!/bin/sh
# Plays a sound for an event: one when things went well, another when they did not.
#
# usage: git config proq.hook.run.ended /path/to/sound.sh
#
# PROQ_SOUND and PROQ_SOUND_BAD name the files; without them, sounds of the desktop or of macOS are taken.
# Needs a POSIX shell and one of paplay, pw-play, afplay and aplay.

set -eu

case "$PROQ_EVENT ${PROQ_STATE:-}" in
merge.conflict* | merge.check-failed* | merge.refused* | *" failed" | *" stopped")
    set -- "${PROQ_SOUND_BAD:-}" /usr/share/sounds/freedesktop/stereo/dialog-warning.oga /System/Library/Sounds/Basso.aiff
    ;;
*)
    set -- "${PROQ_SOUND:-}" /usr/share/sounds/freedesktop/stereo/complete.oga /System/Library/Sounds/Glass.aiff
    ;;
esac

for file in "$@"; do
    if [ -f "$file" ]; then
        for player in paplay pw-play afplay aplay; do
            if command -v "$player" >/dev/null 2>&1; then
                exec "$player" "$file"
            fi
        done
        echo "none of paplay, pw-play, afplay and aplay was found" >&2
        exit 1
    fi
done
echo "no sound was found; name one in PROQ_SOUND" >&2
exit 1
