//! Completion scripts of the shells, which request candidates from this program.

use clap_complete::env::Shells;

/// The supported shells, by the names that clap_complete uses.
pub(crate) const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// Environment variable by which a completion script requests candidates from this program.
pub(crate) const COMPLETE_VARIABLE: &str = "PROQ_COMPLETE";

/// Returns the completion script of a shell, for both `git-proq` and `git proq`.
pub(crate) fn completion_script(shell: &str) -> String {
    let shells = Shells::builtins();
    let mut out = Vec::new();
    if let Some(completer) = shells.completer(shell) {
        // A write to memory does not fail.
        drop(completer.write_registration(COMPLETE_VARIABLE, "git_proq", "git-proq", "git-proq", &mut out));
    }
    let mut text = String::from_utf8_lossy(&out).into_owned();
    text.push_str(&match shell {
        "bash" => format!("{}{BASH_GIT_SCRIPT}", bash_reply_function()),
        "fish" => FISH_GIT_SCRIPT.to_owned(),
        "zsh" => ZSH_GIT_SCRIPT.to_owned(),
        _ => String::new(),
    });
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    format!("{}\n", lines.join("\n"))
}

/// Returns the function of bash that completes a line, for the scripts that call it.
pub(crate) fn bash_reply_function() -> String {
    BASH_REPLY_FUNCTION.replace("COMPLETE_VARIABLE", COMPLETE_VARIABLE)
}

/// Completion of `git proq` in git's own bash completion, which calls `_git_proq`.
///
/// The line is in `words` and the word under the cursor is number `cword`. `proq` is number `__git_cmd_idx`,
/// which an older git does not set. Arguments between `git` and `proq` matter only if they change the folder.
const BASH_GIT_SCRIPT: &str = r#"
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
"#;

/// Function of bash that sets `COMPREPLY` for a line up to the cursor, whose words are its arguments without `git proq`.
///
/// In a list that fits on the screen, each candidate has its description, as with gh. Bash takes only the part of a word
/// behind its last `=` or `:`. Names of files are for the command after `--`.
const BASH_REPLY_FUNCTION: &str = r#"__git_proq_reply() {
    local word=${!#} line width=0 columns=${COLUMNS:-80} replies=() prefix=
    [[ ${COMP_WORDBREAKS-} == *[=:]* ]] && prefix=${word%"${word##*[=:]}"}
    COMPREPLY=()
    while IFS= read -r line; do
        line=${line#"$prefix"}
        replies+=("$line")
        line=${line%%$'\t'*}
        COMPREPLY+=("$line")
        ((${#line} > width)) && width=${#line}
    done < <(COMPLETE_VARIABLE=fish git-proq -- git-proq "$@" 2>/dev/null)
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
"#;

/// Completion of `git proq` in fish. Some versions of fish pass `git proq` on to `git-proq` already; a second
/// definition is harmless.
const FISH_GIT_SCRIPT: &str = r"
function __git_proq_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l dirs
    if set -l at (contains --index -- proq $words)
        for n in (seq 2 (math $at - 1))
            test $words[$n] = -C; and set --append dirs $words[$n..(math $n + 1)]
        end
        set --erase words[1..$at]
    end
    PROQ_COMPLETE=fish git-proq -- git-proq $dirs $words (commandline --current-token)
end
complete --no-files --command git --condition __fish_git_needs_command --arguments proq --description 'Run coding agents in lanes'
complete --keep-order --exclusive --command git --condition '__fish_git_using_command proq' --arguments '(__git_proq_complete)'
";

/// Completion of `git proq` in zsh, whose git completion calls `_git-proq` with `words` beginning at `proq`.
/// zsh also loads the file by that name at the first TAB, so the script must then complete at once.
const ZSH_GIT_SCRIPT: &str = r#"
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
"#;
