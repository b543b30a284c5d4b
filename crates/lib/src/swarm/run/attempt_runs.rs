//! Recorded runs of a batch's attempts: which runs were started, and their results.

use proq_base::run_class::RunClass;
use proq_base::usage::{Cost, Tokens};
use proq_git::{CommitId, Repo};
use proq_plan::schedule::event::TaskRunEnd;
use proq_store::base::batch_id::BatchId;
use proq_store::base::clock::Moment;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::{LandingState, LaneState, RunState};
use proq_store::records::run::RunRecord;

use crate::lane::Project;
use crate::lane::state::lane_state::effective_state;
use crate::swarm::Error;

/// The runs of one attempt at a task, in order. There is more than one where a service refused the first run,
/// or where the agent continued in a new conversation.
#[derive(Debug, Clone)]
pub(crate) struct RunChain {
    /// The lane of the runs.
    pub lane: LaneRecord,
    /// The records of the runs.
    pub runs: Vec<RunRecord>,
}

/// Result of an attempt at a task.
#[derive(Debug, Clone)]
pub(super) struct AttemptResult {
    /// How the attempt ended.
    pub(super) end: TaskRunEnd,
    /// Commit at which the attempt's work begins.
    pub(super) work_start: Option<CommitId>,
    /// Tip of the lane after the attempt.
    pub(super) tip: Option<CommitId>,
    /// Details, in one line.
    pub(super) detail: Option<String>,
}

/// Returns the runs of one attempt in a lane; none if it was never started there. A run whose supervisor
/// crashed before it started an agent does not count.
pub(crate) fn find_run_chain(
    project: &Project,
    lane: &LaneRecord,
    batch: &BatchId,
    (task, attempt): (usize, u32),
) -> Result<Option<RunChain>, Error> {
    let layout = project.store.layout();
    let mut runs = Vec::new();
    for number in RunNumber::first().through(lane.last_run) {
        let Some(run) = RunRecord::load_if_exists(&layout.run_record(&lane.name, number))? else { continue };
        let belongs = run.batch.as_ref().is_some_and(|run_task| {
            run_task.batch == *batch && (run_task.task_number, run_task.attempt) == (task, attempt)
        });
        if belongs && !run.resolves_conflict {
            runs.push(run);
        }
    }
    let is_last_run_current = runs.last().is_some_and(|run| run.number == lane.last_run);
    let is_busy = is_last_run_current && effective_state(project, lane)?.0.is_busy();
    // A run without an agent process may still have an end on record: another command took its supervisor for
    // crashed and wrote it.
    runs.retain(|run| run.pid.is_some() || is_busy && run.number == lane.last_run);
    Ok((!runs.is_empty()).then(|| RunChain { lane: lane.clone(), runs }))
}

impl RunChain {
    /// Returns whether the last run of the attempt is the last run of its lane.
    fn is_latest_in_lane(&self) -> bool {
        self.runs.last().is_some_and(|run| run.number == self.lane.last_run)
    }

    /// Returns the lane's state if a run of the attempt is still in progress.
    ///
    /// # Errors
    /// Fails when the lane's locks cannot be read.
    pub(super) fn busy_state(&self, project: &Project) -> Result<Option<LaneState>, Error> {
        let (state, _) = effective_state(project, &self.lane)?;
        Ok((self.is_latest_in_lane() && state.is_busy()).then_some(state))
    }

    /// Returns whether the attempt is a task loop: a sequence of runs, each of which works on one step of a
    /// task folder.
    fn is_task_loop(&self) -> bool {
        self.runs.last().is_some_and(|run| run.step_run.is_some())
    }

    /// Returns the last run of the attempt that worked on the task, rather than reviewed the work of other
    /// runs. The last run of all if each was a review.
    pub(super) fn last_working_run(&self) -> Option<&RunRecord> {
        let is_review = |run: &RunRecord| run.step_run.as_ref().is_some_and(|step| step.phase.is_review());
        self.runs.iter().rev().find(|run| !is_review(run)).or(self.runs.last())
    }

    /// Returns whether the supervisor of a task loop crashed before all steps were done: its locks are free,
    /// and no outcome was recorded.
    pub(super) fn has_task_loop_crashed(&self) -> bool {
        let has_no_outcome = |run: &RunRecord| is_supervisor_crash(run) || self.lane.state().is_claimed();
        self.is_task_loop() && self.is_latest_in_lane() && self.runs.last().is_some_and(has_no_outcome)
    }

    /// Returns whether the attempt was stopped and nothing has run in its lane since.
    pub(super) fn was_stopped(&self) -> bool {
        self.is_latest_in_lane() && self.runs.last().is_some_and(|run| run.outcome == Some(RunState::Stopped))
    }

    /// Returns how often a supervisor crashed during the attempt.
    pub(super) fn count_supervisor_crashes(&self) -> usize {
        self.runs.iter().filter(|run| is_supervisor_crash(run)).count()
    }

    /// Returns the state in which the attempt ended. For a task loop it comes from the lane's record, since
    /// the end of a single run decides nothing.
    fn outcome(&self, run: &RunRecord) -> Option<RunState> {
        if !self.is_task_loop() {
            return run.outcome;
        }
        let status = self.lane.status;
        Some(match status.landing {
            // Another run was started there since, so it is unknown whether all steps were done.
            _ if !self.is_latest_in_lane() => RunState::Failed,
            LandingState::Discarded => RunState::Failed,
            // A landing was tried, so the work was taken for done.
            LandingState::Landed | LandingState::Conflict | LandingState::CheckFailed => RunState::Done,
            LandingState::Open => status.run,
        })
    }

    /// Determines the result of the finished attempt.
    pub(super) fn result(&self, repo: &Repo) -> Result<AttemptResult, Error> {
        let mut from = self.runs.first().map(|run| run.tip_before);
        // An attempt that continued from the commits of an earlier attempt has to land those too.
        if let Some(first_tip) = from
            && self.is_latest_in_lane()
            && repo.is_ancestor(self.lane.start, first_tip)?
        {
            from = Some(self.lane.start);
        }
        let last = self.runs.last();
        let failed_with = |class| AttemptResult {
            end: TaskRunEnd::Failed(class),
            work_start: from,
            tip: last.and_then(|run| run.tip_after),
            detail: match self.is_task_loop() && self.is_latest_in_lane() {
                true => self.lane.detail.clone(),
                false => last.and_then(|run| run.detail.clone()),
            },
        };
        let Some(run) = last else { return Ok(failed_with(RunClass::Crashed)) };
        let was_already_done = self.is_latest_in_lane() && self.lane.already_done;
        let ended_as = |end| AttemptResult { end, ..failed_with(RunClass::Failed) };
        Ok(match self.outcome(run) {
            Some(RunState::Done) if was_already_done => ended_as(TaskRunEnd::AlreadyDone),
            Some(RunState::Done) => {
                let tip = repo.branch_tip(&self.lane.kind.branch)?;
                let to = run.tip_after.or(tip);
                if to == from {
                    // Changes left uncommitted cannot land.
                    AttemptResult { tip: to, ..ended_as(TaskRunEnd::NoChange) }
                } else {
                    AttemptResult { tip: to, ..ended_as(TaskRunEnd::Done) }
                }
            }
            Some(RunState::NoChange) => ended_as(TaskRunEnd::NoChange),
            Some(RunState::Stopped) => failed_with(RunClass::Stopped),
            _ => match run.class {
                None => failed_with(RunClass::Crashed),
                Some(RunClass::Done) => failed_with(RunClass::Failed),
                Some(class) => failed_with(class),
            },
        })
    }

    /// Returns the total cost and the total token usage of the attempt.
    pub(super) fn usage_totals(&self) -> (Option<Cost>, Option<Tokens>) {
        let costs = self.runs.iter().filter_map(|run| run.summary.cost);
        let tokens = self.runs.iter().filter_map(|run| run.summary.tokens);
        (costs.reduce(Cost::plus), tokens.reduce(Tokens::plus))
    }

    /// Returns when the first run of the attempt started.
    pub(super) fn started_at(&self) -> Option<Moment> {
        self.runs.first().map(|run| run.started)
    }
}

/// Returns whether the end of a run was recorded only by a later command, because the run's supervisor had
/// crashed.
fn is_supervisor_crash(run: &RunRecord) -> bool {
    run.class == Some(RunClass::Crashed) && run.tip_after.is_none()
}
