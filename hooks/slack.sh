#!/bin/sh
# Posts an event's message to Slack, or to anything that takes {"text": ...} as Slack does.
#
# usage: git config proq.hook.merge.landed /path/to/slack.sh
#
# The address is the first line of ~/.config/git-proq/slack, or of the file that PROQ_SLACK_FILE names. It is a secret:
# keep that file to yourself (chmod 600). Needs a POSIX shell, sed, tr and curl.

set -eu
file=${PROQ_SLACK_FILE:-${XDG_CONFIG_HOME:-$HOME/.config}/git-proq/slack}
read -r address <"$file"

# As text of Slack's, then as a string of JSON.
text=$(printf '%s: %s' "$(basename "$PROQ_REPO")" "$PROQ_MESSAGE" | tr '\n\t\r' '   ' | tr -d '\000-\037' |
    sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/>/\&gt;/g' -e 's/\\/\\\\/g' -e 's/"/\\"/g')

# The address goes in by standard input: anybody can read the arguments of a process.
printf 'url = "%s"\n' "$address" |
    curl --silent --show-error --fail --max-time 10 --retry 2 \
        --header 'Content-Type: application/json' --data-binary "{\"text\": \"$text\"}" --output /dev/null --config -
