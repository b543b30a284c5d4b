//! Reference model of the scheduler: a simple model that checks each requested action and the outcome of each
//! task.

pub mod event_effects;

use std::collections::{BTreeMap, BTreeSet};

use proq_base::money::NanoDollars;

use super::batch_case::BatchCase;
use super::plan_stages::{expected_stages, transitive_dependencies};
use crate::schedule::action::{Action, BatchOutcome, RunBase};
use crate::schedule::event::ScheduleEvent;
use crate::schedule::options::{BatchOptions, LandingMode};
use crate::schedule::state::State;
use crate::schedule::task_phase::{FailureReason, TaskOutcome, UnfinishedPhase};
use crate::schedule::workload::Workload;

/// Contents of a lane in the reference model.
#[derive(Debug, Default)]
struct ModelLane {
    is_set_up: bool,
    is_removed: bool,
    /// Number of branch updates below the lowest work in the lane.
    base_updates: u32,
    /// Tasks whose work is in the lane, from the lowest to the highest.
    stacked_tasks: Vec<usize>,
    /// The task of a failed run whose work is on top.
    failed_task: Option<usize>,
    /// Whether that failed run was interrupted, so that its task may continue from its work.
    was_interrupted: bool,
    running_task: Option<usize>,
}

pub(crate) struct ReferenceModel {
    pub ancestors: Vec<BTreeSet<usize>>,
    pub claimed_elsewhere: BTreeSet<usize>,
    pub capacity: Option<usize>,
    pub spent: NanoDollars,
    pub(crate) reported_starts: BTreeSet<(usize, u32)>,
    workload: Workload,
    options: BatchOptions,
    stages: Vec<(usize, usize)>,
    lanes: BTreeMap<usize, ModelLane>,
    running: BTreeMap<usize, (u32, usize)>,
    started_runs: BTreeSet<(usize, u32)>,
    stop_requested: BTreeSet<usize>,
    landed_at: BTreeMap<usize, u32>,
    branch_updates: u32,
    conflicts: BTreeSet<usize>,
    /// Tasks that had a conflict or were retried by the user, and their dependents. Later stages may have
    /// started before them.
    exempt_from_stage: BTreeSet<usize>,
    /// Tasks that the user reopened after they were settled, and their dependents. Later phases may have
    /// started before them.
    reopened: BTreeSet<usize>,
    ready_to_land: BTreeSet<usize>,
    /// Tasks whose checks run again on the same work.
    rechecked: BTreeSet<usize>,
    outcomes: BTreeMap<usize, TaskOutcome>,
    failures: Vec<u32>,
    started_tasks: BTreeSet<usize>,
    claimed_here: BTreeSet<usize>,
    is_paused: bool,
    is_aborted: bool,
    is_stopped_by_policy: bool,
    /// Whether all running agents are to stop, as the user or a policy requires.
    stops_all_runs: bool,
    requested_landings: BTreeSet<usize>,
}

impl ReferenceModel {
    pub fn new(workload: &Workload, case: &BatchCase) -> ReferenceModel {
        let tasks = workload.tasks();
        let options = case.options;
        let initial_outcome = |task: usize| match &tasks[task] {
            input if input.done => Some((task, TaskOutcome::AlreadyDone)),
            input if input.failures >= options.max_attempts => Some((task, TaskOutcome::SetAside)),
            _ => None,
        };
        ReferenceModel {
            ancestors: transitive_dependencies(workload),
            claimed_elsewhere: BTreeSet::new(),
            capacity: None,
            spent: NanoDollars::ZERO,
            reported_starts: BTreeSet::new(),
            stages: expected_stages(workload, options.mode),
            lanes: BTreeMap::new(),
            running: BTreeMap::new(),
            started_runs: BTreeSet::new(),
            stop_requested: BTreeSet::new(),
            landed_at: BTreeMap::new(),
            branch_updates: 0,
            conflicts: BTreeSet::new(),
            exempt_from_stage: BTreeSet::new(),
            reopened: BTreeSet::new(),
            ready_to_land: BTreeSet::new(),
            rechecked: BTreeSet::new(),
            outcomes: (0..tasks.len()).filter_map(initial_outcome).collect(),
            failures: tasks.iter().map(|t| t.failures).collect(),
            started_tasks: BTreeSet::new(),
            claimed_here: BTreeSet::new(),
            is_paused: false,
            is_aborted: false,
            is_stopped_by_policy: false,
            stops_all_runs: false,
            requested_landings: BTreeSet::new(),
            workload: workload.clone(),
            options,
        }
    }

    /// Returns the first task without a result, searching from `start` and wrapping around, else `start`.
    pub(crate) fn next_failed_task(&self, start: usize) -> usize {
        let has_no_result =
            |task: &usize| self.outcomes.get(task).is_some_and(|outcome| blocks_dependents(*outcome));
        (start..self.workload.tasks().len()).chain(0..start).find(has_no_result).unwrap_or(start)
    }

    /// Updates the model for an event that the scheduler is about to get.
    pub(crate) fn before_event(&mut self, event: &ScheduleEvent, state: &State) {
        self.note_exemptions(event);
        let is_over = state.final_outcome().is_some();
        match event {
            ScheduleEvent::Pause if !is_over => self.is_paused = true,
            ScheduleEvent::Resume => {
                (self.is_paused, self.is_aborted, self.is_stopped_by_policy) = (false, false, false);
                self.stops_all_runs = false;
            }
            ScheduleEvent::Abort { .. } if !is_over => (self.is_aborted, self.stops_all_runs) = (true, true),
            ScheduleEvent::CapacityChanged { capacity: room } => self.capacity = *room,
            ScheduleEvent::CostReported { total } => self.spent = *total,
            ScheduleEvent::BudgetSet { limit: most } => self.options.budget = *most,
            ScheduleEvent::ClaimedElsewhere { task } => drop(self.claimed_elsewhere.insert(*task)),
            ScheduleEvent::ClaimEnded { task } => drop(self.claimed_elsewhere.remove(task)),
            ScheduleEvent::LaneSetUp { lane } => self.on_lane_set_up(*lane),
            ScheduleEvent::LaneSetUpFailed { lane } => self.on_lane_set_up_failed(*lane),
            ScheduleEvent::RunStarted { task, attempt } => {
                self.reported_starts.insert((*task, *attempt));
            }
            ScheduleEvent::RunEnded { task, end, .. } => self.on_run_ended(*task, *end),
            ScheduleEvent::Landed { tasks } => self.on_landed(tasks),
            ScheduleEvent::ConflictCaptured { task } if self.options.resolve_conflicts => {
                self.rechecked.remove(task);
                self.conflicts.insert(*task);
            }
            ScheduleEvent::ConflictCaptured { task } => {
                self.rechecked.remove(task);
                self.on_not_landed(*task, FailureReason::ConflictUnresolved);
            }
            ScheduleEvent::CheckFailed { task } => self.on_not_landed(*task, FailureReason::CheckFailed),
            ScheduleEvent::ConflictResolved { task } => self.on_conflict_resolved(*task),
            ScheduleEvent::RecheckRequested { task } => self.on_recheck_requested(*task),
            ScheduleEvent::ConflictGivenUp { task } => {
                if self.conflicts.contains(task) && !self.stop_requested.remove(task) {
                    self.on_not_landed(*task, FailureReason::ConflictUnresolved);
                }
            }
            ScheduleEvent::Retry { task } => self.on_retry(*task),
            ScheduleEvent::BatchTakenOver { runs } => self.on_taken_over(runs),
            ScheduleEvent::BatchStarted
            | ScheduleEvent::Pause
            | ScheduleEvent::Abort { .. }
            | ScheduleEvent::LandingUndone { .. }
            | ScheduleEvent::FinishedByHand { .. } => {}
        }
    }

    /// Checks the scheduler's state after an event.
    pub(crate) fn after_event(&mut self, event: &ScheduleEvent, state: &State) {
        if let ScheduleEvent::Landed { tasks } = event {
            assert!(tasks.iter().all(|task| state.task_outcome(*task) == Some(TaskOutcome::Landed)));
        }
        self.is_paused &= state.final_outcome().is_none();
        if state.pause_reason().is_some() && self.workload.tasks().len() <= 40 {
            self.assert_exact_skips(state);
        }
    }

    /// Records a requested stop, even if the process is killed before it carries the stop out.
    pub(crate) fn note_stop_request(&mut self, action: &Action) {
        match action {
            Action::StopRun { task, attempt, .. }
                if self.running.get(task).is_some_and(|run| run.0 == *attempt) =>
            {
                self.stop_requested.insert(*task);
            }
            Action::StopResolution { task, .. } => drop(self.stop_requested.insert(*task)),
            _ => {}
        }
    }

    /// Checks an action that is about to be carried out.
    pub(crate) fn check_action(&mut self, action: &Action) {
        match action {
            Action::CreateLane { lane, task, branch_updates: from } => {
                assert!(*from <= self.branch_updates);
                assert!(
                    self.lanes.get(lane).is_none_or(|lane_entry| !lane_entry.is_set_up),
                    "lane {lane} is made twice"
                );
                self.claimed_here.insert(*task);
                // `stacked_tasks` contains the lane's first task until the lane is set up, so that a failed
                // set-up finds its task.
                self.lanes.insert(*lane, ModelLane { stacked_tasks: vec![*task], ..ModelLane::default() });
            }
            Action::StartRun { task, lane, attempt, base: from } => {
                self.check_start(*task, *lane, *attempt, *from);
            }
            Action::ResetLane { lane, .. } => self.lanes.get_mut(lane).unwrap().failed_task = None,
            Action::Land { landing, tasks } => {
                // A landing that was requested before an abort continues.
                assert!(
                    !self.requested_landings.insert(*landing) || !self.is_aborted,
                    "something lands after an abort"
                );
                let is_same_stage = tasks.iter().all(|t| self.stages[*t] == self.stages[tasks[0]]);
                assert!(is_same_stage, "tasks of several stages land together");
                assert!(self.options.mode != LandingMode::Continuous || tasks.len() == 1);
            }
            Action::StartResolution { .. } => {
                assert!(!self.is_aborted && !self.is_budget_spent(), "a resolution too many");
            }
            Action::ReleaseTask { task } => drop(self.claimed_here.remove(task)),
            Action::DiscardLane { lane } => {
                if let Some(lane_entry) = self.lanes.get_mut(lane) {
                    lane_entry.is_removed = true;
                    let lost = lane_entry
                        .stacked_tasks
                        .iter()
                        .find(|task| lane_entry.is_set_up && !self.landed_at.contains_key(task));
                    let lost = lost
                        .filter(|task| !matches!(self.outcomes.get(task), Some(TaskOutcome::AlreadyDone)));
                    assert!(
                        lost.is_none() && lane_entry.running_task.is_none(),
                        "lane {lane} goes with work in it"
                    );
                }
            }
            _ => {}
        }
    }

    fn is_budget_spent(&self) -> bool {
        self.options.budget.is_some_and(|most| self.spent >= most)
    }

    fn check_start(&mut self, task: usize, lane: usize, attempt: u32, base: RunBase) {
        self.check_attempt(task, attempt);
        self.assert_may_start(task);
        let lane_entry = self.lanes.get_mut(&lane).expect("a lane that was never made");
        let is_clean = lane_entry
            .failed_task
            .is_none_or(|failed_task| failed_task == task && lane_entry.was_interrupted);
        assert!(
            lane_entry.is_set_up && !lane_entry.is_removed && lane_entry.running_task.is_none() && is_clean,
            "lane {lane} is not fit: {lane_entry:?}"
        );
        lane_entry.failed_task = None;
        match base {
            RunBase::BranchTip(tip) => {
                assert!(tip <= self.branch_updates);
                // The task for which the lane was created is in the list until it has run.
                let unlanded_task = lane_entry
                    .stacked_tasks
                    .iter()
                    .find(|t| !self.landed_at.contains_key(*t) && self.ready_to_land.contains(*t));
                assert_eq!(unlanded_task, None, "work in lane {lane} is passed over");
                lane_entry.stacked_tasks.clear();
                lane_entry.base_updates = tip;
            }
            RunBase::OnTask(base_task) => {
                let position = lane_entry
                    .stacked_tasks
                    .iter()
                    .position(|t| *t == base_task)
                    .expect("it stands on what is not there");
                lane_entry.stacked_tasks.truncate(position + 1);
            }
        }
        for dependency in &self.workload.tasks()[task].depends_on {
            let is_in_base = match self.outcomes.get(dependency) {
                Some(TaskOutcome::AlreadyDone) => true,
                Some(TaskOutcome::Landed) => {
                    self.landed_at[dependency] <= lane_entry.base_updates
                        || lane_entry.stacked_tasks.contains(dependency)
                }
                _ => lane_entry.stacked_tasks.contains(dependency) && self.ready_to_land.contains(dependency),
            };
            assert!(is_in_base, "task {task} starts from {base:?} without {dependency}");
        }
        lane_entry.running_task = Some(task);
        self.running.insert(task, (attempt, lane));
        self.started_tasks.insert(task);
        self.claimed_here.insert(task);
    }

    /// Records an attempt, and asserts that it is the next one of an open task and within all limits.
    fn check_attempt(&mut self, task: usize, attempt: u32) {
        assert!(
            self.started_runs.insert((task, attempt)),
            "task {task} is started twice by attempt {attempt}"
        );
        assert!(
            attempt == 1 || self.started_runs.contains(&(task, attempt - 1)),
            "attempt {attempt} before others"
        );
        assert!(
            !self.outcomes.contains_key(&task) && !self.ready_to_land.contains(&task),
            "task {task} had its end"
        );
        assert!(
            !self.is_paused && !self.is_aborted && !self.is_budget_spent(),
            "task {task} is started all the same"
        );
        assert!(!self.is_stopped_by_policy, "task {task} is started after a failure");
        let run_limit = self.options.max_parallel.min(self.capacity.unwrap_or(usize::MAX));
        assert!(self.running.len() < run_limit, "{} runs at work, of {run_limit}", self.running.len() + 1);
    }

    /// Asserts that no overlapping task runs, that earlier stages are finished except for conflicts, and that
    /// no earlier phase has a conflict.
    fn assert_may_start(&self, task: usize) {
        for group in self.workload.overlap_groups().iter().filter(|group| group.contains(&task)) {
            let conflicting = group
                .iter()
                .find(|other| self.running.contains_key(other) && self.stages[**other] == self.stages[task]);
            assert_eq!(conflicting, None, "overlaps with {task} and is at work");
        }
        let blocker = (0..self.stages.len()).find(|other| {
            self.stages[*other] < self.stages[task]
                && !self.outcomes.contains_key(other)
                && !self.exempt_from_stage.contains(other)
                && !self.has_failed_ancestor(*other)
        });
        assert_eq!(blocker, None, "task {task} starts before its stage");
        let is_earlier_phase = |other: &&usize| self.stages[**other].0 < self.stages[task].0;
        let open_conflict =
            self.conflicts.iter().filter(is_earlier_phase).find(|other| !self.reopened.contains(other));
        assert_eq!(open_conflict, None, "task {task} starts before its phase");
    }

    /// Returns whether a task cannot start because a direct or indirect dependency has no result.
    fn has_failed_ancestor(&self, task: usize) -> bool {
        let mut pending = vec![task];
        let mut seen = BTreeSet::new();
        while let Some(task) = pending.pop() {
            for dependency in &self.workload.tasks()[task].depends_on {
                match self.outcomes.get(dependency) {
                    Some(outcome) if blocks_dependents(*outcome) => return true,
                    Some(_) => {}
                    None if self.conflicts.contains(dependency) => {}
                    None => pending.extend(seen.insert(*dependency).then_some(*dependency)),
                }
            }
        }
        false
    }

    fn assert_exact_skips(&self, state: &State) {
        for task in 0..self.ancestors.len() {
            let has_outcome = self.outcomes.contains_key(&task) || self.conflicts.contains(&task);
            let skipped = state.task_outcome(task) == Some(TaskOutcome::Skipped);
            assert_eq!(
                skipped,
                !has_outcome && self.has_failed_ancestor(task),
                "task {task}: {:?}",
                state.task_outcome(task)
            );
        }
    }

    /// Checks the outcome of the batch and of each task after the batch has finished.
    pub(crate) fn check_final_state(&self, state: &State) {
        let outcome = state.final_outcome().unwrap();
        self.assert_exact_skips(state);
        let mut complete = true;
        for task in 0..self.ancestors.len() {
            let task_outcome = state.task_outcome(task).expect("a task without an end");
            complete &= matches!(task_outcome, TaskOutcome::Landed | TaskOutcome::AlreadyDone);
            match (self.outcomes.get(&task), task_outcome) {
                (Some(expected), _) => assert_eq!(*expected, task_outcome, "task {task}"),
                (None, TaskOutcome::Skipped) => {}
                (None, TaskOutcome::Unfinished(unfinished)) => {
                    assert!(
                        matches!(outcome, BatchOutcome::Stopped | BatchOutcome::Aborted),
                        "task {task} is left over"
                    );
                    let has_work = self.ready_to_land.contains(&task) || self.conflicts.contains(&task);
                    assert_eq!(has_work, unfinished == UnfinishedPhase::NotLanded, "task {task}");
                    assert!(
                        has_work
                            || self.started_tasks.contains(&task)
                                == (unfinished == UnfinishedPhase::Interrupted),
                        "task {task}"
                    );
                }
                (None, unexpected) => panic!("task {task} came to {unexpected:?} by nothing"),
            }
        }
        assert_eq!(complete, outcome == BatchOutcome::Complete);
        assert!(self.running.is_empty());
        assert_eq!(self.claimed_here, BTreeSet::new(), "tasks are held after the end");
    }
}

/// Returns whether a task with this outcome causes its dependents to be skipped.
fn blocks_dependents(outcome: TaskOutcome) -> bool {
    matches!(outcome, TaskOutcome::NoChange | TaskOutcome::Failed(_) | TaskOutcome::SetAside)
}
