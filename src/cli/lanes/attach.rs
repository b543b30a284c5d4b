//! The `git proq attach` command.

use std::io::IsTerminal;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_lib::agent::tmux::tmux_window;

use crate::cli::arguments::candidates::any_lane_names;
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Attach to a lane's tmux window
///
/// The window exists if the agent was started with --tmux. Inside tmux, this switches to the window;
/// elsewhere it attaches a tmux client, which Ctrl-b d detaches. The agent keeps running either way.
///
/// Example:
///     git proq attach payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Attach {
    /// Lane name
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
