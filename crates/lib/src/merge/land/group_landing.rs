//! Landing of the lanes of one base, or of several bases together.

use std::time::Duration;

use proq_base::explain::{Exit, Explain};
use proq_base::lane_name::LaneName;
use proq_git::RepoPath;
use proq_git::base::error;
use proq_store::base::clock::now;
use proq_store::records::lane::LandingInfo;
use proq_store::records::lane_state::LandingState;

use super::branch_move::{LandAttempt, MoveMode, Reversibility};
use super::prepared_stack::{LandingContext, LocalChangeCheck, PreparedStack};
use super::{autostash, branch_move, landing_proof};
use crate::event::log;
use crate::merge::Error;
use crate::merge::stack::conflict;
use crate::merge::stack::lane_conflicts::LaneConflict;
use crate::merge::stack::lane_stack::Stack;
use crate::merge::types::candidate::Candidate;
use crate::merge::types::outcome::{LandingReport, LaneOutcome, Verdict};
use crate::merge::verify::checked_stack::{PendingRef, VerifiedStack};
use crate::merge::verify::failed_check;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::BoxedStep;

/// Maximum number of times that a landing is stacked again because its base moved.
const MAX_ATTEMPTS: u32 = 5;
/// Pause before another attempt.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

impl LandingContext<'_, '_> {
    /// Lands the lanes of one base that can land, and adds the outcome of each lane to the report of the
    /// landing.
    ///
    /// # Errors
    /// Fails only when a signal ended the landing, which is no refusal of these lanes.
    pub(crate) fn land_group(
        &mut self,
        onto: &str,
        candidates: &[Candidate],
        report: &mut LandingReport,
    ) -> Result<(), Error> {
        let op = self.op;
        match op.attempt_or_revert(|| self.land_with_retries(onto, candidates)) {
            Ok(prepared) => {
                report.order_notes.extend(prepared.order_notes);
                report.forecasts.extend(prepared.forecast);
                report.lanes.extend(emit_and_collect_outcomes(op, &prepared.verified, self.landing.dry_run));
            }
            Err(e) if matches!(e.exit(), Exit::Signal(_)) => return Err(e),
            Err(e) => {
                let mut refused = e.refuse(onto, candidates);
                // Changes that were saved for an earlier attempt could not return to the worktree.
                if op.has_failed_revert() {
                    refused.iter_mut().for_each(LaneOutcome::remove_assurance);
                }
                report.lanes.extend(refused);
            }
        }
        Ok(())
    }

    /// Stacks, checks and lands the lanes of one base. Starts over when the base or a lane has moved, at most
    /// [`MAX_ATTEMPTS`] times.
    fn land_with_retries(&mut self, onto: &str, candidates: &[Candidate]) -> Result<PreparedStack, Error> {
        let (op, mut last_reason, mut pending) = (self.op, None, PendingRef::default());
        let mut change_check = LocalChangeCheck::BeforeChecks;
        for _ in 0..MAX_ATTEMPTS {
            let prepared = self.prepare_stack(onto, candidates, &mut pending, change_check)?;
            if self.landing.dry_run {
                return Ok(prepared);
            }
            let autostash = self.uses_autostash(change_check);
            let mode = MoveMode { reversibility: Reversibility::Irreversible, autostash };
            let moved = move_base(op, &prepared, &pending, mode);
            if change_check.should_retry(&moved, candidates.len() > 1, autostash) {
                continue;
            }
            match moved? {
                LandAttempt::Outdated(reason) => last_reason = reason,
                LandAttempt::Landed => {
                    announce_landing(op, &prepared.verified.stack);
                    return Ok(prepared);
                }
            }
            // The process that moved it may not be finished; a short pause lets it finish.
            std::thread::sleep(RETRY_PAUSE);
        }
        Err(Error::BaseKeptMoving { base: onto.to_owned(), attempts: MAX_ATTEMPTS, last: last_reason })
    }

    /// Lands all lanes of all bases, or none of them.
    ///
    /// # Errors
    /// Fails when a base could not be moved; all others are then where they were.
    pub(crate) fn land_atomically(
        &mut self,
        groups: &[(String, Vec<Candidate>)],
        report: &mut LandingReport,
    ) -> Result<(), Error> {
        let dry_run = self.landing.dry_run;
        let mut pending: Vec<PendingRef> = groups.iter().map(|_| PendingRef::default()).collect();
        let (mut last_reason, mut change_check) = (None, LocalChangeCheck::BeforeChecks);
        for _ in 0..MAX_ATTEMPTS {
            let mut prepared_stacks = Vec::new();
            for ((onto, group), pending) in groups.iter().zip(&mut pending) {
                prepared_stacks.push(self.prepare_stack(onto, group, pending, change_check)?);
            }
            if let Some(first_obstacle) = find_obstacle(report, &prepared_stacks) {
                self.refuse_atomic_landing(prepared_stacks, &pending, &first_obstacle, report)?;
                return Ok(());
            }
            let autostash = self.uses_autostash(change_check);
            let moved = if dry_run {
                Ok(())
            } else {
                let work = || move_each_base(self.op, &prepared_stacks, &pending, autostash);
                self.op.attempt_or_revert(work).inspect_err(|_| drop(autostash::drain_reports(self.op)))
            };
            if change_check.should_retry(&moved, true, autostash) {
                continue;
            }
            match moved {
                Err(Error::BaseKeptMoving { last: reason, .. }) => {
                    last_reason = reason;
                    std::thread::sleep(RETRY_PAUSE);
                }
                result => {
                    result?;
                    for prepared in prepared_stacks {
                        if !dry_run {
                            announce_landing(self.op, &prepared.verified.stack);
                        }
                        report.order_notes.extend(prepared.order_notes);
                        report.forecasts.extend(prepared.forecast);
                        report.lanes.extend(stack_outcomes(&prepared.verified.stack, dry_run));
                    }
                    return Ok(());
                }
            }
        }
        let base = groups.iter().map(|(onto, _)| onto.as_str()).collect::<Vec<_>>().join("', '");
        Err(Error::BaseKeptMoving { base, attempts: MAX_ATTEMPTS, last: last_reason })
    }

    /// Returns whether changes in the way are saved and restored. Where that has failed, the lanes that touch
    /// them are left out instead.
    fn uses_autostash(&self, change_check: LocalChangeCheck) -> bool {
        change_check != LocalChangeCheck::WithoutAutostash
            && self.landing.options.uses_autostash(&self.op.project.settings)
    }

    /// Ends an atomic landing in which one lane cannot land: nothing lands, but conflicts and failed checks
    /// are recorded.
    fn refuse_atomic_landing(
        &self,
        mut prepared_stacks: Vec<PreparedStack>,
        pending: &[PendingRef],
        (lane, exit): &(LaneName, Exit),
        report: &mut LandingReport,
    ) -> Result<(), Error> {
        let mut lane_conflicts = Vec::new();
        for prepared in &mut prepared_stacks {
            lane_conflicts.extend(LaneConflict::split_off_lane_conflicts(
                self.op.project,
                &mut prepared.verified.stack,
            )?);
        }
        let conflicting_lanes = lane_conflicts
            .iter()
            .find(|conflict| conflict.lane() == lane)
            .map(LaneConflict::describe_conflicting_lanes);
        let reason =
            conflicting_lanes.map_or_else(|| "does not".to_owned(), |with| format!("conflicts with {with}"));
        let message = format!("it could be merged, but --atomic merges all or none, and '{lane}' {reason}");
        for (prepared, pending) in prepared_stacks.iter().zip(pending) {
            if !self.landing.dry_run {
                for step in failure_record_steps(self.op, &prepared.verified)?
                    .into_iter()
                    .chain(pending.delete_step())
                {
                    drop(self.op.perform(step)?);
                }
            }
            let mut outcomes = emit_and_collect_outcomes(self.op, &prepared.verified, self.landing.dry_run);
            for outcome in outcomes.iter_mut().filter(|line| line.result == Verdict::Landed) {
                *outcome = LaneOutcome {
                    exit_code: Some(*exit),
                    ..LaneOutcome::refused(&outcome.lane, &outcome.onto, &message)
                };
            }
            report.lanes.extend(outcomes);
        }
        report.lanes.extend(lane_conflicts.iter().map(LaneConflict::outcome));
        Ok(())
    }
}

/// Moves one base, if any lane lands on it, and records the results.
fn move_base(
    op: &Operation<'_>,
    prepared: &PreparedStack,
    pending: &PendingRef,
    mode: MoveMode,
) -> Result<LandAttempt, Error> {
    let stack = &prepared.verified.stack;
    // The steps are computed late, from the records as they are then.
    let remaining_steps = || {
        let mut steps = landing_record_steps(op, &prepared.verified)?;
        steps.extend(pending.delete_step());
        Ok(steps)
    };
    if !stack.applied_lanes.is_empty() {
        return branch_move::land_stack(op, stack, remaining_steps, mode);
    }
    for step in remaining_steps()? {
        drop(op.perform(step)?);
    }
    Ok(LandAttempt::Landed)
}

/// Moves one base after the other. All moves can be undone until the last base has moved.
fn move_each_base(
    op: &Operation<'_>,
    prepared_stacks: &[PreparedStack],
    pending: &[PendingRef],
    autostash: bool,
) -> Result<(), Error> {
    let mode = MoveMode { reversibility: Reversibility::Reversible, autostash };
    for (prepared, pending) in prepared_stacks.iter().zip(pending) {
        if let LandAttempt::Outdated(last) = move_base(op, prepared, pending, mode)? {
            let base = prepared.verified.stack.onto.clone();
            return Err(Error::BaseKeptMoving { base, attempts: MAX_ATTEMPTS, last });
        }
    }
    Ok(())
}

/// Returns the first lane because of which an atomic landing lands nothing, and the exit code for it.
fn find_obstacle(report: &LandingReport, prepared_stacks: &[PreparedStack]) -> Option<(LaneName, Exit)> {
    let stacks = || prepared_stacks.iter().map(|prepared| &prepared.verified.stack);
    let refused = report.lanes.iter().chain(stacks().flat_map(|s| &s.decided));
    let refused = refused.filter(|o| o.result == Verdict::Refused).map(|o| (&o.lane, Exit::Refused));
    let failed = prepared_stacks.iter().flat_map(|prepared| &prepared.verified.failed_lanes);
    let failed = failed.map(|f| (&f.candidate.lane.name, Exit::Agent));
    let conflicts = stacks().flat_map(|s| &s.conflicts).map(|c| (&c.candidate.lane.name, Exit::Conflicts));
    let (lane, exit) = refused.chain(failed).chain(conflicts).next()?;
    Some((lane.clone(), exit))
}

/// Returns the steps that record a landing once the base has moved: landed lanes first, then conflicts and
/// failed checks.
fn landing_record_steps(op: &Operation<'_>, verified: &VerifiedStack) -> Result<Vec<BoxedStep>, Error> {
    let stack = &verified.stack;
    let mut steps = Vec::new();
    for step in &stack.applied_lanes {
        if let Some(part) = &step.candidate.part {
            steps.push(landing_proof::proof_step(op, stack, step, part)?);
            if !verified.decides_lane_state(&step.candidate) {
                continue;
            }
        }
        let lane = &step.candidate.lane;
        steps.extend(conflict::removal_steps(op, &lane.name)?);
        steps.extend(failed_check::removal_step(op, &lane.name)?);
        let (commit, tip) = (step.commit, step.candidate.tip);
        let landed =
            LandingInfo { commit, onto: stack.onto.clone(), tip, landed_at: now(), method: stack.strategy };
        steps.extend(op.lane_record_step(&lane.name, |record| {
            record.set_landing(LandingState::Landed);
            record.detail = None;
            record.landed = Some(landed);
        })?);
    }
    steps.extend(failure_record_steps(op, verified)?);
    Ok(steps)
}

/// Returns the steps that save conflicts and failed checks.
fn failure_record_steps(op: &Operation<'_>, verified: &VerifiedStack) -> Result<Vec<BoxedStep>, Error> {
    let (stack, mut steps) = (&verified.stack, Vec::new());
    // A lane that was removed concurrently has no record to write to.
    let is_recorded = |candidate: &Candidate| {
        Ok::<_, Error>(
            verified.decides_lane_state(candidate)
                && branch_move::find_current_record(op.project, &candidate.lane)?.is_some(),
        )
    };
    for conflict in &stack.conflicts {
        if is_recorded(&conflict.candidate)? {
            steps.extend(conflict::capture_steps(op, stack, conflict)?);
        }
    }
    for failed in &verified.failed_lanes {
        if is_recorded(&failed.candidate)? {
            steps.extend(failed.failed_check_steps(op, stack)?);
        }
    }
    Ok(steps)
}

/// Returns the outcomes of a stack and of its failed checks, and emits the events of the failed checks.
fn emit_and_collect_outcomes(
    op: &Operation<'_>,
    verified: &VerifiedStack,
    dry_run: bool,
) -> Vec<LaneOutcome> {
    let mut out = stack_outcomes(&verified.stack, dry_run);
    for failed in &verified.failed_lanes {
        failed.emit_event(op);
        out.push(failed.outcome(op, &verified.stack));
    }
    out
}

/// Verifies that every landed lane is on the base, emits the events, and schedules the repository's
/// post-merge hook.
fn announce_landing(op: &Operation<'_>, stack: &Stack) {
    if stack.applied_lanes.is_empty() {
        return;
    }
    if let Err(e) = branch_move::require_landed(&op.project.repo, stack) {
        op.project.listener.warn(format!("'{}' was merged, but incompletely: {e}", stack.onto));
    }
    for step in &stack.applied_lanes {
        let mut lane = step.candidate.lane.clone();
        lane.set_landing(LandingState::Landed);
        let message = format!("lane '{}' landed on {}", lane.name, stack.onto);
        op.emit(log::EventName::MergeLanded, Some(&lane), message);
    }
    let onto = stack.onto.clone();
    op.defer(move |project| {
        if let Err(e) = branch_move::run_post_merge_hooks(project, &onto) {
            project.listener.warn(format!("the repository's post-merge hook could not be run: {e}"));
        }
    });
}

/// Returns the outcomes of a stack's lanes: those decided before, those applied, and those in conflict.
fn stack_outcomes(stack: &Stack, dry_run: bool) -> Vec<LaneOutcome> {
    let mut out = stack.decided.clone();
    for step in &stack.applied_lanes {
        let mut outcome = LaneOutcome::new(&step.candidate.lane.name, &stack.onto, Verdict::Landed);
        outcome.strategy = Some(stack.strategy);
        // The merge commits of a dry run were discarded.
        outcome.commit = (!dry_run).then_some(step.commit);
        outcome.part_key = step.candidate.part_key();
        outcome.message = step.candidate.pending_commit.as_ref().map(|pending| {
            format!(
                "its uncommitted changes would be committed first: {}",
                error::list_paths(&pending.status.paths())
            )
        });
        out.push(outcome);
    }
    for conflict in &stack.conflicts {
        let mut outcome = LaneOutcome::new(&conflict.candidate.lane.name, &stack.onto, Verdict::Conflict);
        let files: Vec<RepoPath> = conflict.merged.conflicted_paths();
        outcome.message = conflict.merged.messages.first().cloned();
        outcome.part_key = conflict.candidate.part_key();
        outcome.conflicted_files = files;
        out.push(outcome);
    }
    out
}
