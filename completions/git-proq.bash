_clap_complete_git_proq() {
    local IFS=$'\013'
    local _CLAP_COMPLETE_INDEX=${COMP_CWORD}
    local _CLAP_COMPLETE_COMP_TYPE=${COMP_TYPE}
    if compopt +o nospace 2> /dev/null; then
        local _CLAP_COMPLETE_SPACE=false
    else
        local _CLAP_COMPLETE_SPACE=true
    fi
    local words=("${COMP_WORDS[@]}")
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        words[COMP_CWORD]="$2"
    fi
    COMPREPLY=( $( \
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$_CLAP_COMPLETE_INDEX" \
        _CLAP_COMPLETE_COMP_TYPE="$_CLAP_COMPLETE_COMP_TYPE" \
        _CLAP_COMPLETE_SPACE="$_CLAP_COMPLETE_SPACE" \
        PROQ_COMPLETE="bash" \
        "git-proq" -- "${words[@]}" \
    ) )
    if [[ $? != 0 ]]; then
        unset COMPREPLY
    elif [[ $_CLAP_COMPLETE_SPACE == false ]] && [[ "${COMPREPLY-}" =~ [=/:]$ ]]; then
        compopt -o nospace
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _clap_complete_git_proq git-proq
else
    complete -o nospace -o bashdefault -F _clap_complete_git_proq git-proq
fi

__git_proq_reply() {
    local word=${!#} line width=0 columns=${COLUMNS:-80} replies=() prefix=
    [[ ${COMP_WORDBREAKS-} == *[=:]* ]] && prefix=${word%"${word##*[=:]}"}
    COMPREPLY=()
    while IFS= read -r line; do
        line=${line#"$prefix"}
        replies+=("$line")
        line=${line%%$'\t'*}
        COMPREPLY+=("$line")
        ((${#line} > width)) && width=${#line}
    done < <(PROQ_COMPLETE=fish git-proq -- git-proq "$@" 2>/dev/null)
    compopt +o nospace -o nosort 2>/dev/null
    [[ " $* " == *" -- "* ]] || compopt +o default +o bashdefault 2>/dev/null
    [[ ${COMPREPLY-} == *[=/:] ]] && compopt -o nospace 2>/dev/null
    [[ ${COMP_TYPE-} == 63 || ${COMP_TYPE-} == 33 ]] || return 0
    ((${#replies[@]} > 1 && ${#replies[@]} < ${LINES:-24} - 1 && columns > width + 9)) || return 0
    COMPREPLY=()
    for line in "${replies[@]}"; do
        if [[ $line == *$'\t'* ]]; then
            printf -v line "%-${width}s  (%s)" "${line%%$'\t'*}" "${line#*$'\t'}"
            ((${#line} < columns)) || line="${line:0:columns - 5}...)"
        fi
        COMPREPLY+=("$line")
    done
}

_git_proq() {
    local at=${__git_cmd_idx-}
    if [[ -z $at ]]; then
        at=1
        while [[ $at -lt $cword && ${words[at]} != proq ]]; do
            at=$((at + 1))
        done
    fi
    __git_proq_reply "${__git_C_args[@]}" "${words[@]:at + 1:cword - at - 1}" "$cur"
}
