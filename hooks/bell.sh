#!/bin/sh
# Rings the bell of the terminal that it runs in, and says why.
#
# usage: bell.sh [OPTION OF git proq events ...]
#
# Run it in a repository and leave it running: hooks/bell.sh &
# A hook has no terminal, so this one follows the events by itself. PROQ_NOTIFY names those that are worth a bell.
# Needs nothing but a POSIX shell and sed.

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
    *" $(field event) "*) printf '\a%s\n' "$(field message)" ;;
    esac
done
