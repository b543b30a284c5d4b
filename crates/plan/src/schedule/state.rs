//! State of a batch in the scheduler, updated event by event.

use std::collections::{BTreeMap, BTreeSet};

use proq_base::money::NanoDollars;

use super::action::{Action, BatchOutcome, PauseReason, RunBase};
use super::counters::{Counters, TaskMembership};
use super::event::ScheduleEvent;
use super::lane::{LaneUse, ScheduledLane};
use super::layout::ScheduleOrder;
use super::options::{BatchOptions, LandingMode};
use super::task_phase::TaskPhase;
use super::workload::Workload;

/// State of a batch in the scheduler. It follows from the workload, the options and the events alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Tasks of the batch, with their dependencies, file overlaps and phases.
    pub work: Workload,
    /// Options with which the batch runs; the user may change the budget in them.
    pub options: BatchOptions,
    /// Order and grouping of the tasks, fixed before the first run.
    pub order: ScheduleOrder,
    /// State of each task, by task number.
    pub tasks: Vec<TaskState>,
    /// All lanes of the batch by lane number, including those that were removed.
    pub lanes: Vec<ScheduledLane>,
    /// Number of the next landing.
    pub(crate) next_landing: usize,
    /// Number of updates of the batch's branch: landings, and landings that were undone.
    pub branch_updates: u32,
    /// Status of the batch as a whole.
    pub status: BatchStatus,
    /// Maximum number of runs of this batch that the limit over all batches allows. None when there is no
    /// such limit.
    pub capacity: Option<usize>,
    /// Cost of the batch so far.
    pub spent: NanoDollars,
    /// Counts and sets of tasks by phase, updated with each change of a phase.
    pub(crate) counters: Counters,
    /// Ranks of the tasks that are ready to run, by bundle.
    pub(crate) ready_by_bundle: BTreeMap<usize, BTreeSet<usize>>,
    /// The first ready rank of each bundle, as (rank, bundle).
    pub(crate) bundle_heads: BTreeSet<(usize, usize)>,
    /// Ranks of ready tasks that no action has reported as queued yet.
    pub(crate) unreported_ready: BTreeSet<usize>,
    /// The lane in which a bundle's tasks run, by bundle.
    pub(crate) lane_by_bundle: BTreeMap<usize, usize>,
    /// Tasks that land alone, not with their stage, such as those whose conflict was resolved.
    pub(crate) single_landings: BTreeSet<usize>,
    /// Lanes that can get runs.
    pub open_lanes: BTreeSet<usize>,
    /// The lane that got a run last.
    pub(crate) last_lane: usize,
    /// Number of times that work became ready to land. It orders the tasks of a landing.
    pub(crate) ready_to_land_count: usize,
    /// Lanes that changed since they were last tidied.
    pub(crate) touched_lanes: BTreeSet<usize>,
    /// Actions that the current event has requested so far.
    pub actions: Vec<Action>,
}

/// Status of a batch. A weaker request never replaces a stronger one that came before. Only a resume, which
/// the user requests, cancels any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchStatus {
    /// The batch has had no [`ScheduleEvent::BatchStarted`] yet.
    NotStarted,
    /// The batch runs: tasks start and land as they become ready.
    Running,
    /// Nothing new starts; running tasks finish and land.
    Pausing(PauseReason),
    /// The batch is paused and nothing is under way.
    Paused(PauseReason),
    /// Nothing new starts; the batch finishes once the running tasks have finished and landed.
    WindingDown,
    /// Running agents are stopped, and nothing more lands.
    Stopping {
        /// Outcome that the batch gets once everything has stopped.
        outcome: BatchOutcome,
        /// Whether runs are stopped at once, without time to wrap up.
        hard: bool,
    },
    /// The batch has ended with this outcome.
    Finished(BatchOutcome),
}

/// State of one task of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    /// Phase of the task in this batch, from waiting to landed or failed.
    pub phase: TaskPhase,
    /// Number of runs that were started in this batch.
    pub attempts: u32,
    /// Number of failed runs over all batches, since the user last retried the task or finished it by hand.
    pub failures: u32,
    /// Number of consecutive attempts in which no agent could be started.
    pub(crate) start_failures: u32,
    /// Whether another batch has claimed the task.
    pub claimed_elsewhere: bool,
    /// Whether this batch has claimed the task, so that no other batch may run it.
    pub(crate) claimed_here: bool,
    /// The lane of the last run.
    pub lane: Option<usize>,
    /// Starting point of the last run.
    pub base: Option<RunBase>,
    /// Whether the last run was stopped because the batch was. The next run then continues from its work.
    pub(crate) was_interrupted: bool,
    /// Value of `branch_updates` from which on the task's result is on the batch's branch; not a time.
    pub landed_update: u32,
    /// Value of `ready_to_land_count` when the task's work became ready to land.
    pub(crate) ready_to_land_order: usize,
    /// Number of direct dependencies without a result on which the task could build.
    pub(crate) unmet_dependency_count: usize,
    /// The task that causes this one to be skipped.
    pub skip_cause: Option<usize>,
    /// Whether the requested stop of the task's agent is immediate. None when no stop is requested.
    pub(crate) stop_request_is_hard: Option<bool>,
    /// Whether the task is landing again, with the same work, after its checks failed. The failure policy was
    /// applied then, and does not apply again.
    pub(crate) is_recheck: bool,
}

impl State {
    /// Creates the state of a batch without events.
    pub fn new(work: &Workload, options: &BatchOptions) -> State {
        let layout = ScheduleOrder::new(work, options);
        let family_count = layout.family.iter().max().map_or(0, |last_family| last_family + 1);
        let initial_state = |task: &super::workload::ScheduledTask| TaskState {
            phase: TaskPhase::Waiting,
            attempts: 0,
            failures: task.failures,
            start_failures: 0,
            claimed_elsewhere: false,
            claimed_here: false,
            lane: None,
            base: None,
            was_interrupted: false,
            landed_update: 0,
            ready_to_land_order: 0,
            unmet_dependency_count: task.depends_on.len(),
            skip_cause: None,
            stop_request_is_hard: None,
            is_recheck: false,
        };
        let mut state = State {
            work: work.clone(),
            options: *options,
            tasks: work.tasks().iter().map(initial_state).collect(),
            lanes: Vec::new(),
            next_landing: 0,
            branch_updates: 0,
            status: BatchStatus::NotStarted,
            capacity: None,
            spent: NanoDollars::ZERO,
            counters: Counters {
                stage_loads: vec![super::counters::StageLoad::default(); layout.stage_count],
                unsettled_by_family: vec![0; family_count],
                unsettled_by_bundle: vec![0; layout.bundle_sizes.len()],
                ..Counters::default()
            },
            ready_by_bundle: BTreeMap::new(),
            bundle_heads: BTreeSet::new(),
            unreported_ready: BTreeSet::new(),
            lane_by_bundle: BTreeMap::new(),
            single_landings: BTreeSet::new(),
            open_lanes: BTreeSet::new(),
            last_lane: 0,
            ready_to_land_count: 0,
            touched_lanes: BTreeSet::new(),
            actions: Vec::new(),
            order: layout,
        };
        for task in 0..state.tasks.len() {
            state.counters.add_task(state.membership(task), TaskPhase::Waiting);
            state.update_ready(task);
        }
        state
    }

    /// Returns the state of a batch after these events.
    pub fn replay_events<'a>(
        work: &Workload,
        options: &BatchOptions,
        events: impl IntoIterator<Item = &'a ScheduleEvent>,
    ) -> State {
        let mut state = State::new(work, options);
        events.into_iter().for_each(|event| drop(state.handle(event)));
        state
    }

    /// Applies an event and returns the actions to carry out, in this order. An event that is impossible in
    /// the current state changes nothing.
    #[must_use]
    pub fn handle(&mut self, event: &ScheduleEvent) -> Vec<Action> {
        self.apply_event(event);
        self.request_due_actions();
        std::mem::take(&mut self.actions)
    }

    /// Applies an event without requesting actions: nothing starts or lands because of it.
    pub fn apply_without_actions(&mut self, event: &ScheduleEvent) {
        self.apply_event(event);
        self.actions.clear();
    }

    /// Changes the state as an event requires.
    fn apply_event(&mut self, event: &ScheduleEvent) {
        match event {
            ScheduleEvent::BatchStarted => self.start_batch(),
            ScheduleEvent::BatchTakenOver { runs } => self.on_batch_taken_over(runs),
            ScheduleEvent::LaneSetUp { lane } => self.on_lane_set_up(*lane),
            ScheduleEvent::LaneSetUpFailed { lane } => self.on_lane_set_up_failed(*lane),
            ScheduleEvent::RunStarted { task, attempt } => self.on_run_started(*task, *attempt),
            ScheduleEvent::RunEnded { task, attempt, end } => self.on_run_ended(*task, *attempt, *end),
            ScheduleEvent::Landed { tasks } => self.on_landed(tasks),
            ScheduleEvent::LandingUndone { task, work_kept: kept } => self.on_landing_undone(*task, *kept),
            ScheduleEvent::ConflictCaptured { task } => self.on_not_landed(*task, None),
            ScheduleEvent::ConflictResolved { task } => self.on_conflict_resolved(*task),
            ScheduleEvent::FinishedByHand { task } => self.on_finished_by_hand(*task),
            ScheduleEvent::RecheckRequested { task } => self.recheck(*task),
            ScheduleEvent::ConflictGivenUp { task } => self.on_conflict_given_up(*task),
            ScheduleEvent::CheckFailed { task } => {
                self.on_not_landed(*task, Some(super::task_phase::FailureReason::CheckFailed));
            }
            ScheduleEvent::Pause => self.pause(PauseReason::Requested),
            ScheduleEvent::Resume => self.resume(),
            ScheduleEvent::Abort { hard } => self.abort(BatchOutcome::Aborted, *hard),
            ScheduleEvent::CapacityChanged { capacity: room } => self.capacity = *room,
            ScheduleEvent::CostReported { total } => self.spent = *total,
            ScheduleEvent::BudgetSet { limit: most } => self.options.budget = *most,
            ScheduleEvent::ClaimedElsewhere { task } => self.set_claimed_elsewhere(*task, true),
            ScheduleEvent::ClaimEnded { task } => self.set_claimed_elsewhere(*task, false),
            ScheduleEvent::Retry { task } => self.retry_task(*task),
        }
    }

    /// Returns the phase of a task.
    pub fn task_phase(&self, task: usize) -> TaskPhase {
        self.tasks[task].phase
    }

    /// Returns the groups in which a task is counted.
    fn membership(&self, task: usize) -> TaskMembership {
        TaskMembership {
            task,
            stage: self.order.stage[task],
            family: self.order.family[task],
            bundle: self.order.bundle[task],
        }
    }

    /// Sets the phase of a task and updates all counters. No other function changes a phase.
    pub(crate) fn set_phase(&mut self, task: usize, phase: TaskPhase) {
        let old_phase = std::mem::replace(&mut self.tasks[task].phase, phase);
        let membership = self.membership(task);
        self.counters.remove_task(membership, old_phase);
        self.counters.add_task(membership, phase);
        if let Some(lane) = self.tasks[task].lane {
            let (has_work, is_landing) =
                (TaskPhase::has_unlanded_work, |s| matches!(s, TaskPhase::Landing(_)));
            self.update_lane(lane, |lane_entry| {
                lane_entry.unlanded_task_count = lane_entry.unlanded_task_count
                    + usize::from(has_work(phase))
                    - usize::from(has_work(old_phase));
                lane_entry.landing_count = lane_entry.landing_count + usize::from(is_landing(phase))
                    - usize::from(is_landing(old_phase));
            });
        }
        let (was_satisfied, is_satisfied) =
            (self.satisfies_dependents(old_phase), self.satisfies_dependents(phase));
        if was_satisfied != is_satisfied {
            for dependent in self.work.graph().dependents(task).to_vec() {
                let unmet_count = &mut self.tasks[dependent].unmet_dependency_count;
                *unmet_count = if is_satisfied { *unmet_count - 1 } else { *unmet_count + 1 };
                self.update_ready(dependent);
            }
        }
        self.update_ready(task);
    }

    /// Returns whether dependents of a task in this phase may be able to start. In modes that stack work in a
    /// lane, the choice of the lane decides it later.
    fn satisfies_dependents(&self, phase: TaskPhase) -> bool {
        let is_stacking_mode = matches!(self.options.mode, LandingMode::Phases | LandingMode::OneLane);
        phase.is_on_branch() || is_stacking_mode && phase == TaskPhase::ReadyToLand
    }

    /// Adds a task to the ready ones or removes it, as its state requires.
    pub(crate) fn update_ready(&mut self, task: usize) {
        let task_state = &self.tasks[task];
        let (rank, bundle) = (self.order.rank[task], self.order.bundle[task]);
        let is_ready = task_state.phase == TaskPhase::Waiting
            && task_state.unmet_dependency_count == 0
            && !task_state.claimed_elsewhere;
        let ready_ranks = self.ready_by_bundle.entry(bundle).or_default();
        let old_first = ready_ranks.first().copied();
        if is_ready {
            if ready_ranks.insert(rank) {
                self.unreported_ready.insert(rank);
            }
        } else if ready_ranks.remove(&rank) {
            self.unreported_ready.remove(&rank);
        }
        let new_first = ready_ranks.first().copied();
        if old_first != new_first {
            if let Some(rank) = old_first {
                self.bundle_heads.remove(&(rank, bundle));
            }
            self.bundle_heads.extend(new_first.map(|rank| (rank, bundle)));
        }
    }

    /// Records whether another batch has claimed a task.
    fn set_claimed_elsewhere(&mut self, task: usize, claimed: bool) {
        if task < self.tasks.len() {
            self.tasks[task].claimed_elsewhere = claimed;
            self.update_ready(task);
        }
    }

    /// Returns the lane of a task's current run; none if `attempt` is not that run.
    pub fn lane_of_current_run(&self, task: usize, attempt: u32) -> Option<usize> {
        let task_state = self.tasks.get(task)?;
        let is_current = task_state.attempts == attempt
            && matches!(task_state.phase, TaskPhase::Starting | TaskPhase::Running)
            && task_state.lane.is_some_and(|lane| self.lanes[lane].current_use == LaneUse::Running(task));
        if is_current { task_state.lane } else { None }
    }

    /// Releases this batch's claim on a task, if it has one.
    pub(crate) fn release_claim(&mut self, task: usize) {
        if std::mem::take(&mut self.tasks[task].claimed_here) {
            self.actions.push(Action::ReleaseTask { task });
        }
    }
}
