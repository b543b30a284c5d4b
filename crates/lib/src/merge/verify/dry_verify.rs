//! Check of what each lane would land alone, without landing it: from cached results, or by running the
//! commands now.

use std::path::Path;

use proq_git::repository::objects::TempObjectStore;
use proq_git::{CommitId, Repo};
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::check::FailedCheckRecord;
use proq_store::records::lane::LaneRecord;

use super::checked_stack::{PendingRef, VerifiedStack};
use super::verifier::Verifier;
use super::verify_cache;
use super::verify_cache::CheckInput;
use crate::lane::Project;
use crate::merge::Error;
use crate::merge::checks::check_commands::CheckCommands;
use crate::merge::queue::queue_turn::wait_to_check;
use crate::merge::stack::apply::StackContext;
use crate::merge::stack::commit_hooks::PreMergeCommitHook;
use crate::merge::stack::lane_stack::Stack;
use crate::merge::types::candidate::Candidate;
use crate::merge::types::options::{Landing, LandingOptions};
use crate::merge::types::outcome::CheckStatus;
use crate::operation::journaled_operation::Operation;
use crate::operation::run_operation::operate;

/// Returns the cached check status of each lane, without running a command.
pub(crate) fn cached_statuses(project: &Project, lanes: &[LaneRecord]) -> Result<Vec<CheckStatus>, Error> {
    lanes.iter().map(|lane| cached_status(project, lane)).collect()
}

/// Returns the check status of one lane, from the verify cache or the record of its failed check.
fn cached_status(project: &Project, lane: &LaneRecord) -> Result<CheckStatus, Error> {
    let mut commands = CheckCommands::default();
    let checks = project.landing_checks(&lane.base)?;
    let base_numbers = commands.add_base_commands(checks.commands);
    let numbers = commands.numbers_for_state(&base_numbers, std::iter::once(lane.checks.as_slice()));
    let command_lines = commands.lines_of(&numbers);
    if command_lines.is_empty() {
        return Ok(CheckStatus::NoChecks);
    }
    let Some(input) = check_input_if_landed(project, lane)? else { return Ok(CheckStatus::Unknown) };
    let cache_lines = verify_cache::cache_lines(&checks.set_up, command_lines.clone());
    if verify_cache::has_passed(project, &input, &cache_lines) {
        return Ok(CheckStatus::Passed);
    }
    // An unreadable record counts as missing.
    let failed = FailedCheckRecord::load_if_exists(&project.store.layout().failed_check_record(&lane.name))
        .ok()
        .flatten();
    let failed = failed.filter(|failed| failed.tree == input.tree && command_lines.contains(&failed.command));
    Ok(failed.map_or(CheckStatus::Unknown, |failed| CheckStatus::Failed {
        command: failed.command,
        ended: failed.exit_text,
        tail: Vec::new(),
    }))
}

/// Returns the input of a check of the lane merged into its base; none if they conflict, or if the lane's
/// branch or its base is missing. The repository does not change.
fn check_input_if_landed(project: &Project, lane: &LaneRecord) -> Result<Option<CheckInput>, Error> {
    let Some((base, candidate)) = base_tip_and_candidate(&project.repo, lane)? else { return Ok(None) };
    let scratch = project.store.layout().create_scratch()?;
    let temp_objects = TempObjectStore::new(&project.repo, &Layout::scratch_objects(scratch.path()))?;
    let (request, gate) = (LandingOptions::default(), PreMergeCommitHook::default());
    let context = StackContext {
        temp_objects: Some(&temp_objects),
        ..stack_context(project, &request, lane, &gate, scratch.path())
    };
    // The status of a lane that cannot be merged is unknown.
    let Ok(stack) = Stack::build(context, base, &[candidate]) else { return Ok(None) };
    Ok(CheckInput::from_stack(&project.repo, &stack, Some(&temp_objects))?.pop())
}

/// Returns the tip of the lane's base and the lane as the only candidate; none if the lane's branch or its
/// base is gone.
fn base_tip_and_candidate(repo: &Repo, lane: &LaneRecord) -> Result<Option<(CommitId, Candidate)>, Error> {
    let (Some(tip), Some(base)) = (repo.branch_tip(&lane.kind.branch)?, repo.branch_tip(&lane.base)?) else {
        return Ok(None);
    };
    let candidate = Candidate {
        lane: lane.clone(),
        tip,
        onto: lane.base.clone(),
        conflicted_landings: 0,
        commits: 0,
        files: 0,
        part: None,
        pending_commit: None,
    };
    Ok(Some((base, candidate)))
}

/// Returns the context for stacking a lane on its own base.
fn stack_context<'a>(
    project: &'a Project,
    options: &'a LandingOptions,
    lane: &'a LaneRecord,
    merge_hook: &'a PreMergeCommitHook,
    scratch: &'a Path,
) -> StackContext<'a> {
    StackContext {
        project,
        onto: &lane.base,
        strategy: options.strategy(&project.settings),
        options,
        run_hooks: false,
        // The check covers the lane's contents, independent of signatures.
        verify_signatures: false,
        merge_hook,
        scratch,
        temp_objects: None,
    }
}

/// Checks each lane on its base now, in the check worktrees. It waits in the merge queue, because landings
/// use the same worktrees.
pub(crate) fn check_lanes_alone(
    project: &Project,
    lanes: &[LaneRecord],
    extra_checks: &[String],
    jobs: Option<usize>,
) -> Result<Vec<CheckStatus>, Error> {
    let names: Vec<String> = lanes.iter().map(|lane| lane.name.to_string()).collect();
    // Each lane is checked as if it were to land alone.
    let mut landing = Landing::from_lanes(lanes.to_vec());
    landing.options.extra_checks = extra_checks.to_vec();
    landing.options.jobs = jobs;
    let mut verifier = Verifier::new(project, &landing)?;
    let _ticket = wait_to_check(project, names)?;
    // The ref that holds a stack during the check is removed with the operation, which leaves no entry in the
    // log.
    operate(project, "compare", |op| {
        lanes.iter().map(|lane| check_lane_alone(op, &landing.options, &mut verifier, lane)).collect()
    })
}

/// Checks what one lane would land alone; the status is unknown if the lane does not merge.
fn check_lane_alone(
    op: &Operation<'_>,
    options: &LandingOptions,
    verifier: &mut Verifier,
    lane: &LaneRecord,
) -> Result<CheckStatus, Error> {
    let project = op.project;
    let Some((base, candidate)) = base_tip_and_candidate(&project.repo, lane)? else {
        return Ok(CheckStatus::Unknown);
    };
    let scratch = project.store.layout().create_scratch()?;
    let merge_hook = PreMergeCommitHook::default();
    let context = stack_context(project, options, lane, &merge_hook, scratch.path());
    let rebuild = |lanes: &[Candidate]| Stack::build(context, base, lanes);
    let candidates = [candidate];
    let stack = rebuild(&candidates)?;
    if stack.applied_lanes.is_empty() {
        return Ok(CheckStatus::Unknown);
    }
    if !verifier.has_commands_on(project, &stack)? {
        return Ok(CheckStatus::NoChecks);
    }
    let mut pending = PendingRef::default();
    let verified = verifier.verify(op, stack, &candidates, &mut pending, &rebuild);
    if let Some(step) = pending.delete_step() {
        drop(op.perform(step)?);
    }
    let VerifiedStack { failed_lanes, stack } = match verified {
        Err(e) if e.check().is_some() => return Ok(CheckStatus::Inconclusive { reason: e.to_string() }),
        verified => verified?,
    };
    if let Some(reason) = stack.decided.into_iter().find_map(|outcome| outcome.message) {
        return Ok(CheckStatus::Inconclusive { reason });
    }
    Ok(failed_lanes.first().map_or(CheckStatus::Passed, |failed| CheckStatus::Failed {
        command: failed.blamed_command.command.clone(),
        ended: failed.failure.exit.to_string(),
        tail: failed.failure.log_tail(),
    }))
}
