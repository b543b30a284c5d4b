//! The `git proq diff` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_git::RepoPath;
use serde::Serialize;

use super::lane_diff::{print_diff, with_fork_point_and_worktree};
use crate::cli::arguments::candidates::owned_lane_names;
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Show what a lane changes, uncommitted work included
///
/// Compared with the commit where it left its base.
///
/// Examples:
///     git proq diff payments
///     git proq diff --stat payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Diff {
    /// The lane whose changes to show
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lane: String,
    /// Only which files change, and how much
    #[arg(long)]
    pub(crate) stat: bool,
}

/// JSON output: the fork point of a lane, and the files that the lane changes from there.
#[derive(Serialize)]
struct DiffOutput {
    lane: LaneName,
    /// Id of the commit that the changes are counted from: the current fork point.
    from: String,
    files: Vec<RepoPath>,
}

pub(crate) fn run(context: &CommandContext, args: &Diff) -> CommandResult {
    let project = context.project()?;
    let lane = project.find_lane(&args.lane)?;
    if context.ui.json {
        let (from, files) = with_fork_point_and_worktree(context, &project, &lane, |there, from, to| {
            Ok((from, project.repo.changed_files(there, from, to)?))
        })?;
        context.ui.print_json(DiffOutput { lane: lane.name, from: from.to_string(), files });
    } else {
        print_diff(context, &project, &lane, args.stat)?;
    }
    Ok(Exit::Success)
}
