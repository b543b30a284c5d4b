//! The thread that lands a batch's tasks, one landing after the other, with retries of those that must wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use proq_git::{CommitId, Repo};
use proq_plan::schedule::event::ScheduleEvent;
use proq_store::base::batch_id::BatchId;
use proq_store::locks::lock::WaitLimit;

use super::initial_checks::InitialChecks;
use super::runner_event::{LandingResult, RunnerEvent};
use crate::lane::Project;
use crate::merge::land::parts::{PartsRequest, land_parts};
use crate::merge::types::candidate::LanePart;
use crate::merge::types::outcome::{LaneOutcome, Verdict};
use crate::swarm::Error;
use crate::swarm::batch::lanes::find_batch_lane;
use crate::swarm::batch::log::{EventFacts, TaskLanding};
use crate::swarm::batch::log_summary::event_task;
use crate::swarm::status::manual_repairs::find_manual_landing;

/// Time until the next attempt of a landing, by the number of previous attempts. Until then a lock may be
/// released, or a user may repair a hook.
const RETRY_DELAYS: [Duration; 6] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(20),
    Duration::from_secs(30),
];

/// Interval at which the thread checks for new orders, due attempts and whether retries are disabled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Function that opens the repository for one landing. The error is the reason why it cannot be opened now.
type OpenProject<'a> = &'a dyn Fn() -> Result<Project, String>;

/// An order to the landing thread: tasks of a batch that are to land together.
pub(super) struct LandingOrder {
    pub(super) batch: BatchId,
    pub(super) onto: String,
    /// Tip of the batch's own branch according to the log; none where tasks land on a branch of the user.
    pub(super) tip: Option<CommitId>,
    pub(super) parts: Vec<LanePart>,
}

/// A landing order and its next attempt.
struct PendingOrder {
    order: LandingOrder,
    /// Number of attempts so far.
    attempts: usize,
    /// Time of the next attempt.
    retry_at: Instant,
    /// Reason for which the last attempt failed.
    last_error: String,
}

/// Handle of the thread that lands tasks.
pub(super) struct LandingThread {
    pub(super) order_sender: Sender<LandingOrder>,
    /// Whether orders that cannot land now are reported as conflicts instead of retried.
    no_retries: Arc<AtomicBool>,
}

impl LandingThread {
    /// Starts the thread, which opens the repository separately.
    pub(super) fn spawn(
        repo: &Repo,
        checks: InitialChecks,
        event_sender: Sender<RunnerEvent>,
    ) -> LandingThread {
        let (order_sender, order_receiver) = mpsc::channel::<LandingOrder>();
        let no_retries = Arc::new(AtomicBool::new(false));
        let (dir, thread_flag) = (repo.command_dir().to_owned(), Arc::clone(&no_retries));
        std::thread::spawn(move || {
            run_landing_thread(&|| checks.open_project(&dir), &order_receiver, &event_sender, &thread_flag);
        });
        LandingThread { order_sender, no_retries }
    }

    /// Makes the thread report orders that cannot land now as conflicts, without further attempts.
    pub(super) fn disable_retries(&self) {
        self.no_retries.store(true, Ordering::Relaxed);
    }

    /// Makes the thread retry orders that cannot land now.
    pub(super) fn enable_retries(&self) {
        self.no_retries.store(false, Ordering::Relaxed);
    }
}

/// Lands orders as they arrive, and retries pending orders when they are due, until the sender is gone.
fn run_landing_thread(
    open_project: OpenProject<'_>,
    order_receiver: &Receiver<LandingOrder>,
    event_sender: &Sender<RunnerEvent>,
    no_retries: &AtomicBool,
) {
    let mut pending: Vec<PendingOrder> = Vec::new();
    // The log may lag behind what this thread has landed.
    let mut last_tip = None;
    loop {
        let received = match pending.is_empty() {
            true => order_receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => order_receiver.recv_timeout(POLL_INTERVAL),
        };
        match received {
            Ok(order) => {
                pending.push(PendingOrder {
                    order,
                    attempts: 0,
                    retry_at: Instant::now(),
                    last_error: String::new(),
                });
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        for mut pending_order in std::mem::take(&mut pending) {
            if pending_order.retry_at <= Instant::now()
                && !pending_order.try_landing(open_project, event_sender, &mut last_tip)
            {
                continue;
            }
            if proq_base::interrupt::require_no_signal().is_err() {
                return;
            }
            if no_retries.load(Ordering::Relaxed) {
                pending_order.report_as_conflict(event_sender);
            } else {
                pending.push(pending_order);
            }
        }
    }
}

impl PendingOrder {
    /// Tries to land the order. Returns whether part of it needs another attempt.
    fn try_landing(
        &mut self,
        open_project: OpenProject<'_>,
        event_sender: &Sender<RunnerEvent>,
        last_tip: &mut Option<CommitId>,
    ) -> bool {
        let mut landing = LandingResult::default();
        self.order.tip = self.order.tip.map(|tip| last_tip.unwrap_or(tip));
        let result = open_project().and_then(|project| land_order(&project, &self.order, &mut landing));
        *last_tip = landing.tip.or(*last_tip);
        self.order.remove_settled(&landing);
        if !landing.landed_tasks.is_empty() || !landing.not_landed_events.is_empty() {
            drop(event_sender.send(RunnerEvent::LandingFinished(landing)));
        }
        let Err(reason) = result else { return false };
        if self.order.parts.is_empty() {
            return false;
        }
        if self.last_error != reason && proq_base::interrupt::require_no_signal().is_ok() {
            drop(event_sender.send(RunnerEvent::LandingDelayed(self.order.task_numbers(), reason.clone())));
            self.last_error = reason;
        }
        self.retry_at = Instant::now() + RETRY_DELAYS[self.attempts.min(RETRY_DELAYS.len() - 1)];
        self.attempts += 1;
        true
    }

    /// Reports the order's tasks as conflicts, which are handled when the batch continues.
    fn report_as_conflict(self, event_sender: &Sender<RunnerEvent>) {
        let task_keys = self.order.task_numbers().into_iter();
        let not_landed = task_keys.map(|task| {
            (ScheduleEvent::ConflictCaptured { task }, EventFacts::with_detail(&*self.last_error))
        });
        drop(event_sender.send(RunnerEvent::LandingFinished(LandingResult {
            not_landed_events: not_landed.collect(),
            ..LandingResult::default()
        })));
    }
}

impl LandingOrder {
    /// Returns the numbers of the tasks that have still to land.
    fn task_numbers(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.key).collect()
    }

    /// Removes the tasks that landed or cannot land, and the tasks that need the latter. The scheduler
    /// derives that those do not land.
    fn remove_settled(&mut self, landing: &LandingResult) {
        let has_landed =
            |task: &usize| landing.landed_tasks.iter().any(|landed_task| landed_task.task == *task);
        let mut not_landed: Vec<usize> =
            landing.not_landed_events.iter().filter_map(|(event, _)| event_task(event)).collect();
        for part in &mut self.parts {
            part.required_parts.retain(|need| !has_landed(need));
        }
        self.parts.retain(|part| !has_landed(&part.key) && !not_landed.contains(&part.key));
        while let Some(at) = self
            .parts
            .iter()
            .position(|part| part.required_parts.iter().any(|need| not_landed.contains(need)))
        {
            not_landed.push(self.parts.remove(at).key);
        }
    }
}

/// Lands the tasks of an order that can land, and records the results in `landing`.
///
/// # Errors
/// The reason for which the other tasks have to be tried again.
fn land_order(project: &Project, order: &LandingOrder, landing: &mut LandingResult) -> Result<(), String> {
    let to_text = |e: &dyn std::error::Error| e.to_string();
    recreate_branch(&project.repo, order).map_err(|e| to_text(&e))?;
    let parts = collect_unlanded_parts(project, order, landing).map_err(|e| to_text(&e))?;
    landing.tip = project.repo.branch_tip(&order.onto).map_err(|e| to_text(&e))?;
    if parts.is_empty() {
        return Ok(());
    }
    // A task may change which checks exist.
    let base_checks = project.landing_checks(&order.onto).map_err(|e| to_text(&e))?.commands;
    let request =
        PartsRequest { parts: &parts, onto: &order.onto, no_checks: false, queue_wait: WaitLimit::Forever };
    let report = land_parts(project, &request).map_err(|e| to_text(&e))?;
    landing.tip = project.repo.branch_tip(&order.onto).map_err(|e| to_text(&e))?;
    let mut delay_reason = None;
    for lane_outcome in &report.lanes {
        let Some(task) = lane_outcome.part_key else { continue };
        match lane_outcome.result {
            Verdict::Landed | Verdict::Resolved | Verdict::AlreadyLanded => {
                let commit = lane_outcome.commit.or(landing.tip);
                landing.landed_tasks.extend(commit.map(|commit| TaskLanding { task, commit }));
            }
            Verdict::Conflict => {
                landing
                    .not_landed_events
                    .push((ScheduleEvent::ConflictCaptured { task }, conflict_facts(lane_outcome)));
            }
            // For example a lock, a hook, or a branch that is in use.
            Verdict::Refused if !lane_outcome.is_permanent => {
                delay_reason =
                    lane_outcome.message.clone().or_else(|| Some("it may not be merged".to_owned()));
            }
            Verdict::CheckFailed | Verdict::Refused => {
                landing
                    .not_landed_events
                    .push((ScheduleEvent::CheckFailed { task }, failed_check_facts(lane_outcome)));
            }
        }
    }
    landing.passed_checks = required_checks(&base_checks, order, &landing.landed_tasks);
    delay_reason.map_or(Ok(()), Err)
}

/// Returns the parts of an order that have still to land. Records in `landing` the tasks that the user has
/// landed, and those whose lane is gone.
fn collect_unlanded_parts(
    project: &Project,
    order: &LandingOrder,
    landing: &mut LandingResult,
) -> Result<Vec<LanePart>, Error> {
    let batch_and_branch = (&order.batch, order.onto.as_str());
    let mut parts = Vec::new();
    for part in &order.parts {
        let task = part.key;
        if let Some(commit) = find_manual_landing(project, batch_and_branch, &part.lane, part.last_commit)? {
            landing.landed_tasks.push(TaskLanding { task, commit });
        } else if find_batch_lane(project, batch_and_branch.0, &part.lane)?.is_none() {
            landing.not_landed_events.push((
                ScheduleEvent::CheckFailed { task },
                EventFacts::with_detail("its lane no longer exists"),
            ));
        } else {
            parts.push(part.clone());
        }
    }
    for part in &mut parts {
        part.required_parts
            .retain(|need| !landing.landed_tasks.iter().any(|landed_task| landed_task.task == *need));
    }
    Ok(parts)
}

/// Recreates the batch's own branch at its last tip if the user deleted it. Without the branch nothing could
/// ever land.
fn recreate_branch(repo: &Repo, order: &LandingOrder) -> Result<(), Error> {
    let Some(tip) = order.tip.filter(|tip| repo.has_object(*tip)) else { return Ok(()) };
    if repo.branch_tip(&order.onto)?.is_none() {
        let ref_name = format!("refs/heads/{}", order.onto);
        repo.create_ref(&ref_name, tip, "git-proq: the branch of the batch was gone")?;
    }
    Ok(())
}

/// Returns the checks that have to succeed before these tasks land, each once.
fn required_checks(
    base_checks: &[String],
    order: &LandingOrder,
    landed_tasks: &[TaskLanding],
) -> Vec<String> {
    let landed_parts =
        order.parts.iter().filter(|part| landed_tasks.iter().any(|landed_task| landed_task.task == part.key));
    let mut all: Vec<String> = Vec::new();
    for check in base_checks.iter().chain(landed_parts.flat_map(|part| &part.checks)) {
        if !all.contains(check) {
            all.push(check.clone());
        }
    }
    all
}

/// Returns the details of a task's conflict for the batch's log.
fn conflict_facts(lane_outcome: &LaneOutcome) -> EventFacts {
    EventFacts {
        lane: Some(lane_outcome.lane.clone()),
        conflict_files: lane_outcome.conflicted_files.clone(),
        detail: Some(format!(
            "it conflicts with {} in {}",
            lane_outcome.onto,
            proq_git::base::error::list_paths(&lane_outcome.conflicted_files)
        )),
        ..EventFacts::default()
    }
}

/// Returns the details of a failed check, or of a permanent refusal, for the batch's log.
fn failed_check_facts(lane_outcome: &LaneOutcome) -> EventFacts {
    EventFacts {
        lane: Some(lane_outcome.lane.clone()),
        conflict_files: lane_outcome.conflicted_files.clone(),
        failed_check: lane_outcome.check.as_ref().map(|check| check.command.clone()),
        check_log: lane_outcome.check.as_ref().map(|check| check.log.clone()),
        detail: lane_outcome.message.as_deref().map(|reason| {
            let hints = lane_outcome.hints.iter().flat_map(|hint| ["; ", &**hint]).collect::<String>();
            proq_base::terminal_text::escape_line(&format!("{reason}{hints}"))
        }),
        ..EventFacts::default()
    }
}
