//! The `git proq man` command.

use std::path::PathBuf;

use clap::{Args, Command};
use proq_base::explain::Exit;

use super::man_pages::all_man_pages;
use crate::cli::arguments::user_files::write_file_and_folders;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;

/// Print the man page of a command
///
/// Examples:
///     git proq man spawn | man -l -
///     git proq man --dir ~/.local/share/man/man1
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq man [OPTIONS] [COMMAND]\n       git proq man [OPTIONS] --dir DIR")]
pub(crate) struct Man {
    /// The command; without it, the page of git-proq itself
    #[arg(value_name = "COMMAND", conflicts_with = "pages")]
    pub(crate) command: Option<String>,
    /// Write all pages to DIR
    #[arg(id = "pages", long = "dir", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

pub(crate) fn run(context: &CommandContext, args: &Man, grammar: Command) -> CommandResult {
    if let Some(dir) = &args.dir {
        for (name, text) in all_man_pages(grammar) {
            write_file_and_folders(&dir.join(&name), text.as_bytes())?;
            context.ui.status(dir.join(&name).display().to_string());
        }
        return Ok(Exit::Success);
    }
    let name = match &args.command {
        Some(command) => format!("git-proq-{command}.1"),
        None => "git-proq.1".to_owned(),
    };
    let (_, text) =
        all_man_pages(grammar).into_iter().find(|(n, _)| *n == name).ok_or(UsageError::MissingArgument {
            problem: "there is no such command",
            example: "git proq man spawn",
        })?;
    context.ui.print_text(&text);
    Ok(Exit::Success)
}
