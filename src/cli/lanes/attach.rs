//! The `git proq attach` command.

use std::io::IsTerminal;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_lib::agent::tmux::tmux_window;

use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Enter the window of a lane's agent
///
/// It is there for an agent that was started with --tmux. Inside of tmux the window is switched to; elsewhere tmux is entered, and
/// left again with its own keys (Ctrl-b d). The agent goes on either way.
///
/// Example:
///     git proq attach payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Attach {
    /// The lane
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
}

pub(crate) fn run(context: &CommandContext, args: &Attach) -> CommandResult {
    let project = context.project()?;
    let lane = project.find_any_lane(&args.lane)?;
    let has_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    tmux_window::attach_commands(&project, &lane)?.attach(has_terminal)?;
    Ok(Exit::Success)
}
