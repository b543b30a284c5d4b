//! The `git proq rename` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::lane_name::LaneName;
use proq_lib::ops::edit::rename;
use proq_lib::ops::edit::rename::RenameRequest;

use crate::cli::arguments::candidates::owned_lane_names;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Rename a lane, with its branch and worktree
///
/// The branch, the folder of the worktree and the records of the lane get the new name. Uncommitted files stay as
/// they are, and `git proq undo` renames the lane back. A branch on a remote keeps its name.
///
/// A lane cannot be renamed while its agent runs, while it is previewed or landing, and as part of a batch. To
/// change only its title: `git proq edit LANE --title TEXT`. An agent that finds its conversations by folder,
/// such as Claude Code, may start a new one at the next `git proq send`.
///
/// Examples:
///     git proq rename implement-payments payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Rename {
    /// Lane to rename
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lane: String,
    /// New name of the lane
    #[arg(value_name = "NEW-NAME")]
    pub(crate) name: String,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Rename) -> CommandResult {
    let name = LaneName::from_user(&args.name)?;
    let project = context.project_for_write()?;
    let lane = project.find_lane(&args.lane)?;
    caller::refuse_agent_for_other_lanes(std::slice::from_ref(&lane.name), args.dry_run)?;
    let plan = rename::plan(&project, RenameRequest { lane, name })?;
    let renamed = if args.dry_run { plan.forecast() } else { plan.execute(&project)? };
    context.show(&renamed, |context, renamed| {
        let verb = if args.dry_run { "would rename" } else { "renamed" };
        context.ui.print_line(format!("{verb} lane {} to {}", renamed.old_name, renamed.lane));
        context.ui.print_line(format!("  branch    {}", renamed.branch));
        context.ui.print_line(format!("  worktree  {}", context.display_path(&renamed.path)));
        for branch in &renamed.remote_branches {
            context.ui.print_line(format!("{branch} keeps its name"));
        }
    })
}
