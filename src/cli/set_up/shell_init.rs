//! `git proq shell-init`: the shell function `proq`, which can change the shell's folder.

use clap::Args;
use proq_base::explain::Exit;

use super::completion_script::{COMPLETE_VARIABLE, bash_reply_function};
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// The supported shells.
const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];

/// Print a shell function that changes to lanes: proq cd LANE
///
/// `proq cd LANE` changes the folder of your shell to the worktree of the lane, `proq cd` to the main checkout. `proq` with
/// anything else runs `git proq`. Add the line for your shell to its start-up file:
///
///   eval "$(git proq shell-init bash)"        ~/.bashrc, or zsh in ~/.zshrc
///
///   git proq shell-init fish | source         ~/.config/fish/config.fish
///
/// Example:
///     git proq shell-init fish | source
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ShellInit {
    /// The shell
    #[arg(value_name = "SHELL", value_parser = SHELLS)]
    pub(crate) shell: String,
}

pub(crate) fn run(context: &CommandContext, args: &ShellInit) -> CommandResult {
    let (function, completion) = match args.shell.as_str() {
        "fish" => (FISH_FUNCTION, FISH_COMPLETION.to_owned()),
        "zsh" => (POSIX_FUNCTION, ZSH_COMPLETION.to_owned()),
        _ => (POSIX_FUNCTION, format!("{}{BASH_COMPLETION}", bash_reply_function())),
    };
    let completion = completion.replace("COMPLETE_VARIABLE", COMPLETE_VARIABLE);
    context.ui.print_text(&format!("{function}\n{completion}"));
    Ok(Exit::Success)
}

/// The function for bash and zsh. The main checkout is the first worktree that git lists.
const POSIX_FUNCTION: &str = r#"proq() {
    if [ "$1" != cd ]; then
        command git proq "$@"
        return
    fi
    shift
    local proq_dir
    if [ $# -gt 0 ]; then
        proq_dir=$(command git proq open --path "$@") || return
    else
        proq_dir=$(command git worktree list --porcelain) || return
        proq_dir=${proq_dir%%
*}
        proq_dir=${proq_dir#worktree }
    fi
    case $proq_dir in
        /*) cd "$proq_dir" ;;
        *) printf '%s\n' "$proq_dir" ;;
    esac
}
"#;

/// Completion of the function in bash. `proq cd` takes what `git proq open` takes.
const BASH_COMPLETION: &str = r#"_proq() {
    local line=("${COMP_WORDS[@]:1:COMP_CWORD - 1}" "$2")
    [[ $COMP_CWORD -gt 1 && ${line[0]} == cd ]] && line[0]=open
    __git_proq_reply "${line[@]}"
}
complete -o bashdefault -o default -F _proq proq
"#;

/// Completion of the function in zsh, if its completion system is on.
const ZSH_COMPLETION: &str = r#"_proq() {
    local -a line values
    line=(git-proq "${(@)words[2,-1]}")
    [[ $CURRENT -gt 2 && ${line[2]} == cd ]] && line[2]=open
    values=("${(@f)$( \
        _CLAP_IFS=$'\n' \
        _CLAP_COMPLETE_INDEX=$((CURRENT - 1)) \
        COMPLETE_VARIABLE=zsh \
        git-proq -- "${line[@]}" 2>/dev/null \
    )}")
    [[ -n "$values" ]] && _describe -V 'values' values
}
(( $+functions[compdef] )) && compdef _proq proq
true
"#;

/// The function for fish.
const FISH_FUNCTION: &str = r#"function proq
    if test "$argv[1]" != cd
        command git proq $argv
        return
    end
    if test (count $argv) -gt 1
        set -f proq_dir (command git proq open --path $argv[2..-1]); or return
    else
        set -f proq_dir (command git worktree list --porcelain)[1]; or return
        set -f proq_dir (string replace --regex '^worktree ' '' -- $proq_dir)
    end
    if string match --quiet -- '/*' $proq_dir[1]
        cd $proq_dir[1]
    else
        printf '%s\n' $proq_dir
    end
end
"#;

/// Completion of the function in fish.
const FISH_COMPLETION: &str = r"function __proq_complete
    set -l line (commandline --current-process --tokenize --cut-at-cursor)
    set line[1] git-proq
    if test (count $line) -gt 1; and test $line[2] = cd
        set line[2] open
    end
    COMPLETE_VARIABLE=fish git-proq -- $line (commandline --current-token)
end
complete --keep-order --exclusive --command proq --arguments '(__proq_complete)'
";
