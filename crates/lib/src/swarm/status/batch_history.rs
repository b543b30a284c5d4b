//! History of a batch from its start on, for reports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use proq_base::usage::{Cost, Tokens};
use proq_git::{CommitId, RepoPath};
use proq_plan::schedule::event::{ScheduleEvent, TaskRunEnd};
use proq_store::base::clock::Moment;
use serde::Serialize;

use super::progress::BatchProgress;
use crate::lane::Project;
use crate::swarm::batch::log::{EventEntry, LogLine};
use crate::swarm::batch::record::Batch;
use crate::swarm::landing::landed_marks::load_marks;
use crate::swarm::landing::plan_marks::PlanMarks;

/// A batch with everything on record about it.
#[derive(Debug, Clone, Serialize)]
pub struct BatchHistory {
    /// Current state of the batch and its tasks.
    #[serde(flatten)]
    pub progress: BatchProgress,
    /// Time at which the batch was created.
    pub began: Moment,
    /// Time of the last entry in the log.
    #[serde(rename = "last")]
    pub last_event_at: Moment,
    /// Sources of the plan, as the user named them.
    pub sources: Vec<String>,
    /// Commit from which the batch started.
    pub start: CommitId,
    /// Tip of the batch's branch by its log.
    pub tip: CommitId,
    /// Total cost, including conflict resolution and the review of criteria; none where no agent reported a
    /// cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Total token usage of the runs.
    pub tokens: Tokens,
    /// Names of the tasks in waves. The index of a task's wave is the number of tasks that have to be done
    /// one after the other before it.
    pub waves: Vec<Vec<String>>,
    /// The attempts, in the order in which they started.
    pub runs: Vec<TaskAttempt>,
    /// The landings, in order.
    pub landings: Vec<LandingEvent>,
    /// Conflicts and failed checks.
    pub obstacles: Vec<Obstacle>,
    /// Notes for the user.
    #[serde(rename = "remarks")]
    pub notes: Vec<HistoryNote>,
    /// Marks that were written in the files of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "noted")]
    pub plan_marks: Option<PlanMarks>,
}

/// One attempt at a task, by the log of its batch.
#[derive(Debug, Clone, Serialize)]
pub struct TaskAttempt {
    /// Name of the task.
    pub task: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Name of the lane; empty while it is not known.
    pub lane: String,
    /// Profile name of the agent.
    pub agent: String,
    /// Model of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Time at which the attempt started.
    pub began: Moment,
    /// Time at which the attempt ended; none while it is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Moment>,
    /// How the attempt ended; none while it is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<AttemptEnd>,
    /// Cost of the attempt; none while it is running or where the cost is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Token usage of the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Commit at which the attempt's work begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<CommitId>,
    /// Commit at which the attempt's work ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<CommitId>,
    /// Details, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// End of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptEnd {
    /// Whether the attempt succeeded.
    #[serde(rename = "well")]
    pub has_succeeded: bool,
    /// End of the attempt in a word or two, such as `no change`.
    #[serde(rename = "how")]
    pub description: String,
}

/// Tasks that landed by one move of the branch.
#[derive(Debug, Clone, Serialize)]
pub struct LandingEvent {
    /// Time of the landing.
    pub at: Moment,
    /// Names of the tasks that landed.
    pub tasks: Vec<String>,
    /// Checks that passed before the landing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Tip of the branch after the landing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<CommitId>,
}

/// A conflict or failed check that kept a task from landing.
#[derive(Debug, Clone, Serialize)]
pub struct Obstacle {
    /// Time at which the obstacle was found.
    pub at: Moment,
    /// Name of the task.
    pub task: String,
    /// Files in conflict; none for a failed check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RepoPath>,
    /// The check that failed; none for a conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// File with the output of the check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// Status of the obstacle: `open`, `resolved`, `checked again`, `given up`.
    #[serde(rename = "became")]
    pub status: &'static str,
}

/// A note in the history of a batch, for the user.
#[derive(Debug, Clone, Serialize)]
pub struct HistoryNote {
    /// Time of the note.
    pub at: Moment,
    /// Text of the note, as shown to the user.
    pub text: String,
    /// Names of the tasks that the note is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
}

impl HistoryNote {
    /// Returns the text of the note behind the names of its tasks.
    pub fn describe(&self) -> String {
        match self.tasks.is_empty() {
            true => self.text.clone(),
            false => format!("{}: {}", self.tasks.join(", "), self.text),
        }
    }
}

impl BatchHistory {
    /// Returns the time from the creation of the batch to the last entry in its log.
    pub fn duration(&self) -> Duration {
        self.last_event_at.duration_since(self.began)
    }

    /// Returns the number of the wave of a task, from 1; none for a task that was done before the batch.
    pub fn wave_of(&self, task: &str) -> Option<usize> {
        self.waves.iter().position(|wave| wave.iter().any(|name| name == task)).map(|wave| wave + 1)
    }

    /// Returns the cost of all attempts at a task; none where no agent reported one.
    pub fn cost_of(&self, task: &str) -> Option<Cost> {
        self.runs.iter().filter(|run| run.task == task).filter_map(|run| run.cost).reduce(Cost::plus)
    }

    /// Builds the history of a batch from the lines of its log. `has_scheduler` is whether a scheduler
    /// process runs for the batch.
    pub fn from_log(
        project: &Project,
        batch: &Batch,
        lines: &[LogLine],
        has_scheduler: bool,
    ) -> BatchHistory {
        let record = &batch.record;
        let (runs, totals) = LogReader::read_log(batch, lines);
        let review_cost = record.criteria_report(&project.store).and_then(|report| report.cost);
        let cost = runs
            .iter()
            .filter_map(|run| run.cost)
            .chain(totals.other_costs)
            .chain(review_cost)
            .reduce(Cost::plus);
        let tokens = runs.iter().filter_map(|run| run.tokens).reduce(Tokens::plus);
        BatchHistory {
            progress: BatchProgress::read(project, batch, lines, has_scheduler),
            began: record.created,
            last_event_at: lines.last().map_or(record.created, LogLine::time),
            sources: record.sources.clone(),
            start: record.start,
            tip: totals.tip.unwrap_or(record.start),
            cost,
            tokens: tokens.unwrap_or_default(),
            waves: dependency_waves(batch),
            runs,
            landings: totals.landings,
            obstacles: totals.obstacles,
            notes: totals.notes,
            plan_marks: load_marks(&project.store, batch.id()),
        }
    }
}

/// Everything that the log reader collects besides the attempts.
#[derive(Default)]
struct LogTotals {
    /// Tip of the batch's branch after the last landing or undone landing; none before.
    tip: Option<CommitId>,
    landings: Vec<LandingEvent>,
    obstacles: Vec<Obstacle>,
    notes: Vec<HistoryNote>,
    /// Costs of conflict resolutions.
    other_costs: Vec<Cost>,
}

/// Reader that collects the history of a batch from its log.
struct LogReader<'a> {
    batch: &'a Batch,
    /// Attempts by task index and attempt number.
    attempts: BTreeMap<(usize, u32), TaskAttempt>,
    totals: LogTotals,
}

/// Returns the attempts of a batch in the order in which they started, from its log alone.
pub(crate) fn attempts_from_log(batch: &Batch, lines: &[LogLine]) -> Vec<TaskAttempt> {
    LogReader::read_log(batch, lines).0
}

impl LogReader<'_> {
    /// Returns the attempts in the order in which they started, and everything else that the log has.
    fn read_log(batch: &Batch, lines: &[LogLine]) -> (Vec<TaskAttempt>, LogTotals) {
        let mut reader = LogReader { batch, attempts: BTreeMap::new(), totals: LogTotals::default() };
        for line in lines {
            reader.read_line(line);
        }
        let mut runs: Vec<TaskAttempt> = reader.attempts.into_values().collect();
        runs.sort_by_key(|run| run.began);
        (runs, reader.totals)
    }

    fn read_line(&mut self, line: &LogLine) {
        match line {
            LogLine::Entry(entry) => self.read_entry(entry),
            LogLine::Note { at, note, tasks, .. } => {
                let tasks = tasks.iter().map(|task| self.batch.task_name(*task).to_owned()).collect();
                self.totals.notes.push(HistoryNote { at: *at, text: note.clone(), tasks });
            }
        }
    }

    /// Adds an event to the history.
    fn read_entry(&mut self, entry: &EventEntry) {
        let (at, facts) = (entry.at, &entry.facts);
        match &entry.event {
            ScheduleEvent::RunStarted { task, attempt } => {
                // The earlier start failed, which does not count as an attempt.
                if self.attempts.get(&(*task, *attempt)).is_some_and(|run| run.ended.is_some()) {
                    self.attempts.remove(&(*task, *attempt));
                }
                self.update_attempt(*task, *attempt, entry);
            }
            ScheduleEvent::RunEnded { task, attempt, end } => {
                let run = self.update_attempt(*task, *attempt, entry);
                run.ended = Some(at);
                run.end = Some(describe_end(*end));
                run.cost = facts.cost;
                run.tokens = facts.tokens;
                run.detail.clone_from(&facts.detail);
            }
            ScheduleEvent::Landed { tasks } => {
                let tasks = tasks.iter().map(|task| self.batch.task_name(*task).to_owned()).collect();
                self.totals.landings.push(LandingEvent {
                    at,
                    tasks,
                    tip: facts.branch_tip,
                    checks: facts.passed_checks.clone(),
                });
                self.totals.tip = facts.branch_tip.or(self.totals.tip);
            }
            ScheduleEvent::LandingUndone { task, .. } => {
                let (text, tasks) = ("its merge was undone", vec![self.batch.task_name(*task).to_owned()]);
                self.totals.notes.push(HistoryNote { at, text: text.to_owned(), tasks });
                self.totals.tip = facts.branch_tip.or(self.totals.tip);
            }
            ScheduleEvent::ConflictCaptured { task } | ScheduleEvent::CheckFailed { task } => {
                self.totals.obstacles.push(Obstacle {
                    at,
                    task: self.batch.task_name(*task).to_owned(),
                    files: facts.conflict_files.clone(),
                    check: facts.failed_check.clone(),
                    log: facts.check_log.clone(),
                    status: "open",
                });
            }
            ScheduleEvent::ConflictResolved { task } => self.set_obstacle_status(*task, "resolved", entry),
            ScheduleEvent::RecheckRequested { task } => {
                self.set_obstacle_status(*task, "checked again", entry);
            }
            ScheduleEvent::ConflictGivenUp { task } => self.set_obstacle_status(*task, "given up", entry),
            _ => {}
        }
    }

    /// Returns the summary of an attempt, created if needed and updated from this entry.
    fn update_attempt(&mut self, task: usize, attempt: u32, entry: &EventEntry) -> &mut TaskAttempt {
        let (name, facts) = (self.batch.task_name(task), &entry.facts);
        let run = self.attempts.entry((task, attempt)).or_insert_with(|| TaskAttempt {
            task: name.to_owned(),
            attempt,
            lane: String::new(),
            agent: String::new(),
            model: None,
            began: facts.run_started.unwrap_or(entry.at),
            ended: None,
            end: None,
            cost: None,
            tokens: None,
            from: None,
            to: None,
            detail: None,
        });
        run.lane = facts.lane.as_ref().map_or(std::mem::take(&mut run.lane), ToString::to_string);
        run.agent = facts.agent.clone().unwrap_or(std::mem::take(&mut run.agent));
        run.model = facts.model.clone().or(run.model.take());
        run.from = facts.work_start.or(run.from);
        run.to = facts.work_end.or(run.to);
        run
    }

    /// Sets the status of the last obstacle of a task, and adds the entry's cost to the total.
    fn set_obstacle_status(&mut self, task: usize, status: &'static str, entry: &EventEntry) {
        self.totals.other_costs.extend(entry.facts.cost);
        let name = self.batch.task_name(task);
        let last = self.totals.obstacles.iter_mut().rev().find(|obstacle| obstacle.task == name);
        if let Some(obstacle) = last {
            obstacle.status = status;
        }
    }
}

/// Returns the end of a run in words.
fn describe_end(end: TaskRunEnd) -> AttemptEnd {
    let (has_succeeded, description) = match end {
        TaskRunEnd::Done => (true, "done".to_owned()),
        TaskRunEnd::NoChange => (false, "no change".to_owned()),
        TaskRunEnd::AlreadyDone => (true, "done before".to_owned()),
        TaskRunEnd::NotStarted => (false, "not started".to_owned()),
        TaskRunEnd::Failed(class) => (false, class.to_string()),
    };
    AttemptEnd { has_succeeded, description }
}

/// Groups the open tasks by the number of tasks that have to be done one after the other before each, by
/// dependencies and by earlier phases.
fn dependency_waves(batch: &Batch) -> Vec<Vec<String>> {
    let mut waves: Vec<Vec<String>> = Vec::new();
    let single_phase = vec![(0..batch.tasks.len()).collect::<Vec<_>>()];
    let phases: Vec<Vec<usize>> = batch.record.phases.iter().map(|phase| phase.tasks.clone()).collect();
    for phase in if phases.is_empty() { single_phase } else { phases } {
        let mut remaining: BTreeSet<usize> =
            phase.into_iter().filter(|task| !batch.tasks[*task].done).collect();
        while !remaining.is_empty() {
            let is_next =
                |task: &usize| batch.tasks[*task].needs.iter().all(|need| !remaining.contains(need));
            let (next, later): (BTreeSet<usize>, BTreeSet<usize>) =
                remaining.iter().partition(|task| is_next(task));
            // A plan with a dependency cycle is refused earlier; this only guards against an endless loop.
            if next.is_empty() {
                break;
            }
            waves.push(next.iter().map(|task| batch.task_name(*task).to_owned()).collect());
            remaining = later;
        }
    }
    waves
}
