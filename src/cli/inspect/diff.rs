//! The `git proq diff` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_lib::board::diff::LaneDiff;
use proq_lib::types::{PatchSelection, RepoPath, RunNumber};

use super::lane_diff;
use crate::cli::arguments::candidates::owned_lane_names;
use crate::cli::arguments::numbers::run_number;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;

/// Show a lane's changes, including uncommitted ones
///
/// The comparison is with the commit at which the lane left its base.
///
/// Examples:
///     git proq diff payments
///     git proq diff --stat payments
///     git proq diff --json --patch --path src/pay.rs payments
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Diff {
    /// Lane name [default: lane of the current folder]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(owned_lane_names))]
    pub(crate) lane: Option<String>,
    /// Show only which files changed, and how much
    #[arg(long)]
    pub(crate) stat: bool,
    /// Show only the changes of run N
    #[arg(long, value_name = "N", value_parser = run_number())]
    pub(crate) run: Option<RunNumber>,
    /// With --json, include hunks, lines, and changed words
    #[arg(long, conflicts_with = "stat")]
    pub(crate) patch: bool,
    /// Only the changed lines of PATH (requires --patch)
    #[arg(long, value_name = "PATH", requires = "patch")]
    pub(crate) path: Option<String>,
    /// Lines of context around each change (requires --patch)
    #[arg(long, value_name = "N", requires = "patch")]
    pub(crate) context: Option<u16>,
}

impl Diff {
    /// Returns the part of the difference whose lines are wanted in JSON; none without them.
    fn selection(&self) -> Result<Option<PatchSelection>, UsageError> {
        let example = "git proq diff payments --json --patch --path src/pay.rs";
        let error = UsageError::missing("--path takes the path of a file or folder, as JSON has it", example);
        let path =
            self.path.as_deref().map(|text| RepoPath::from_text(text.trim_end_matches('/')).ok_or(error));
        let path = path.transpose()?;
        Ok(self.patch.then_some(PatchSelection { path, context: self.context }))
    }
}

pub(crate) fn run(context: &CommandContext, args: &Diff) -> CommandResult {
    let selection = args.selection()?;
    let project = context.project_to_read()?;
    let name = caller::lane_or_current(&project, args.lane.as_ref())?;
    let diff = LaneDiff::open(&project, project.find_lane(&name)?, args.run)?;
    if context.ui.json {
        context.ui.print_json(diff.to_output(selection.as_ref())?);
    } else {
        lane_diff::print_diff(context, &diff, args.stat)?;
    }
    Ok(Exit::Success)
}
