//! Verification of a stack: the verdicts on its prefixes, and the removal of lanes with which commands fail.

use std::rc::Rc;

use proq_base::lane_name::LaneName;
use proq_base::process::limited_process::ExitOutcome;
use proq_git::CommitId;
use proq_store::base::id::new_id;

use super::failed_check::{BlamedCommand, FailedLane};
use super::verifier::{StateVerdict, VerdictKey, Verifier};
use super::verify_cache;
use super::verify_cache::CheckInput;
use crate::lane::steps::move_ref::{move_ref_step, pending_ref};
use crate::merge::Error;
use crate::merge::checks::check_commands::CommandNumbers;
use crate::merge::checks::check_runs::{CheckResult, CheckRules, CommitCheck, FailedCommand};
use crate::merge::checks::culprit_search::{CheckVerdict, StackChecker, remove_culprits};
use crate::merge::stack::lane_stack::Stack;
use crate::merge::types::candidate::Candidate;
use crate::merge::types::outcome::{CheckFailure, LaneOutcome};
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::BoxedStep;

/// Stack on which the commands succeed, and the lanes that were removed for that.
#[derive(Debug)]
pub(crate) struct VerifiedStack {
    /// Lanes that may land.
    pub stack: Stack,
    /// Lanes that were removed because a check failed with them.
    pub(crate) failed_lanes: Vec<FailedLane>,
}

impl VerifiedStack {
    /// Returns whether a candidate decides the recorded state of its lane, if more than one part of the lane
    /// lands. The first part in conflict decides, or else the first with a failed check, or else the last
    /// one.
    pub(crate) fn decides_lane_state(&self, candidate: &Candidate) -> bool {
        if candidate.part.is_none() {
            return true;
        }
        let is_same_lane = |other: &&Candidate| other.lane.name == candidate.lane.name;
        let conflict = self.stack.conflicts.iter().map(|conflict| &conflict.candidate).find(is_same_lane);
        let failed = self.failed_lanes.iter().map(|failed| &failed.candidate).find(is_same_lane);
        let step = self.stack.applied_lanes.iter().rev().map(|step| &step.candidate).find(is_same_lane);
        conflict.or(failed).or(step).is_some_and(|last| last.is_same_part(candidate))
    }
}

/// Ref that holds a stack during its check; no other ref leads to its commits.
#[derive(Debug, Default)]
pub(crate) struct PendingRef {
    /// Full name of the ref; empty before it is first used.
    ref_name: String,
    /// Commit that the ref points to; none before it is first used.
    tip: Option<CommitId>,
}

impl PendingRef {
    /// Points the ref to `tip`, and creates it if it is missing.
    pub(crate) fn point_to(&mut self, op: &Operation<'_>, tip: CommitId) -> Result<(), Error> {
        if self.ref_name.is_empty() {
            self.ref_name = pending_ref(&new_id());
        }
        if self.tip != Some(tip) {
            drop(op.perform(move_ref_step(self.ref_name.clone(), self.tip, Some(tip)))?);
            self.tip = Some(tip);
        }
        Ok(())
    }

    /// Returns the step that deletes the ref; none if it was never created.
    pub(crate) fn delete_step(&self) -> Option<BoxedStep> {
        self.tip.map(|tip| move_ref_step(self.ref_name.clone(), Some(tip), None))
    }
}

/// Stack that is being checked.
pub(crate) struct StackVerification<'a, 'p> {
    pub op: &'a Operation<'p>,
    pub(crate) verifier: &'a mut Verifier,
    pub pending: &'a mut PendingRef,
    pub(crate) rebuild: &'a dyn Fn(&[Candidate]) -> Result<Stack, Error>,
    pub candidates: Vec<Candidate>,
    pub stack: Stack,
    /// Key of each prefix's verdict, from the prefix of one lane on.
    pub prefix_keys: Vec<VerdictKey>,
    pub(crate) failed_lanes: Vec<FailedLane>,
}

impl StackVerification<'_, '_> {
    /// Points the pending ref at the stack, and computes the verdict key of each prefix.
    pub(crate) fn compute_verdict_keys(&mut self) -> Result<(), Error> {
        if !self.stack.applied_lanes.is_empty() {
            self.pending.point_to(self.op, self.stack.tip())?;
        }
        let inputs = CheckInput::from_stack(&self.op.project.repo, &self.stack, None)?;
        let (verifier, Stack { onto, applied_lanes: steps, .. }) = (&mut *self.verifier, &self.stack);
        let state = |(index, input)| VerdictKey {
            input,
            commands: verifier.command_numbers_on(onto, &steps[..=index]),
        };
        self.prefix_keys = inputs.into_iter().enumerate().map(state).collect();
        Ok(())
    }

    /// Returns the names of the lowest `prefix` lanes.
    fn lane_names(&self, prefix: usize) -> Vec<LaneName> {
        self.stack.applied_lanes[..prefix].iter().map(|step| step.candidate.lane.name.clone()).collect()
    }

    /// Returns the check of the lowest `prefix` lanes together.
    fn commit_check(&self, prefix: usize) -> CommitCheck {
        CommitCheck {
            commit: self.stack.applied_lanes[prefix - 1].commit,
            lanes: self.lane_names(prefix),
            onto: self.stack.onto.clone(),
            commands: self.prefix_keys[prefix - 1].commands.clone(),
        }
    }

    /// Returns the lane whose task has a command that fails with the topmost lane of a prefix: the topmost
    /// lane itself, or else the lowest one with the command.
    fn blamed_task_lane(&self, prefix: usize, command: usize) -> Option<LaneName> {
        if !self.verifier.commands.is_task_check(command) {
            return None;
        }
        let command_line = &self.verifier.commands.lines()[command];
        let mut lanes = self.stack.applied_lanes[..prefix].iter().map(|step| &step.candidate.lane);
        let top_lane = lanes.next_back().filter(|lane| lane.checks.contains(command_line));
        top_lane
            .or_else(|| lanes.find(|lane| lane.checks.contains(command_line)))
            .map(|lane| lane.name.clone())
    }

    /// Returns the error for a command that cannot be run on a prefix; it names the lane whose task has the
    /// command.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    fn not_runnable_error(&self, prefix: usize, failure: &FailedCommand) -> Result<Error, Error> {
        let command = failure.command_number;
        let refusal = failure.to_refusal(self.op.project, &self.verifier.commands.lines()[command])?;
        let (task_lane, lanes_below) = (self.blamed_task_lane(prefix, command), self.lane_names(prefix));
        let check = Box::new(CheckFailure { task_lane, lanes_below, ..refusal });
        Ok(Error::CheckNotRunnable { base: self.stack.onto.clone(), check })
    }

    /// Returns the error of a command that failed on the base itself, because of which nothing lands; none if
    /// such a command is ignored.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    fn base_failure_error(&self, failure: &FailedCommand) -> Result<Option<Error>, Error> {
        let (project, base) = (self.op.project, self.stack.onto.clone());
        let command = &self.verifier.commands.lines()[failure.command_number];
        let lanes = self.candidates.iter().map(|candidate| candidate.lane.name.clone()).collect();
        Ok(Some(match failure.exit {
            ExitOutcome::TimedOut(limit) => {
                Error::CheckTimedOut { command: command.clone(), base, seconds: limit.as_secs(), lanes }
            }
            _ if failure.is_not_runnable() => {
                Error::CheckNotRunnable { base, check: Box::new(failure.to_refusal(project, command)?) }
            }
            _ if self.verifier.ignores_base_failures => return Ok(None),
            _ => {
                let check = Box::new(failure.to_refusal(project, command)?);
                Error::CheckFailsOnBase { base, check, lanes }
            }
        }))
    }

    /// Removes culprits until the stack passes. A lane with a check of its own that cannot be run is left out
    /// too, without a failed check; returns the refusals of such lanes.
    fn remove_failing_lanes(&mut self, jobs: usize) -> Result<Vec<LaneOutcome>, Error> {
        let mut refused = Vec::new();
        loop {
            let lane_count = self.stack.applied_lanes.len();
            let e = match remove_culprits(self, lane_count, jobs) {
                Ok(()) => return Ok(refused),
                Err(e) => e,
            };
            let Some(lane) = e.check().and_then(|check| check.task_lane.clone()) else { return Err(e) };
            let candidates = std::mem::take(&mut self.candidates);
            let (left_out, others): (Vec<_>, Vec<_>) =
                candidates.into_iter().partition(|other| other.lane.name == lane);
            refused.extend(e.refuse(&self.stack.onto, &left_out));
            self.candidates = others;
            self.stack = (self.rebuild)(&self.candidates)?;
            self.compute_verdict_keys()?;
        }
    }
}

impl StackChecker for StackVerification<'_, '_> {
    type Error = Error;

    fn check_prefixes(&mut self, prefixes: &[usize]) -> Result<Vec<Option<CheckVerdict>>, Error> {
        let project = self.op.project;
        let state = |prefix: usize| &self.prefix_keys[prefix - 1];
        let mut unknown = Vec::new();
        for prefix in prefixes {
            if self.verifier.find_verdict(project, state(*prefix)).is_none() {
                unknown.push(*prefix);
            }
        }
        let full_stack = prefixes.last().map(|prefix| self.verifier.find_verdict(project, state(*prefix)));
        if !matches!(full_stack, Some(Some(StateVerdict::Passed))) && !unknown.is_empty() {
            let states: Vec<VerdictKey> = unknown.iter().map(|prefix| state(*prefix).clone()).collect();
            let checks: Vec<CommitCheck> = unknown.iter().map(|prefix| self.commit_check(*prefix)).collect();
            self.verifier.run_checks(project, &states, &checks, &unknown)?;
        }
        let known = |prefix: &usize| self.verifier.verdicts.get(state(*prefix));
        for prefix in prefixes {
            if let Some(StateVerdict::Failed(failure)) = known(prefix)
                && failure.is_not_runnable()
            {
                return Err(self.not_runnable_error(*prefix, failure)?);
            }
        }
        Ok(prefixes.iter().map(|prefix| known(prefix).map(StateVerdict::verdict)).collect())
    }

    fn fails_on_base(&mut self, command: usize) -> Result<bool, Error> {
        let (project, base) = (self.op.project, self.stack.base);
        let verifier = &mut *self.verifier;
        // The base lacks the lane whose task has the command.
        if verifier.commands.is_task_check(command) {
            return Ok(false);
        }
        let input = CheckInput::from_base(&project.repo, &self.stack.onto, base)?;
        // The command may depend on the commands before it.
        let commands = verifier.command_numbers_on(&self.stack.onto, &[]);
        let commands: CommandNumbers = commands.into_iter().filter(|number| *number <= command).collect();
        let state = VerdictKey { input, commands: commands.clone() };
        if verify_cache::has_passed(project, &state.input, &verifier.cache_lines(&commands)) {
            return Ok(false);
        }
        let base_check =
            CommitCheck { commit: base, lanes: Vec::new(), onto: self.stack.onto.clone(), commands };
        let limit = verifier.time_limit_on(&project.settings, &self.stack.onto);
        let mut tolerated = verifier.tolerated_commands.clone();
        let failure = loop {
            let rules = CheckRules {
                command_lines: verifier.commands.lines(),
                tolerated_commands: &tolerated,
                set_up_commands: &verifier.current_set_up,
                time_limit: limit,
            };
            let task = std::slice::from_ref(&base_check);
            match verifier.runs.run(project, rules, task, &[0], 1)?.pop().flatten() {
                // An earlier command failed before this one was run.
                Some(CheckResult::Failed(red)) if red.command_number != command && !red.exit.is_timeout() => {
                    tolerated.push(red.command_number);
                }
                Some(CheckResult::Failed(red)) => break red,
                Some(CheckResult::Passed { flaky_command: None })
                    if tolerated.len() == verifier.tolerated_commands.len() =>
                {
                    verifier.cache_passed(project, &state);
                    return Ok(false);
                }
                Some(CheckResult::Passed { .. }) | None => return Ok(false),
            }
        };
        if let Some(e) = self.base_failure_error(&failure)? {
            return Err(e);
        }
        project.listener.warn(format!(
            "`{}` fails on {} itself ({}), so it does not count",
            self.verifier.commands.lines()[failure.command_number],
            self.stack.onto,
            failure.exit
        ));
        Ok(true)
    }

    fn tolerate(&mut self, command: usize) {
        let verifier = &mut *self.verifier;
        verifier.tolerated_commands.push(command);
        verifier
            .verdicts
            .retain(|_, known| !matches!(known, StateVerdict::Failed(red) if red.command_number == command));
        let command_line = verifier.commands.lines()[command].clone();
        if !verifier.summary.failing_on_base.contains(&command_line) {
            verifier.summary.failing_on_base.push(command_line);
        }
    }

    fn remove_lane(&mut self, lane: usize) -> Result<(usize, usize), Error> {
        let candidate = self.stack.applied_lanes[lane].candidate.clone();
        let state = &self.prefix_keys[lane];
        if let Some(StateVerdict::Failed(red)) = self.verifier.verdicts.get(state) {
            let command_line = self.verifier.commands.lines()[red.command_number].clone();
            let blamed_command = BlamedCommand {
                command: command_line,
                task_lane: self.blamed_task_lane(lane + 1, red.command_number),
            };
            self.failed_lanes.push(FailedLane::new(
                candidate.clone(),
                self.lane_names(lane),
                state.input.tree,
                blamed_command,
                Rc::clone(red),
            ));
        }
        self.candidates.retain(|other| !other.is_same_part(&candidate));
        self.stack = (self.rebuild)(&self.candidates)?;
        self.compute_verdict_keys()?;
        let has_passed =
            |state: &VerdictKey| matches!(self.verifier.verdicts.get(state), Some(StateVerdict::Passed));
        let passed_count = self.prefix_keys.iter().rposition(has_passed).map_or(0, |index| index + 1);
        Ok((self.prefix_keys.len(), passed_count))
    }
}

impl Verifier {
    /// Checks a stack, and removes each lane with which a command fails that succeeds without the lane and on
    /// the base. `rebuild` builds the stack of the lanes that are left.
    pub fn verify(
        &mut self,
        op: &Operation<'_>,
        stack: Stack,
        candidates: &[Candidate],
        pending: &mut PendingRef,
        rebuild: &dyn Fn(&[Candidate]) -> Result<Stack, Error>,
    ) -> Result<VerifiedStack, Error> {
        if stack.applied_lanes.is_empty() || !self.has_commands_on(op.project, &stack)? {
            return Ok(VerifiedStack { stack, failed_lanes: Vec::new() });
        }
        if self.current_base_tip != Some(stack.base) && !self.tolerated_commands.is_empty() {
            self.tolerated_commands.clear();
            self.verdicts.clear();
        }
        self.current_base_tip = Some(stack.base);
        self.current_set_up = self.set_up_on(&stack.onto);
        self.add_tasks_to_summary(&stack);
        let initial_counts = (self.runs.run_count, stack.applied_lanes.len());
        let jobs = self.jobs;
        let candidates = candidates.to_vec();
        let mut checker = StackVerification {
            op,
            verifier: self,
            pending,
            rebuild,
            candidates,
            stack,
            prefix_keys: Vec::new(),
            failed_lanes: Vec::new(),
        };
        checker.compute_verdict_keys()?;
        let refused = checker.remove_failing_lanes(jobs)?;
        let StackVerification { mut stack, failed_lanes: failed, .. } = checker;
        stack.decided.extend(refused);
        let runs = match self.runs.run_count - initial_counts.0 {
            0 => "passed before".to_owned(),
            1 => "1 run".to_owned(),
            n => format!("{n} runs"),
        };
        let lanes = |count| if count == 1 { "1 lane".to_owned() } else { format!("{count} lanes") };
        let verdict = match (stack.applied_lanes.len(), initial_counts.1) {
            (0, all) => format!("checks failed for {}", lanes(all)),
            (passed, all) if passed == all => format!("checks passed for {}", lanes(all)),
            (passed, all) => format!("checks passed for {passed} of {}", lanes(all)),
        };
        op.project.listener.step_done(format!("{verdict} on {} ({runs})", stack.onto));
        Ok(VerifiedStack { stack, failed_lanes: failed })
    }
}
