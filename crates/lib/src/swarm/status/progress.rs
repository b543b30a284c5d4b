//! Progress of a batch, as shown to users and written for programs.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use proq_base::lane_name::LaneName;
use proq_base::money::NanoDollars;
use proq_base::usage::Tokens;
use proq_plan::plan::BoxProgress;
use proq_plan::schedule::action::{BatchOutcome, PauseReason};
use proq_plan::schedule::state::State;
use proq_plan::schedule::status_queries::TaskStatus;
use proq_plan::schedule::task_phase::{FailureReason, TaskOutcome, UnfinishedPhase};
use proq_store::base::atomic::write_unsynced;
use proq_store::base::batch_id::BatchId;
use proq_store::base::clock::{Moment, now};
use proq_store::base::record::Record;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use proq_store::records::run::RunRecord;
use serde::Serialize;

use super::manual_repairs::{ManualRepair, find_repair};
use super::undone_landings::apply_undone_landings;
use crate::agent::run::live_status::read_summary as read_live_summary;
use crate::agent::task_loop::loop_status::{LoopStatus, read_loop_status};
use crate::lane::Project;
use crate::lane::state::lane_state::effective_state;
use crate::swarm::batch::criteria_report::CriteriaReport;
use crate::swarm::batch::lanes::batch_lanes;
use crate::swarm::batch::log::LogLine;
use crate::swarm::batch::log_summary::LogSummary;
use crate::swarm::batch::record::Batch;
use crate::swarm::landing::batch_landing::find_landed_branch;

/// Output dialect of an agent that writes plain text without structured events.
const PLAIN_TEXT_DIALECT: &str = "text";

/// Number of bytes at the end of a log that are read to find its last line.
const LOG_TAIL_BYTES: u64 = 2_000;

/// Reason text of a batch that is paused because its budget is used up.
pub const BUDGET_SPENT_REASON: &str = "it has used up its budget";

/// Snapshot of a batch's progress.
#[derive(Debug, Clone, Serialize)]
pub struct BatchProgress {
    /// Id of the batch.
    pub batch: BatchId,
    /// Summary of the batch's plan.
    pub summary: String,
    /// Status of the batch: `new`, `running`, `pausing`, `paused`, `stopping`, `over`.
    pub state: &'static str,
    /// Outcome of the batch, or the reason of its pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "why")]
    pub reason: Option<String>,
    /// Whether a scheduler process runs the batch.
    #[serde(rename = "scheduler")]
    pub has_scheduler: bool,
    /// The base branch, on which the work of the batch lands in the end.
    pub base: String,
    /// The branch that the batch's tasks land on.
    pub branch: String,
    /// Whether the batch has finished and everything that landed on its own branch is on the base.
    pub on_base: bool,
    /// The branch that has the landed work of a finished batch.
    #[serde(skip)]
    pub landed_on: Option<String>,
    /// Time when the batch was created.
    pub created: Moment,
    /// Number of tasks by state.
    pub counts: TaskCounts,
    /// Total cost, including the verification of the criteria; none when no agent has reported a cost.
    #[serde(rename = "cost_usd", with = "proq_base::money::dollars_option")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoDollars>,
    /// Report on the batch's criteria.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criteria: Option<CriteriaReport>,
    /// The batch's tasks, in the plan's order.
    pub tasks: Vec<TaskProgress>,
    /// The lanes in which an agent runs.
    pub lanes: Vec<LaneProgress>,
}

/// Number of tasks by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TaskCounts {
    /// Number of all tasks.
    pub tasks: usize,
    /// Tasks that landed.
    pub landed: usize,
    /// Tasks that were done before the batch.
    #[serde(rename = "before")]
    pub done_before: usize,
    /// Tasks with an agent that runs or is about to start.
    #[serde(rename = "at_work")]
    pub running: usize,
    /// Tasks that are done and are landing, wait to land, or conflict.
    pub landing: usize,
    /// Tasks that wait.
    pub waiting: usize,
    /// Tasks that failed, were set aside or made no change.
    pub failed: usize,
    /// Tasks that are skipped.
    pub skipped: usize,
    /// Tasks that were not settled when the batch ended.
    #[serde(rename = "left")]
    pub unfinished: usize,
}

/// Snapshot of a task's progress.
#[derive(Debug, Clone, Serialize)]
pub struct TaskProgress {
    /// Name of the task in the plan: `area/ID`, or its id alone for a task without an area.
    pub name: String,
    /// Title of the task, in one line.
    pub title: String,
    /// State of the task in a word or two.
    pub state: String,
    /// Reason of the state, or what the task waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The lane of the task's last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// The agent that runs the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Number of runs that were started.
    pub attempts: u32,
    /// Number of ticked checkboxes of the task, while it runs step by step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boxes: Option<BoxProgress>,
    /// Whether the user has repaired, finished or landed the task since, so that it lands when the batch
    /// continues.
    #[serde(skip)]
    pub is_repaired: bool,
}

/// Snapshot of a lane in which an agent runs.
#[derive(Debug, Clone, Serialize)]
pub struct LaneProgress {
    /// Name of the lane in which the agent runs.
    pub name: LaneName,
    /// Name of the lane's task.
    pub task: String,
    /// Current activity of the lane, after a check that its supervisor is alive.
    pub state: LaneState,
    /// Number of ticked checkboxes of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boxes: Option<BoxProgress>,
    /// Last activity of the lane's agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "step")]
    pub activity: Option<String>,
    /// Duration of the run so far.
    #[serde(rename = "seconds", with = "proq_base::time_form::seconds")]
    pub elapsed: Duration,
    /// Cost of the run so far.
    #[serde(rename = "cost_usd", with = "proq_base::money::dollars_option")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<NanoDollars>,
    /// Tokens that the run has used so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
}

impl BatchProgress {
    /// Reads the progress of a batch from its log, the landings that were undone since, and the current state
    /// of its lanes.
    pub fn read(project: &Project, batch: &Batch, lines: &[LogLine], has_scheduler: bool) -> BatchProgress {
        let (mut state, mut known) = (batch.fold_state(lines), LogSummary::from_lines(batch, lines));
        if has_scheduler {
            return BatchProgress::from_state(project, batch, &state, &known, has_scheduler);
        }
        apply_undone_landings(project, batch, &mut state, &mut known);
        let mut progress = BatchProgress::from_state(project, batch, &state, &known, has_scheduler);
        for (index, task) in progress.tasks.iter_mut().enumerate() {
            let repair = find_repair(project, (batch, &state, &known), index);
            if let Ok(ManualRepair::NewCommits(_)) = repair {
                task.is_repaired = true;
                task.detail = Some("repaired since; it is merged when the batch resumes".to_owned());
            }
        }
        progress
    }

    /// Returns the progress of a batch whose scheduler state and log facts are already known.
    pub fn from_state(
        project: &Project,
        batch: &Batch,
        state: &State,
        known: &LogSummary,
        has_scheduler: bool,
    ) -> BatchProgress {
        let record = &batch.record;
        let lanes = active_lanes(project, batch);
        let mut tasks: Vec<TaskProgress> =
            (0..batch.tasks.len()).map(|task| task_progress(batch, state, known, task)).collect();
        for task in &mut tasks {
            task.boxes = lanes.iter().find(|lane| lane.task == task.name).and_then(|lane| lane.boxes);
        }
        let criteria = record.criteria_report(&project.store);
        let criteria_cost = criteria.as_ref().and_then(|report| report.cost).map(|cost| cost.amount);
        let spent = known.total_cost().saturating_add(criteria_cost.unwrap_or_default());
        let is_finished = state.final_outcome().is_some();
        let landed_on = if is_finished { find_landed_branch(project, record).ok().flatten() } else { None };
        BatchProgress {
            batch: record.id.clone(),
            summary: record.summary.clone(),
            state: state.status_word(),
            reason: status_reason(batch, state),
            has_scheduler,
            base: record.base.clone(),
            branch: record.branch.clone(),
            created: record.created,
            counts: count_tasks(state, batch.tasks.len()),
            cost: Some(spent).filter(|cost| !cost.is_zero()),
            on_base: landed_on.is_some(),
            landed_on,
            criteria,
            tasks,
            lanes,
        }
    }

    /// Returns the displayed state in a word: the outcome of a finished batch, and `interrupted` for one that
    /// the log shows as under way although no scheduler process works on it.
    pub fn displayed_state(&self) -> &str {
        match (self.state, &self.reason) {
            ("over", Some(outcome)) => outcome,
            ("over" | "paused", _) => self.state,
            _ if self.has_scheduler => self.state,
            _ => "interrupted",
        }
    }
}

/// Returns a word for how a batch ended.
pub(crate) fn outcome_word(outcome: BatchOutcome) -> &'static str {
    match outcome {
        BatchOutcome::Complete => "complete",
        BatchOutcome::Partial => "partly",
        BatchOutcome::Stopped => "stopped",
        BatchOutcome::Aborted => "aborted",
    }
}

/// Returns the outcome of a finished batch, or the reason of its pause; none while it runs.
fn status_reason(batch: &Batch, state: &State) -> Option<String> {
    if let Some(outcome) = state.final_outcome() {
        return Some(outcome_word(outcome).to_owned());
    }
    Some(match state.pause_reason()? {
        PauseReason::Requested => "asked".to_owned(),
        PauseReason::LandingFailed(task) => format!("{} cannot land", batch.task_name(task)),
        PauseReason::BudgetSpent => BUDGET_SPENT_REASON.to_owned(),
    })
}

/// Counts the tasks, numbered from 0 to below `tasks`, by state.
fn count_tasks(state: &State, tasks: usize) -> TaskCounts {
    let mut out = TaskCounts { tasks, ..TaskCounts::default() };
    for task in 0..tasks {
        match state.task_status(task) {
            TaskStatus::Settled(TaskOutcome::Landed) => out.landed += 1,
            TaskStatus::Settled(TaskOutcome::AlreadyDone) => out.done_before += 1,
            TaskStatus::Settled(TaskOutcome::NoChange | TaskOutcome::Failed(_) | TaskOutcome::SetAside) => {
                out.failed += 1;
            }
            TaskStatus::Settled(TaskOutcome::Skipped) => out.skipped += 1,
            TaskStatus::Settled(TaskOutcome::Unfinished(_)) => out.unfinished += 1,
            TaskStatus::Waiting => out.waiting += 1,
            TaskStatus::Preparing | TaskStatus::Starting | TaskStatus::Running => out.running += 1,
            TaskStatus::ReadyToLand | TaskStatus::Landing | TaskStatus::Conflict => out.landing += 1,
        }
    }
    out
}

/// Returns the progress of a task, without its checkboxes.
fn task_progress(batch: &Batch, state: &State, known: &LogSummary, task: usize) -> TaskProgress {
    let batch_task = &batch.tasks[task];
    let (state_word, detail) = describe_task(batch, state, known, task);
    TaskProgress {
        name: batch_task.name.clone(),
        title: batch_task.title.clone(),
        state: state_word.to_owned(),
        detail,
        lane: known.last_lanes.get(&task).cloned(),
        agent: batch_task.agent.clone(),
        attempts: state.attempts(task),
        boxes: None,
        is_repaired: false,
    }
}

/// Describes the state of a task in a word or two, and its reason.
fn describe_task(
    batch: &Batch,
    state: &State,
    known: &LogSummary,
    task: usize,
) -> (&'static str, Option<String>) {
    let logged_detail = || known.last_details.get(&task).cloned();
    match state.task_status(task) {
        TaskStatus::Waiting => describe_waiting(batch, state, known, task),
        TaskStatus::Preparing | TaskStatus::Starting => ("starting", logged_detail()),
        TaskStatus::Running if state.is_stopping(task) => ("stopping", None),
        TaskStatus::Running => ("running", None),
        TaskStatus::ReadyToLand => ("done", Some("it is to land".to_owned())),
        TaskStatus::Landing => ("landing", logged_detail()),
        TaskStatus::Settled(TaskOutcome::Landed) => ("landed", known.done_details.get(&task).cloned()),
        TaskStatus::Settled(TaskOutcome::AlreadyDone) => ("done before", None),
        TaskStatus::Settled(TaskOutcome::NoChange) => ("no change", logged_detail()),
        TaskStatus::Settled(TaskOutcome::Failed(FailureReason::RunFailed(class))) => {
            ("failed", logged_detail().or(Some(class.to_string())))
        }
        TaskStatus::Settled(TaskOutcome::Failed(FailureReason::SetUpFailed)) => {
            ("failed", logged_detail().or(Some("its lane could not be created".to_owned())))
        }
        TaskStatus::Settled(TaskOutcome::Failed(FailureReason::NotStarted)) => {
            ("failed", logged_detail().or(Some("its agent did not start".to_owned())))
        }
        TaskStatus::Conflict
        | TaskStatus::Settled(TaskOutcome::Failed(FailureReason::ConflictUnresolved)) => {
            ("conflict", logged_detail())
        }
        TaskStatus::Settled(TaskOutcome::Failed(FailureReason::CheckFailed)) => {
            ("check failed", logged_detail())
        }
        TaskStatus::Settled(TaskOutcome::SetAside) => ("set aside", logged_detail()),
        TaskStatus::Settled(TaskOutcome::Skipped) => {
            let cause = state.skip_cause(task).map(|other| format!("because of {}", batch.task_name(other)));
            ("skipped", cause)
        }
        TaskStatus::Settled(TaskOutcome::Unfinished(UnfinishedPhase::NotStarted)) => ("not started", None),
        TaskStatus::Settled(TaskOutcome::Unfinished(UnfinishedPhase::Interrupted)) => {
            ("cut off", logged_detail())
        }
        TaskStatus::Settled(TaskOutcome::Unfinished(UnfinishedPhase::NotLanded)) => {
            ("not landed", logged_detail())
        }
    }
}

/// Describes a task that waits for another batch or for its dependencies, or is queued.
fn describe_waiting(
    batch: &Batch,
    state: &State,
    known: &LogSummary,
    task: usize,
) -> (&'static str, Option<String>) {
    if let Some(other) = known.claimed_elsewhere.get(&task) {
        let other = other.as_ref().map_or("", BatchId::as_str);
        return ("waiting", Some(format!("batch {other} has it")));
    }
    let unmet = state.unlanded_dependencies(task);
    if unmet.is_empty() {
        let was_run = state.attempts(task) > 0;
        let detail = known.last_details.get(&task).filter(|_| was_run).cloned();
        return ("queued", detail);
    }
    let names: Vec<&str> = unmet.iter().take(3).map(|other| batch.task_name(*other)).collect();
    let more = if unmet.len() > 3 { format!(", +{}", unmet.len() - 3) } else { String::new() };
    ("waiting", Some(format!("for {}{more}", names.join(", "))))
}

/// Returns the lanes of a batch in which an agent runs.
fn active_lanes(project: &Project, batch: &Batch) -> Vec<LaneProgress> {
    let lanes = batch_lanes(project, batch.id()).unwrap_or_default();
    let claimed = lanes.into_iter().filter(|(_, lane)| lane.state().is_claimed());
    claimed.filter_map(|(_, lane)| LaneProgress::of_running_lane(project, &lane.into_any())).collect()
}

impl LaneProgress {
    /// Returns the progress of the run in a lane; none if no agent runs there, or its records cannot be read.
    #[must_use]
    pub fn of_running_lane(project: &Project, lane: &AnyLane) -> Option<LaneProgress> {
        let (state, hook_activity) = effective_state(project, lane).ok()?;
        if !state.is_busy() {
            return None;
        }
        let layout = project.store.layout();
        let run = RunRecord::load_if_exists(&layout.run_record(&lane.name, lane.last_run)).ok().flatten();
        // For an agent that writes plain text, the last line of its output.
        let is_plain_text =
            run.as_ref().is_some_and(|run| run.dialect.as_deref() == Some(PLAIN_TEXT_DIALECT));
        let last_output =
            if is_plain_text { last_line(&layout.run_log(&lane.name, lane.last_run)) } else { None };
        let has_steps = run.as_ref().is_some_and(|run| run.step_run.is_some());
        let task_loop = has_steps.then(|| read_loop_status(&layout.lane(&lane.name), lane));
        let boxes = task_loop.and_then(|status| status.ok().flatten());
        let live = read_live_summary(&layout.run_live_view(&lane.name, lane.last_run));
        Some(LaneProgress {
            task: lane.batch.as_ref().map_or_else(String::new, |in_batch| in_batch.task.clone()),
            state,
            boxes: boxes.map(|LoopStatus { boxes_ticked: done, boxes_total: of, .. }| BoxProgress {
                done,
                total: of,
            }),
            activity: hook_activity.or_else(|| live.last_command.or(live.last_tool)).or(last_output),
            elapsed: run.map_or(Duration::ZERO, |run| now().duration_since(run.started)),
            cost: live.cost.map(|cost| cost.amount),
            tokens: live.tokens,
            name: lane.name.clone(),
        })
    }
}

/// Returns the last line of a log that is not empty, and reads only the end of the log.
fn last_line(log: &Path) -> Option<String> {
    let mut file = proq_base::regular_file::open_store_file(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(proq_base::terminal_text::escape_line(line))
}

/// Writes the progress file that the user requested for a batch. Nothing depends on that file.
pub(crate) fn write_progress(path: &Path, progress: &BatchProgress) {
    #[derive(Serialize)]
    struct ProgressFile<'a> {
        schema: u32,
        #[serde(flatten)]
        progress: &'a BatchProgress,
    }
    if let Ok(text) = serde_json::to_vec_pretty(&ProgressFile { schema: 1, progress }) {
        drop(write_unsynced(path, &text));
    }
}
