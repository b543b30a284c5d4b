//! `git proq help` and `git proq version`.

use clap::{Args, Command};
use proq_base::explain::{Exit, closest_match};

use super::command_groups::all_commands;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::page;

/// Show help for git-proq or a command
///
/// On a terminal, a long text is shown .
///
/// Examples:
///     git proq help --all
///     git proq help merge
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Help {
    /// Command, such as `merge` or `op log` [default: the overview]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// List all commands, by group
    #[arg(long, short, conflicts_with = "command")]
    pub(crate) all: bool,
}

/// Print the version of git-proq
///
/// Example:
///     git proq version
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Version {}

pub(crate) fn run(context: &CommandContext, args: &Help, mut grammar: Command) -> CommandResult {
    grammar.build();
    if args.all {
        let header = *grammar.get_styles().get_header();
        let heading = |text: &str| format!("{header}{text}:{header:#}");
        print_styled(context, &all_commands(&grammar, heading));
        return Ok(Exit::Success);
    }
    let mut command = &grammar;
    for name in &args.command {
        let visible = || command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let Some(next) = command.find_subcommand(name).filter(|sub| !sub.is_hide_set()) else {
            let similar = closest_match(name, visible().map(Command::get_name)).map(ToOwned::to_owned);
            return Err(UsageError::UnknownCommand { name: name.clone(), similar }.into());
        };
        command = next;
    }
    let mut command = command.clone();
    let text = if args.command.is_empty() { command.render_help() } else { command.render_long_help() };
    print_styled(context, text.ansi().to_string().trim_end());
    Ok(Exit::Success)
}

/// Prints a text with its styles where colors are enabled, and without them elsewhere.
fn print_styled(context: &CommandContext, text: &str) {
    page::begin();
    let plain = (!console::colors_enabled()).then(|| console::strip_ansi_codes(text));
    plain.as_deref().unwrap_or(text).lines().for_each(|line| context.ui.print_line(line));
}

pub(crate) fn print_version(context: &CommandContext, _args: &Version) -> CommandResult {
    let version = env!("CARGO_PKG_VERSION");
    context.show(serde_json::json!({ "version": version }), |context, _| {
        context.ui.print_line(format!("git-proq {version}"));
    })
}
