//! The `git proq cleanup` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::{Exit, Explain};
use proq_base::lane_name::LaneName;
use proq_git::worktrees::worktree::WorktreeList;
use proq_lib::lane::Project;
use proq_lib::lane::inspection::{evidence, list};
use proq_lib::lane::removal::remove_lane::RemovalReason;
use proq_lib::lane::removal::{expire, unrecorded_worktree};
use proq_lib::lane::state::lane_state::effective_state;
use proq_lib::operation::run_operation::operate;
use proq_lib::session::read_only;
use proq_lib::swarm::batch::create;
use proq_lib::swarm::landing::batch_cleanup;
use proq_store::base::batch_id::BatchId;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use super::lane_removal::{
    LaneRemoval, RemovalOutput, remove_lane, retained_lane_row, run_hooks_and_stop_agents,
};
use crate::cli::arguments::candidates::{any_lane_names, batch_ids};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::invocation::{caller, failure};

/// Tidy up lanes that are done with
///
/// Without LANE, those that landed and those that a crash left half-made. A lane with anything that is not on its base is
/// kept, and the answer says why. A lane that is named goes too when somebody brought its changes to the base by hand.
///
/// Examples:
///     git proq cleanup
///     git proq cleanup --all
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Cleanup {
    /// These lanes only
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lanes: Vec<String>,
    /// Also lanes that changed nothing, failed ones without work, and those that came to no answer
    #[arg(long, conflicts_with = "lanes")]
    pub(crate) all: bool,
    /// Remove the named lanes, or the batch, whatever is in them, saving it all first
    #[arg(long, short, conflicts_with = "all")]
    pub(crate) force: bool,
    /// The lanes and the branch of this batch, with everything in them saved; what has landed on its branch has to be on its base
    #[arg(long, value_name = "BATCH", conflicts_with_all = ["lanes", "all"], add = ArgValueCompleter::new(batch_ids))]
    pub(crate) batch: Option<String>,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Cleanup) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(args.dry_run)?;
    if let Some(batch_name) = &args.batch {
        return clean_up_batch(context, &project, batch_name, args);
    }
    let has_names = !args.lanes.is_empty();
    let lanes = selected_lanes(&project, args)?;
    let mut results = Vec::new();
    let mut exit = Exit::Success;
    let mut add_result = |name: &LaneName, result: Result<Option<LaneRemoval>, Failure>| match result {
        Ok(removal) => results.extend(removal),
        Err(failure) => {
            results.push(retained_lane_row(name, &failure));
            // An unnamed lane with work in it is only reported, since retaining it is the purpose of cleanup.
            // A failed removal is an error.
            if has_names || !failure.0.is_decision() {
                exit = if context.ui.json { Exit::Refused } else { failure::print_failure(&failure, false) };
            } else if !context.ui.json {
                context.ui.status(failure.0.to_string());
            }
        }
    };
    let names: Vec<LaneName> = lanes.iter().map(|l| l.name.clone()).collect();
    if args.dry_run {
        for lane in &lanes {
            add_result(&lane.name, report_dry_run(context, &project, lane, args));
        }
    } else {
        let stop_results = run_hooks_and_stop_agents(&project, &names, args.force);
        operate(&project, "cleanup", |op| {
            for (name, stop_result) in names.iter().zip(stop_results) {
                let result = stop_result
                    .and_then(|()| remove_lane(context, op, name, RemovalReason::Cleanup, args.force));
                add_result(name, result.map(Some));
            }
            Ok::<_, Failure>(())
        })?;
    }
    let (unrecorded, unrecorded_exit) =
        if has_names { (0, Exit::Success) } else { remove_unrecorded_worktrees(context, &project, args)? };
    if context.ui.json {
        context.ui.print_json(RemovalOutput { lanes: results, dry_run: args.dry_run });
    } else if lanes.is_empty() && unrecorded == 0 {
        context.ui.status("no lane to clean up");
    }
    if !args.dry_run {
        expire::delete_expired(&project)?;
    }
    Ok(if exit == Exit::Success { unrecorded_exit } else { exit })
}

/// Returns the named lanes, or all candidates if none is named.
fn selected_lanes(project: &Project, args: &Cleanup) -> Result<Vec<AnyLane>, Failure> {
    let mut lanes = Vec::new();
    for name in &args.lanes {
        lanes.push(project.find_any_lane(name)?);
    }
    if !args.lanes.is_empty() {
        return Ok(lanes);
    }
    if args.force {
        let problem = "--force is for lanes or a batch that are named";
        return Err(
            UsageError::MissingArgument { problem, example: "git proq cleanup payments --force" }.into()
        );
    }
    for lane in project.all_lanes()? {
        if is_cleanup_candidate(project, &lane, args.all)? {
            lanes.push(lane);
        }
    }
    Ok(lanes)
}

/// Removes the lanes and the branch of a batch.
fn clean_up_batch(context: &CommandContext, project: &Project, name: &str, args: &Cleanup) -> CommandResult {
    #[derive(Serialize)]
    struct BatchCleanupOutput<'a> {
        batch: &'a BatchId,
        lanes: &'a [LaneName],
        #[serde(rename = "saved")]
        saved_ref: Option<&'a str>,
        dry_run: bool,
    }
    let batch = create::find_batch(project, name)?;
    let outcome = batch_cleanup::clean_up(project, &batch, args.force, args.dry_run)?;
    if context.ui.json {
        let (lanes, saved) = (outcome.lanes.as_slice(), outcome.saved_ref.as_deref());
        context.ui.print_json(BatchCleanupOutput {
            batch: &batch.id,
            lanes,
            saved_ref: saved,
            dry_run: args.dry_run,
        });
        return Ok(Exit::Success);
    }
    let lanes = crate::cli::terminal::ui::pluralize(outcome.lanes.len(), "lane");
    let verb = if args.dry_run { "would clean up" } else { "cleaned up" };
    context.ui.print_line(format!("{verb} batch {}: {lanes}", batch.id));
    if let Some(saved) = outcome.saved_ref {
        context.ui.print_line(format!("  what landed on its branch is kept: git log {saved}"));
    }
    if !args.dry_run {
        context.ui.hint("bring it all back: git proq undo");
        expire::delete_expired(project)?;
    }
    Ok(Exit::Success)
}

/// Returns whether a lane that was not named is considered for removal, by its state. Its evidence decides
/// afterwards.
fn is_cleanup_candidate(project: &Project, lane: &AnyLane, include_all: bool) -> Result<bool, Failure> {
    // The batch decides whether to retain or remove its own lanes.
    if lane.batch.as_ref().is_some_and(|batch_lane| {
        create::find_batch(project, batch_lane.batch.as_str()).is_ok_and(|b| b.cleaned.is_none())
    }) {
        return Ok(false);
    }
    let (state, _) = effective_state(project, lane)?;
    let Some(branch) = lane.branch() else {
        // An agent's answer is retained until the user removes it explicitly.
        let has_no_answer = matches!(state, LaneState::Failed | LaneState::Stalled | LaneState::Stopped);
        let is_finished = lane.works_in_place() && !state.is_busy();
        return Ok(include_all && (has_no_answer || is_finished));
    };
    let is_missing = !lane.path.exists() || project.repo.branch_tip(branch)?.is_none();
    Ok(match state {
        LaneState::Landed => true,
        LaneState::NoChange | LaneState::Failed | LaneState::Stalled | LaneState::Stopped => {
            include_all || is_missing
        }
        LaneState::Done if lane.already_done => include_all || is_missing,
        LaneState::Starting | LaneState::Running | LaneState::Orphaned => false,
        _ => is_missing,
    })
}

fn report_dry_run(
    context: &CommandContext,
    project: &Project,
    lane: &AnyLane,
    args: &Cleanup,
) -> Result<Option<LaneRemoval>, Failure> {
    match lane.clone().into_owned_lane() {
        Ok(lane) => {
            let evidence = evidence::gather(project, &lane, &WorktreeList::read(&project.repo)?)?;
            proq_lib::lane::removal::remove_lane::refuse_removal(&lane, &evidence, args.force)?;
        }
        Err(_) if args.force => {}
        Err(_) => read_only::require_idle_for_removal(project, lane)?,
    }
    context.ui.status(format!("would clean up {}", lane.name));
    Ok(None)
}

/// Removes worktrees that a killed process left without a record, if they hold no work. Worktrees with work
/// become lanes.
///
/// Returns how many unrecorded worktrees there were, and the exit code.
fn remove_unrecorded_worktrees(
    context: &CommandContext,
    project: &Project,
    args: &Cleanup,
) -> Result<(usize, Exit), Failure> {
    let worktrees = WorktreeList::read(&project.repo)?;
    let unrecorded = list::unrecorded_worktrees(project, &project.owned_lanes()?, &worktrees)?;
    let verb = if args.dry_run { "would clean up" } else { "cleaned up" };
    let mut exit = Exit::Success;
    for path in &unrecorded {
        match unrecorded_worktree::remove_unrecorded(project, path, args.dry_run) {
            Ok(false) => {}
            Ok(true) => context.ui.status(format!("{verb} {}, which no lane has on record", path.display())),
            Err(e) if e.is_decision() => context.ui.status(e.to_string()),
            Err(e) => exit = failure::print_failure(&e.into(), false),
        }
    }
    Ok((unrecorded.len(), exit))
}
