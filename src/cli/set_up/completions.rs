//! The `git proq completions` command.

use clap::Args;
use proq_base::explain::Exit;

use super::completion_script::{SHELLS, completion_script};
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Print a shell completion script
///
/// `git proq setup` installs those for bash, fish and zsh. For other shells, add the output to their
/// start-up file: $PROFILE (PowerShell) or ~/.config/elvish/rc.elv (elvish).
///
/// Example:
///     git proq completions bash >> ~/.bashrc
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_name = "SHELL", value_parser = SHELLS)]
    pub(crate) shell: String,
}

pub(crate) fn run(context: &CommandContext, args: &CompletionsArgs) -> CommandResult {
    context.ui.print_text(&completion_script(&args.shell));
    Ok(Exit::Success)
}
