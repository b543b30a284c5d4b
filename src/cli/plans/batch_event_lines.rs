//! Texts that describe the changes of a batch, one per log entry or action.

use proq_base::lane_name::LaneName;
use proq_base::terminal_text;
use proq_lib::lane::Project;
use proq_lib::swarm::batch::log::{EventEntry, LogLine};
use proq_lib::swarm::batch::log_summary::LogSummary;
use proq_lib::swarm::ops::follow::BatchFollower;
use proq_lib::types::BatchId;
use proq_lib::watch::watcher::Watch;
use proq_plan::schedule::action::Action;
use proq_plan::schedule::event::{ScheduleEvent, TaskRunEnd};
use proq_plan::schedule::state::State;
use proq_plan::schedule::task_phase::{FailureReason, TaskOutcome};

use super::text_parts::{clause, comma_list};
use crate::cli::invocation::failure::Failure;

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
        let entry = match line {
            LogLine::Note { note, tasks, .. } => {
                let names = comma_list(tasks.iter().map(|task| self.follower.batch.task_name(*task)));
                return vec![terminal_text::escape_line(&format!("{}{note}", clause("", &names, ": ")))];
            }
            LogLine::Entry(entry) => entry,
        };
        let event = self.describe_event(entry);
        let actions = self.state.handle(&entry.event);
        let (queued, others): (Vec<&Action>, Vec<&Action>) =
            actions.iter().partition(|action| matches!(action, Action::MarkQueued { .. }));
        let hidden_count = queued.len().saturating_sub(MAX_QUEUED_LISTED);
        let listed = others.into_iter().chain(queued.into_iter().take(MAX_QUEUED_LISTED));
        let out = event.into_iter().chain(listed.filter_map(|action| self.describe_action(action)));
        let more = (hidden_count > 0).then(|| format!("{hidden_count} more: queued"));
        out.chain(more).map(|text| terminal_text::escape_line(&text)).collect()
    }

    /// Describes an event of the batch as a line; `None` if it is not shown.
    fn describe_event(&self, entry: &EventEntry) -> Option<String> {
        let (batch, facts) = (&self.follower.batch, &entry.facts);
        let reason = facts.detail.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let (task, text) = match &entry.event {
            ScheduleEvent::RunStarted { task, attempt } => {
                let attempt = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                let agent = batch.tasks[*task].agent.as_deref().unwrap_or("its agent");
                let lane = facts.lane.as_ref().map_or("", LaneName::as_str);
                (task, format!("{agent} is working in lane '{lane}'{attempt}"))
            }
            ScheduleEvent::RunEnded { task, end, .. } => (task, format!("{}{reason}", run_end_text(*end))),
            ScheduleEvent::Landed { tasks } => {
                let names = comma_list(tasks.iter().map(|task| batch.task_name(*task)));
                let tip = facts.branch_tip.map(|tip| format!(" ({})", tip.short())).unwrap_or_default();
                return Some(format!("{names}: landed on {}{tip}", batch.record.branch));
            }
            ScheduleEvent::LandingUndone { task, work_kept } => {
                let next_step = if *work_kept { "it lands again" } else { "it is done again" };
                (task, format!("its landing was undone; {next_step}"))
            }
            // The reason has the conflict in it.
            ScheduleEvent::ConflictCaptured { task } if !reason.is_empty() => {
                return Some(format!("{}{reason}", batch.task_name(*task)));
            }
            ScheduleEvent::ConflictCaptured { task } => (task, "conflicts".to_owned()),
            ScheduleEvent::CheckFailed { task } => (task, format!("skipped{reason}")),
            ScheduleEvent::ConflictResolved { task } => {
                (task, self.describe_resolution(*task, facts.agent.as_deref()))
            }
            ScheduleEvent::FinishedByHand { task } => (task, "finished by hand in its lane".to_owned()),
            ScheduleEvent::RecheckRequested { task } => (task, "its checks run again".to_owned()),
            ScheduleEvent::ConflictGivenUp { task } => (task, format!("its conflict is unresolved{reason}")),
            ScheduleEvent::ClaimedElsewhere { task } => {
                (task, format!("batch {} has it", facts.claiming_batch.as_ref().map_or("", BatchId::as_str)))
            }
            ScheduleEvent::Retry { task } => (task, "retried".to_owned()),
            ScheduleEvent::LaneSetUpFailed { .. } => {
                return Some(format!("no lane could be created{reason}"));
            }
            ScheduleEvent::Abort { hard: true } => return Some("aborting now".to_owned()),
            ScheduleEvent::Abort { hard: false } => return Some("aborting".to_owned()),
            ScheduleEvent::Pause => return Some("pausing after the running tasks".to_owned()),
            ScheduleEvent::Resume => return Some("resumed".to_owned()),
            ScheduleEvent::BatchTakenOver { .. }
            | ScheduleEvent::BatchStarted
            | ScheduleEvent::LaneSetUp { .. }
            | ScheduleEvent::CapacityChanged { .. }
            | ScheduleEvent::CostReported { .. }
            | ScheduleEvent::BudgetSet { .. }
            | ScheduleEvent::ClaimEnded { .. } => return None,
        };
        Some(format!("{}: {text}", batch.task_name(*task)))
    }

    /// Describes that the conflict of a task is resolved, or that its failed check is repaired.
    fn describe_resolution(&self, task: usize, resolver: Option<&str>) -> String {
        if self.state.task_outcome(task) == Some(TaskOutcome::Failed(FailureReason::CheckFailed)) {
            return "it was repaired and is checked again".to_owned();
        }
        format!("its conflict is resolved{}", clause(" by ", resolver.unwrap_or_default(), ""))
    }

    /// Describes an action of the scheduler as a line; `None` if it is not shown.
    fn describe_action(&self, action: &Action) -> Option<String> {
        let name = |task: &usize| self.follower.batch.task_name(*task);
        let (task, text) = match action {
            Action::MarkSkipped { task, cause } => (task, format!("skipped because of {}", name(cause))),
            Action::MarkFailed { task, reason } => {
                let reason = match reason {
                    FailureReason::RunFailed(_) => "no more retries",
                    FailureReason::NotStarted => "no agent could be started for it",
                    FailureReason::SetUpFailed => "its lane could not be created",
                    FailureReason::ConflictUnresolved => "it cannot land: its conflict is not resolved",
                    FailureReason::CheckFailed => "it cannot land: its checks fail",
                };
                (task, format!("failed: {reason}"))
            }
            Action::MarkSetAside { task } => {
                (task, format!("set aside after {} failures", self.state.failures(*task)))
            }
            Action::MarkWaiting { task } => (task, "waits again".to_owned()),
            Action::MarkQueued { task } => (task, "queued".to_owned()),
            Action::StartResolution { task } => (task, "its conflict is being resolved".to_owned()),
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
        };
        Some(format!("{}: {text}", name(task)))
    }
}

/// Describes the result of a task's run.
fn run_end_text(end: TaskRunEnd) -> String {
    let failure = match end {
        TaskRunEnd::Done => return "done".to_owned(),
        TaskRunEnd::NoChange => return "it changed nothing".to_owned(),
        TaskRunEnd::AlreadyDone => return "was done already".to_owned(),
        TaskRunEnd::NotStarted => return "its agent could not be started".to_owned(),
        TaskRunEnd::Failed(class) => class.to_string(),
    };
    match failure.as_str() {
        "failed" | "crashed" | "stalled" => format!("its run {failure}"),
        "timeout" => "its run took too long".to_owned(),
        other => format!("its run ended as {other}"),
    }
}
