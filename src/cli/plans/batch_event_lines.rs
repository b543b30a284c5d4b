//! Texts that describe the changes of a batch, one per log entry or action.

use proq_base::lane_name::LaneName;
use proq_base::terminal_text;
use proq_lib::lane::Project;
use proq_lib::swarm::batch::log::{EventEntry, LogLine};
use proq_lib::swarm::batch::log_summary::LogSummary;
use proq_lib::swarm::ops::follow::BatchFollower;
use proq_lib::types::BatchId;
use proq_lib::watch::watcher::Watch;
use proq_plan::schedule::action::{Action, BatchOutcome, PauseReason};
use proq_plan::schedule::event::{ScheduleEvent, TaskRunEnd};
use proq_plan::schedule::state::State;
use proq_plan::schedule::task_phase::{FailureReason, TaskOutcome};

use crate::cli::invocation::failure::Failure;
use crate::cli::terminal::ui;

/// Maximum number of tasks that are listed if one event queues many.
const MAX_QUEUED_LISTED: usize = 10;

/// State of a batch as replayed from its log, with the scheduler's own rules.
pub(crate) struct BatchReplay {
    pub(crate) follower: BatchFollower,
    pub(crate) state: State,
    pub(crate) log_summary: LogSummary,
}

impl BatchReplay {
    /// Starts the replay with the lines that the follower has read already.
    pub(crate) fn new(mut follower: BatchFollower) -> BatchReplay {
        let past_lines = std::mem::take(&mut follower.past_lines);
        let state = follower.batch.fold_state(&past_lines);
        let log_summary = LogSummary::from_lines(&follower.batch, &past_lines);
        BatchReplay { follower, state, log_summary }
    }

    /// Prints the changes since the last call, each with its local time. Returns whether a scheduler still works
    /// on the batch; a wait for `watch` ends once none does.
    pub(crate) fn print_new_lines(
        &mut self,
        project: &Project,
        watch: &mut Watch<'_>,
        print_line: &mut dyn FnMut(String),
    ) -> Result<bool, Failure> {
        for line in self.follower.read_new_lines(project, watch)? {
            for text in self.apply_log_line(&line) {
                print_line(format!("{}  {text}", line.time().to_local_text()));
            }
        }
        // The scheduler releases its lock last: once the view ends, the next command finds the lock free.
        Ok(self.follower.has_scheduler)
    }

    /// Applies a log line to the state, and returns the lines to print for it.
    fn apply_log_line(&mut self, line: &LogLine) -> Vec<String> {
        self.log_summary.apply_line(line);
        let mut out = Vec::new();
        match line {
            LogLine::Note { note, tasks, .. } => {
                let names: Vec<&str> =
                    tasks.iter().map(|task| self.follower.batch.task_name(*task)).collect();
                let tasks_prefix =
                    if names.is_empty() { String::new() } else { format!("{}: ", names.join(", ")) };
                out.push(format!("{tasks_prefix}{note}"));
            }
            LogLine::Entry(entry) => {
                out.extend(self.describe_event(entry));
                let actions = self.state.handle(&entry.event);
                let (queued, others): (Vec<&Action>, Vec<&Action>) =
                    actions.iter().partition(|action| matches!(action, Action::MarkQueued { .. }));
                out.extend(others.into_iter().filter_map(|action| self.describe_action(action)));
                let hidden_count = queued.len().saturating_sub(MAX_QUEUED_LISTED);
                out.extend(
                    queued
                        .into_iter()
                        .take(MAX_QUEUED_LISTED)
                        .filter_map(|action| self.describe_action(action)),
                );
                out.extend((hidden_count > 0).then(|| format!("{hidden_count} more: queued")));
            }
        }
        out.into_iter().map(|text| terminal_text::escape_line(&text)).collect()
    }

    /// Describes an event of the batch as a line; `None` if it is not shown.
    fn describe_event(&self, entry: &EventEntry) -> Option<String> {
        let facts = &entry.facts;
        let name = |task: usize| self.follower.batch.task_name(task);
        let reason_suffix = facts.detail.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let lane = facts.lane.as_ref().map_or("", LaneName::as_str);
        Some(match &entry.event {
            ScheduleEvent::RunStarted { task, attempt } => {
                let attempt_suffix =
                    if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                let agent = self.follower.batch.tasks[*task].agent.as_deref().unwrap_or("its agent");
                format!("{}: {agent} is at work in lane '{lane}'{attempt_suffix}", name(*task))
            }
            ScheduleEvent::RunEnded { task, end, .. } => {
                format!("{}: {}{reason_suffix}", name(*task), run_end_text(*end))
            }
            ScheduleEvent::Landed { tasks } => {
                let names: Vec<&str> = tasks.iter().map(|task| name(*task)).collect();
                let tip = facts.branch_tip.map(|tip| format!(" ({})", tip.short())).unwrap_or_default();
                format!("{}: landed on {}{tip}", names.join(", "), self.follower.batch.record.branch)
            }
            ScheduleEvent::LandingUndone { task, work_kept: kept } => {
                let next_step = if *kept { "it lands again" } else { "it is done anew" };
                format!("{}: its landing was taken back; {next_step}", name(*task))
            }
            ScheduleEvent::ConflictCaptured { task } => {
                format!("{}{reason_suffix}", event_prefix(name(*task), "conflicts", &reason_suffix))
            }
            ScheduleEvent::CheckFailed { task } => format!("{}: left out{reason_suffix}", name(*task)),
            ScheduleEvent::ConflictResolved { task } => {
                self.describe_resolution(*task, facts.agent.as_deref())
            }
            ScheduleEvent::FinishedByHand { task } => format!("{}: it was finished in its lane", name(*task)),
            ScheduleEvent::RecheckRequested { task } => format!("{}: its checks run again", name(*task)),
            ScheduleEvent::ConflictGivenUp { task } => {
                format!("{}: its conflict is left{reason_suffix}", name(*task))
            }
            ScheduleEvent::ClaimedElsewhere { task } => {
                format!(
                    "{}: batch {} has it",
                    name(*task),
                    facts.claiming_batch.as_ref().map_or("", BatchId::as_str)
                )
            }
            ScheduleEvent::LaneSetUpFailed { .. } => format!("no lane could be made{reason_suffix}"),
            ScheduleEvent::Abort { hard } => {
                format!("it is being aborted{}", if *hard { " at once" } else { "" })
            }
            ScheduleEvent::Pause => "it is to pause: what runs is ended first".to_owned(),
            ScheduleEvent::Resume => "it goes on".to_owned(),
            ScheduleEvent::BatchTakenOver { .. } => "another process goes on with it".to_owned(),
            ScheduleEvent::Retry { task } => format!("{}: it is tried again", name(*task)),
            ScheduleEvent::BatchStarted
            | ScheduleEvent::LaneSetUp { .. }
            | ScheduleEvent::CapacityChanged { .. }
            | ScheduleEvent::CostReported { .. }
            | ScheduleEvent::BudgetSet { .. }
            | ScheduleEvent::ClaimEnded { .. } => return None,
        })
    }

    /// Describes that the conflict of a task is resolved, or that its failed check is repaired.
    fn describe_resolution(&self, task: usize, resolver: Option<&str>) -> String {
        let name = self.follower.batch.task_name(task);
        if self.state.task_outcome(task) == Some(TaskOutcome::Failed(FailureReason::CheckFailed)) {
            return format!("{name}: it was repaired, and is checked again");
        }
        let resolver_suffix = resolver.map(|resolver| format!(" by {resolver}")).unwrap_or_default();
        format!("{name}: its conflict is resolved{resolver_suffix}")
    }

    /// Describes an action of the scheduler as a line; `None` if it is not shown.
    fn describe_action(&self, action: &Action) -> Option<String> {
        let name = |task: &usize| self.follower.batch.task_name(*task);
        Some(match action {
            Action::MarkSkipped { task, cause: because } => {
                format!("{}: skipped because of {}", name(task), name(because))
            }
            Action::MarkFailed { task, reason: why } => {
                let reason = match why {
                    FailureReason::RunFailed(_) => "it is not tried again",
                    FailureReason::NotStarted => "no agent could be started for it",
                    FailureReason::SetUpFailed => "its lane could not be made",
                    FailureReason::ConflictUnresolved => "it cannot land: its conflict is not resolved",
                    FailureReason::CheckFailed => "it cannot land: its checks fail",
                };
                format!("{}: failed: {reason}", name(task))
            }
            Action::MarkSetAside { task } => {
                let count = self.state.failures(*task);
                format!("{}: set aside, it has failed {count} times", name(task))
            }
            Action::MarkWaiting { task } => format!("{}: waits again", name(task)),
            Action::MarkQueued { task } => format!("{}: queued", name(task)),
            Action::StartResolution { task } => format!("{}: somebody is sent at its conflict", name(task)),
            Action::RetainLane { .. }
            | Action::CreateLane { .. }
            | Action::SetUpLane { .. }
            | Action::StartRun { .. }
            | Action::StopRun { .. }
            | Action::ResetLane { .. }
            | Action::Land { .. }
            | Action::StopResolution { .. }
            | Action::ReleaseTask { .. }
            | Action::DiscardLane { .. }
            | Action::MarkPaused { .. }
            | Action::MarkFinished { .. } => return None,
        })
    }

    /// Describes the outcome of the batch in one sentence; none while the batch runs.
    pub(crate) fn describe_end(&self) -> Option<String> {
        let tasks = self.follower.batch.tasks.len();
        let count_outcome = |outcome: TaskOutcome| {
            (0..tasks).filter(|task| self.state.task_outcome(*task) == Some(outcome)).count()
        };
        let already_done_suffix = match count_outcome(TaskOutcome::AlreadyDone) {
            0 => String::new(),
            n => format!(", {n} had been done before"),
        };
        let landed_text = format!(
            "{} of {} landed{already_done_suffix}",
            count_outcome(TaskOutcome::Landed),
            ui::pluralize(tasks, "task")
        );
        if let Some(outcome) = self.state.final_outcome() {
            let outcome_text = match outcome {
                BatchOutcome::Complete => "is complete",
                BatchOutcome::Partial => "is over",
                BatchOutcome::Stopped => "was stopped by a failure",
                BatchOutcome::Aborted => "was aborted",
            };
            return Some(format!("batch {} {outcome_text}: {landed_text}", self.follower.batch.id()));
        }
        let reason_suffix = match self.state.pause_reason()? {
            PauseReason::Requested => String::new(),
            PauseReason::LandingFailed(task) => {
                format!(", since {} cannot land", self.follower.batch.task_name(task))
            }
            PauseReason::BudgetSpent => ", since it has cost what it may".to_owned(),
        };
        Some(format!("batch {} is paused{reason_suffix}: {landed_text}", self.follower.batch.id()))
    }
}

/// Returns `name: statement`; only the name if there is a detail, which contains the statement already.
fn event_prefix(name: &str, statement: &str, detail: &str) -> String {
    if detail.is_empty() { format!("{name}: {statement}") } else { name.to_owned() }
}

/// Describes the result of a task's run.
fn run_end_text(end: TaskRunEnd) -> String {
    match end {
        TaskRunEnd::Done => "done".to_owned(),
        TaskRunEnd::NoChange => "it changed nothing".to_owned(),
        TaskRunEnd::AlreadyDone => "had been done before".to_owned(),
        TaskRunEnd::NotStarted => "its agent could not be started".to_owned(),
        TaskRunEnd::Failed(class) => format!("its run {}", exit_class_phrase(&class.to_string())),
    }
}

/// Returns the last words of a sentence about how a run ended, from the name of its exit class.
fn exit_class_phrase(class: &str) -> String {
    match class {
        "failed" | "crashed" | "stalled" => class.to_owned(),
        "timeout" => "took too long".to_owned(),
        other => format!("ended as {other}"),
    }
}
