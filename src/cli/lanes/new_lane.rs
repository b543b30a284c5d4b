//! Warnings and reports around a new lane.

use std::path::Path;

use proq_base::explain::{Exit, shell_quote};
use proq_git::base::error;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::lane;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::evidence;
use proq_lib::operation::locked_worktree::LockedWorktree;
use proq_store::records::lane::{AnyLane, LaneRecord};

use super::spawn_args::Spawn;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::runs::follow_run;
use crate::cli::runs::lane_output::{follow_hint, print_created};

/// Pending check for uncommitted changes of tracked files in the worktree that a lane is spawned from.
pub(crate) struct UncommittedWarning<'a> {
    project: &'a Project,
    /// Worktree to check.
    worktree: Option<&'a Path>,
    /// Whether the lane is given the changes too (`--carry`).
    is_carried: bool,
}

impl<'a> UncommittedWarning<'a> {
    /// Prepares the check of `worktree`, without reading any file yet.
    pub(crate) fn from_args(
        project: &'a Project,
        args: &Spawn,
        worktree: Option<&'a Path>,
    ) -> UncommittedWarning<'a> {
        UncommittedWarning { project, worktree, is_carried: args.carry }
    }

    /// Prints the warning with the names of the changed files. A worktree equal to `unchanged` is known to
    /// have no changes. The check may read every file of the worktree, so call it when the lane is already in
    /// use.
    pub(crate) fn warn(self, context: &CommandContext, unchanged: Option<&Path>) {
        let Some(worktree) = self.worktree.filter(|worktree| unchanged != Some(worktree) || self.is_carried)
        else {
            return;
        };
        let result = match self.is_carried {
            true => hidden_edit_names(self.project, worktree).map_err(|e| e.to_string()),
            false => evidence::changed_file_names(&self.project.repo, worktree).map_err(|e| e.to_string()),
        };
        // The lane already exists, so a failure of git here is only a warning.
        match result {
            Ok(None) => {}
            Ok(Some(names)) if self.is_carried => context.ui.warn(format!("edits that git status does not show stay where they are (skip-worktree, assume-unchanged): {names}")),
            Ok(Some(names)) => context.ui.warn(format!("the lane starts without your uncommitted changes ({names}); --carry takes them along")),
            Err(e) => context.ui.warn(format!("whether you have uncommitted changes cannot be told: {e}")),
        }
    }
}

/// Returns the names of edited tracked files that `git status` does not show; `None` if there are none.
fn hidden_edit_names(project: &Project, worktree: &Path) -> Result<Option<String>, lane::Error> {
    let paths = LockedWorktree::lock(project, worktree)?.edits_hidden_from_status()?;
    Ok((!paths.is_empty()).then(|| error::list_paths(&paths)))
}

/// Reports a new lane and the agent that was started in it, or follows the run.
///
/// `warn_uncommitted` may read every file of the main checkout. It is called only when the lane is in use and
/// reported, or when nothing could be started in it.
pub(crate) fn report_or_follow_spawned(
    context: &CommandContext,
    project: &Project,
    (mut lane, agent_command): (LaneRecord, Option<&AgentCommand>),
    start_result: Result<Option<AnyLane>, Failure>,
    wait: bool,
    warn_uncommitted: impl FnOnce(),
) -> CommandResult {
    let is_followed = start_result.as_ref().is_ok_and(|started| wait && started.is_some());
    if let (Ok(started), false) = (&start_result, is_followed) {
        lane.status = started.as_ref().map_or(lane.status, |started_lane| started_lane.status);
        print_created(context, &lane, agent_command);
    }
    warn_uncommitted();
    if let (Some(started_lane), true) = (start_result?, is_followed) {
        return follow_run::follow_and_report(context, project, &started_lane, agent_command);
    }
    let next_step = agent_command.map_or_else(
        || format!("cd {}", shell_quote(&lane.path.to_string_lossy())),
        |agent_command| follow_hint(agent_command, &lane.name),
    );
    context.ui.hint(next_step);
    Ok(Exit::Success)
}
