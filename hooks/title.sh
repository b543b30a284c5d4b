#!/bin/sh
# Puts what happens in the title of the terminal that it runs in.
#
# usage: title.sh [OPTION OF git proq events ...]
#
# Run it in a repository and leave it running: hooks/title.sh &
# A hook has no terminal, so this one follows the events by itself. PROQ_NOTIFY names those that are worth it.
# Needs nothing but a POSIX shell, sed and tr.

set -u
wanted=${PROQ_NOTIFY:-run.ended merge.landed merge.conflict merge.check-failed}

# A field of the event in $line, as plain text; empty when it has none.
field() {
    printf '%s\n' "$line" |
        sed -n -E 's/^.*[{,]"'"$1"'":"(([^"\\]|\\.)*)".*$/\1/p' |
        sed -e 's/\\[nrt]/ /g' -e 's/\\u....//g' -e 's/\\\(.\)/\1/g'
}

git proq events --follow --json "$@" | while IFS= read -r line; do
    case " $wanted " in
    # Nothing in it may end the title before its time.
    *" $(field event) "*) printf '\033]2;%s\007' "$(field message | tr -d '\000-\037\177')" ;;
    esac
done
