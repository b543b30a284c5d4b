#compdef git-proq
function _clap_dynamic_completer_git_proq() {
    local _CLAP_COMPLETE_INDEX=$(expr $CURRENT - 1)
    local _CLAP_IFS=$'\n'

    local completions=("${(@f)$( \
        _CLAP_IFS="$_CLAP_IFS" \
        _CLAP_COMPLETE_INDEX="$_CLAP_COMPLETE_INDEX" \
        PROQ_COMPLETE="zsh" \
        git-proq -- "${words[@]}" 2>/dev/null \
    )}")

    if [[ -n $completions ]]; then
        local -a dirs=()
        local -a other=()
        local completion
        for completion in $completions; do
            local value="${completion%%:*}"
            if [[ "$value" == */ ]]; then
                local dir_no_slash="${value%/}"
                if [[ "$completion" == *:* ]]; then
                    local desc="${completion#*:}"
                    dirs+=("$dir_no_slash:$desc")
                else
                    dirs+=("$dir_no_slash")
                fi
            else
                other+=("$completion")
            fi
        done
        [[ -n $dirs ]] && _describe -V 'values' dirs -S '/' -r '/'
        [[ -n $other ]] && _describe -V 'values' other
    fi
}

compdef _clap_dynamic_completer_git_proq git-proq

_git-proq() {
    words[1]=git-proq
    if [[ -n "${opt_args[-C]-}" ]]; then
        words=(git-proq -C "${(Q)${~opt_args[-C]}}" "${(@)words[2,-1]}")
        (( CURRENT += 2 ))
    fi
    _clap_dynamic_completer_git_proq
}

if [[ "$funcstack[1]" = "_git-proq" ]]; then
    _git-proq "$@"
fi
