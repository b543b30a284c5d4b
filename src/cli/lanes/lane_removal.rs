//! Removal of lanes: its steps, its output, and its dry run.

use proq_base::config::settings::Settings;
use proq_base::lane_name::LaneName;
use proq_git::worktrees::worktree::WorktreeList;
use proq_lib::agent::control::stop;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::evidence;
use proq_lib::lane::removal::remove_lane::{RemovalReason, RemovedLane};
use proq_lib::lane::state::lane_state::effective_state;
use proq_lib::lane::worktree::trash;
use proq_lib::operation::journaled_operation::Operation;
use proq_lib::preview::remove_lane::RemoveResult;
use proq_lib::session::read_only;
use proq_store::records::lane::AnyLane;
use serde::Serialize;

use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::ui;

/// JSON record of a lane that was or would be removed.
#[derive(Serialize)]
pub(crate) struct LaneRemoval {
    lane: LaneName,
    removed: bool,
    /// Name of the removed lane in the history: `name@N`.
    #[serde(rename = "history", skip_serializing_if = "Option::is_none")]
    history_name: Option<String>,
    /// Ref that keeps unlanded commits of the lane.
    #[serde(rename = "saved", skip_serializing_if = "Option::is_none")]
    saved_ref: Option<String>,
    /// Id of the snapshot of uncommitted changes.
    #[serde(rename = "uncommitted", skip_serializing_if = "Option::is_none")]
    uncommitted_snapshot: Option<String>,
    /// Path of the lane's entry in the trash.
    #[serde(skip_serializing_if = "Option::is_none")]
    trash: Option<String>,
    /// Number of messages that never reached the lane's agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "untold")]
    unsent_messages: Option<usize>,
    /// Why the lane was retained; in a dry run, what would be saved before the removal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "why")]
    reasons: Vec<String>,
}

impl LaneRemoval {
    /// Returns whether the lane has been removed.
    pub(crate) fn is_removed(&self) -> bool {
        self.removed
    }
}

/// The JSON output of `discard` and `cleanup`.
#[derive(Serialize)]
pub(crate) struct RemovalOutput {
    pub(crate) lanes: Vec<LaneRemoval>,
    pub(crate) dry_run: bool,
}

/// Returns the JSON record of a lane that was not removed, with the reason.
pub(crate) fn retained_lane_row(lane: &LaneName, failure: &Failure) -> LaneRemoval {
    let reasons = vec![failure.0.to_string()];
    LaneRemoval {
        lane: lane.clone(),
        removed: false,
        history_name: None,
        saved_ref: None,
        uncommitted_snapshot: None,
        trash: None,
        unsent_messages: None,
        reasons,
    }
}

/// Runs the pre-remove hooks of the lanes, and with `force` stops their running agents. No lock is held
/// during this. Returns a result for each lane, in order.
pub(crate) fn run_hooks_and_stop_agents(
    project: &Project,
    names: &[LaneName],
    force: bool,
) -> Vec<Result<(), Failure>> {
    let prepare = |name: &LaneName| {
        let lane = project.any_lane(name)?;
        project.run_pre_remove_hooks(name)?;
        let (state, _) = effective_state(project, &lane)?;
        if force && state.is_busy() {
            stop::stop(project, name)?;
        }
        Ok(())
    };
    names.iter().map(prepare).collect()
}

/// Ends a preview of the lane, removes the lane, and prints how to recover what it contained.
pub(crate) fn remove_lane(
    context: &CommandContext,
    op: &Operation<'_>,
    name: &LaneName,
    reason: RemovalReason,
    force: bool,
) -> Result<LaneRemoval, Failure> {
    let project = op.project;
    let lane = project.any_lane(name)?;
    if lane.purpose().is_some() {
        return remove_guest_lane(context, op, &lane, reason);
    }
    let RemoveResult { removed, left_preview: restored_checkout } = op.attempt_or_revert(|| {
        proq_lib::preview::remove_lane::remove_previewed_lane(op, name, reason, force)
    })?;
    if let Some(restored_checkout) = restored_checkout {
        context.ui.status(format!(
            "left the preview of '{name}'; the main checkout is on {} again",
            restored_checkout.head
        ));
        restored_checkout.warn_conflict(project);
    }
    let verb = if reason == RemovalReason::Discard { "discarded" } else { "cleaned up" };
    if !context.ui.json {
        context.ui.print_line(format!("{verb} {name}"));
        print_restore_commands(context, &project.settings, &removed, reason);
    }
    Ok(LaneRemoval {
        lane: name.clone(),
        removed: true,
        history_name: Some(removed.history_name.clone()),
        saved_ref: removed.saved_ref.clone(),
        uncommitted_snapshot: removed.uncommitted_snapshot.map(|id| id.to_string()),
        trash: Some(removed.trash_entry.display().to_string()),
        unsent_messages: Some(removed.undelivered_messages).filter(|n| *n > 0),
        reasons: Vec::new(),
    })
}

/// Removes a guest lane, which has no branch. Its last answer stays readable in the history of removed lanes.
fn remove_guest_lane(
    context: &CommandContext,
    op: &Operation<'_>,
    lane: &AnyLane,
    reason: RemovalReason,
) -> Result<LaneRemoval, Failure> {
    let past_name = op.attempt_or_revert(|| read_only::remove_guest_lane(op, lane, reason))?;
    if !context.ui.json {
        let verb = if reason == RemovalReason::Discard { "discarded" } else { "cleaned up" };
        context.ui.print_line(format!("{verb} {}", lane.name));
        let retained = if lane.is_read_only() { "what was said stays" } else { "its record stays" };
        context.ui.status(format!("{retained} for a while: git proq show {past_name}"));
    }
    Ok(LaneRemoval {
        lane: lane.name.clone(),
        removed: true,
        history_name: Some(past_name),
        saved_ref: None,
        uncommitted_snapshot: None,
        unsent_messages: None,
        trash: None,
        reasons: Vec::new(),
    })
}

/// Prints how to recover what a removed lane contained: unlanded commits, uncommitted files, and its folder
/// in the trash. Landed work needs no recovery.
pub(crate) fn print_restore_commands(
    context: &CommandContext,
    settings: &Settings,
    removed: &RemovedLane,
    reason: RemovalReason,
) {
    if let (true, Some(tip)) = (removed.has_unlanded, removed.tip) {
        context.ui.status(format!("its commits are kept: git branch NEW-NAME {}", tip.short()));
    }
    if let Some((location, tip)) = &removed.off_branch_commit {
        context.ui.status(format!("its commits on {location} are kept: git branch NEW-NAME {}", tip.short()));
    }
    if let Some(id) = removed.uncommitted_snapshot {
        context.ui.status(format!("its uncommitted files are kept: git stash apply {}", id.short()));
    }
    if let (false, Some(content)) = (removed.unreadable_paths.is_empty(), removed.trash_contents) {
        context.ui.warn(format!(
            "{}: {content} stays in the trash until you move it out: {}",
            trash::describe_unreadable(&removed.unreadable_paths),
            removed.trash_entry.display()
        ));
    } else if let (RemovalReason::Discard, Some(content)) = (reason, removed.trash_contents) {
        let days = settings.trash_keep.as_secs() / (24 * 60 * 60);
        context.ui.status(format!(
            "{content} is kept for {}: {}",
            ui::pluralize(usize::try_from(days).unwrap_or(usize::MAX), "day"),
            removed.trash_entry.display()
        ));
    }
}

/// Prints what the removal of a lane would do, or fails with the reason why the lane would be retained.
pub(crate) fn report_dry_run(
    context: &CommandContext,
    project: &Project,
    name: &LaneName,
    force: bool,
) -> Result<LaneRemoval, Failure> {
    let lane = project.any_lane(name)?;
    let Ok(lane) = lane.clone().into_owned_lane() else {
        return report_guest_dry_run(context, project, &lane, force);
    };
    let mut evidence = evidence::gather(project, &lane, &WorktreeList::read(&project.repo)?)?;
    // With `force`, its agent is stopped first.
    let stops_agent = force && evidence.busy_state.is_some();
    if stops_agent {
        evidence.busy_state = None;
        evidence.resident_processes.clear();
    }
    proq_lib::lane::removal::remove_lane::refuse_removal(&lane, &evidence, force)?;
    let saved = evidence.objections(&lane.base);
    let more = if saved.is_empty() { String::new() } else { format!(", after saving: {}", saved.join("; ")) };
    let prefix = if stops_agent { "stop its agent and " } else { "" };
    context.ui.status(format!("would {prefix}discard {name}{more}"));
    Ok(LaneRemoval {
        lane: name.clone(),
        removed: false,
        history_name: None,
        saved_ref: None,
        uncommitted_snapshot: None,
        unsent_messages: None,
        trash: None,
        reasons: saved,
    })
}

/// Prints what the removal of a guest lane would do. Fails if its agent runs, unless `force` is set.
fn report_guest_dry_run(
    context: &CommandContext,
    project: &Project,
    lane: &AnyLane,
    force: bool,
) -> Result<LaneRemoval, Failure> {
    let busy = read_only::require_idle_for_removal(project, lane);
    let prefix = if busy.is_err() && force { "stop its agent and " } else { "" };
    if !force {
        busy?;
    }
    context.ui.status(format!("would {prefix}discard {}", lane.name));
    Ok(LaneRemoval {
        lane: lane.name.clone(),
        removed: false,
        history_name: None,
        saved_ref: None,
        uncommitted_snapshot: None,
        unsent_messages: None,
        trash: None,
        reasons: Vec::new(),
    })
}
