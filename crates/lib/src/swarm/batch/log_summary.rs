//! Summary of a batch's log beyond what the scheduler needs for its decisions: commits, lanes, costs.

use std::collections::{BTreeMap, BTreeSet};

use proq_base::lane_name::LaneName;
use proq_base::money::NanoDollars;
use proq_base::usage::Cost;
use proq_git::CommitId;
use proq_plan::schedule::event::{ScheduleEvent, TaskRunEnd};
use proq_store::base::batch_id::BatchId;
use proq_store::base::run_number::RunNumber;

use super::log::{EventEntry, LogLine};
use super::record::Batch;

/// The commits that a task added in its lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskCommits {
    /// Name of the lane.
    pub lane: LaneName,
    /// Commit at which the task's work begins.
    pub work_start: CommitId,
    /// Commit at which the task's work ends.
    pub work_end: CommitId,
}

/// Facts about a batch, collected from its log.
#[derive(Debug, Clone, Default)]
pub struct LogSummary {
    /// Tips of the batch's branch: at the start, and after each landing or undone landing.
    pub branch_tips: Vec<CommitId>,
    /// Landed tasks in order, each with the commit by which it landed.
    pub landed: Vec<(usize, CommitId)>,
    /// Commits of each task's last successful run.
    pub(crate) task_commits: BTreeMap<usize, TaskCommits>,
    /// Commits of each task's last run, for tasks whose last run failed.
    pub(crate) failed_commits: BTreeMap<usize, TaskCommits>,
    /// For each task whose last run failed, the number of that run in its lane.
    pub(crate) last_failed_runs: BTreeMap<usize, RunNumber>,
    /// Cost by task and attempt; conflict resolution counts as attempt 0.
    pub costs: BTreeMap<(usize, u32), Cost>,
    /// Last lane of each task.
    pub(crate) last_lanes: BTreeMap<usize, LaneName>,
    /// Last detail or note about each task.
    pub last_details: BTreeMap<usize, String>,
    /// Details of each task's last run, for tasks whose last run succeeded.
    pub(crate) done_details: BTreeMap<usize, String>,
    /// Tasks that another batch has claimed, with that batch's id where the log has it.
    pub claimed_elsewhere: BTreeMap<usize, Option<BatchId>>,
    /// Ids of the control requests that the log answers.
    pub(crate) answered_request_ids: BTreeSet<String>,
    /// Last recorded capacity for runs; none for no limit.
    pub(crate) run_capacity: Option<usize>,
    /// Whether the batch has begun.
    pub(crate) has_begun: bool,
}

impl LogSummary {
    /// Collects the facts from the lines of a log.
    pub fn from_lines<'a>(batch: &Batch, lines: impl IntoIterator<Item = &'a LogLine>) -> LogSummary {
        let mut summary = LogSummary { branch_tips: vec![batch.record.start], ..LogSummary::default() };
        lines.into_iter().for_each(|line| summary.apply_line(line));
        summary
    }

    /// Adds the facts of one more line.
    pub fn apply_line(&mut self, line: &LogLine) {
        match line {
            LogLine::Entry(entry) => self.apply_entry(entry),
            LogLine::Note { note, tasks, .. } => {
                self.last_details.extend(tasks.iter().map(|task| (*task, note.clone())));
            }
        }
    }

    /// Adds the facts of an event.
    fn apply_entry(&mut self, entry: &EventEntry) {
        let facts = &entry.facts;
        self.answered_request_ids.extend(facts.request_id.clone());
        if let Some(task) = event_task(&entry.event) {
            if let Some(lane) = &facts.lane {
                self.last_lanes.insert(task, lane.clone());
            }
            match &facts.detail {
                Some(detail) => drop(self.last_details.insert(task, detail.clone())),
                None => drop(self.last_details.remove(&task)),
            }
        }
        match &entry.event {
            ScheduleEvent::BatchStarted => self.has_begun = true,
            ScheduleEvent::LaneSetUpFailed { .. } => {
                self.last_details.extend(facts.task.zip(facts.detail.clone()));
            }
            ScheduleEvent::CapacityChanged { capacity: room } => self.run_capacity = *room,
            ScheduleEvent::ClaimedElsewhere { task } => {
                self.claimed_elsewhere.insert(*task, facts.claiming_batch.clone());
            }
            ScheduleEvent::ClaimEnded { task } => drop(self.claimed_elsewhere.remove(task)),
            ScheduleEvent::RunEnded { task, attempt, end } => {
                self.costs.extend(facts.cost.map(|cost| ((*task, *attempt), cost)));
                self.done_details.remove(task);
                self.save_failed_commits(*task, *end, entry);
                if *end == TaskRunEnd::Done {
                    self.save_commits(*task, entry);
                    self.done_details.extend(facts.detail.clone().map(|detail| (*task, detail)));
                }
            }
            ScheduleEvent::ConflictResolved { task } | ScheduleEvent::ConflictGivenUp { task } => {
                if let Some(cost) = facts.cost {
                    let sum = self
                        .costs
                        .entry((*task, 0))
                        .or_insert(Cost { amount: NanoDollars::ZERO, estimated: false });
                    *sum = sum.plus(cost);
                }
                self.save_commits(*task, entry);
            }
            ScheduleEvent::FinishedByHand { task } => self.save_commits(*task, entry),
            ScheduleEvent::Landed { tasks } => {
                self.branch_tips.extend(facts.branch_tip);
                self.last_details.retain(|task, _| !tasks.contains(task));
                self.landed
                    .retain(|(task, _)| facts.landed.iter().all(|landed_task| landed_task.task != *task));
                self.landed
                    .extend(facts.landed.iter().map(|landed_task| (landed_task.task, landed_task.commit)));
            }
            ScheduleEvent::LandingUndone { task, .. } => {
                self.branch_tips.extend(facts.branch_tip);
                self.landed.retain(|(landed, _)| landed != task);
            }
            _ => {}
        }
    }

    /// Saves the range of a task's commits that an entry records.
    fn save_commits(&mut self, task: usize, entry: &EventEntry) {
        let previous = self.task_commits.get(&task);
        let from = entry.facts.work_start.or(previous.map(|work| work.work_start));
        let lane = entry.facts.lane.clone().or_else(|| previous.map(|work| work.lane.clone()));
        if let (Some(lane), Some(from), Some(to)) = (lane, from, entry.facts.work_end) {
            self.task_commits.insert(task, TaskCommits { lane, work_start: from, work_end: to });
        }
    }

    /// Saves the commits of a failed run; clears those of an earlier one.
    fn save_failed_commits(&mut self, task: usize, end: TaskRunEnd, entry: &EventEntry) {
        let facts = &entry.facts;
        self.failed_commits.remove(&task);
        self.last_failed_runs.remove(&task);
        if let (TaskRunEnd::Failed(_), Some(lane), Some(from)) = (end, &facts.lane, facts.work_start) {
            self.failed_commits.insert(
                task,
                TaskCommits {
                    lane: lane.clone(),
                    work_start: from,
                    work_end: facts.work_end.unwrap_or(from),
                },
            );
            self.last_failed_runs.extend(facts.run.map(|run| (task, run)));
        }
    }

    /// Returns the total cost of the batch so far.
    pub(crate) fn total_cost(&self) -> NanoDollars {
        self.costs.values().map(|cost| cost.amount).sum()
    }

    /// Returns the tip of the batch's branch after this number of updates, each by a landing or by undone
    /// landings.
    pub fn tip_after(&self, branch_updates: u32) -> Option<CommitId> {
        self.branch_tips.get(branch_updates as usize).or(self.branch_tips.last()).copied()
    }
}

/// Returns the only task that an event is about; none for other events.
pub(crate) fn event_task(event: &ScheduleEvent) -> Option<usize> {
    match event {
        ScheduleEvent::RunStarted { task, .. }
        | ScheduleEvent::RunEnded { task, .. }
        | ScheduleEvent::ConflictCaptured { task }
        | ScheduleEvent::ConflictResolved { task }
        | ScheduleEvent::RecheckRequested { task }
        | ScheduleEvent::LandingUndone { task, .. }
        | ScheduleEvent::FinishedByHand { task }
        | ScheduleEvent::ConflictGivenUp { task }
        | ScheduleEvent::CheckFailed { task }
        | ScheduleEvent::ClaimedElsewhere { task }
        | ScheduleEvent::ClaimEnded { task }
        | ScheduleEvent::Retry { task } => Some(*task),
        ScheduleEvent::BatchStarted
        | ScheduleEvent::BatchTakenOver { .. }
        | ScheduleEvent::LaneSetUp { .. }
        | ScheduleEvent::LaneSetUpFailed { .. }
        | ScheduleEvent::Landed { .. }
        | ScheduleEvent::Pause
        | ScheduleEvent::Resume
        | ScheduleEvent::Abort { .. }
        | ScheduleEvent::CapacityChanged { .. }
        | ScheduleEvent::CostReported { .. }
        | ScheduleEvent::BudgetSet { .. } => None,
    }
}
