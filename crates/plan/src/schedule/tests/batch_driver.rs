//! Driver for scheduler tests: feeds events to a batch and describes the requested actions in short lines.

use proq_base::run_class::RunClass;

use crate::schedule::action::{Action, RunBase};
use crate::schedule::event::{ScheduleEvent, TaskRunEnd};
use crate::schedule::options::BatchOptions;
use crate::schedule::state::State;
use crate::schedule::workload::{Phase, ScheduledTask, Workload};

pub(crate) struct BatchDriver {
    pub state: State,
}

/// Builds tasks from the dependencies of each.
pub(crate) fn build_tasks(dependencies: &[&[usize]]) -> Vec<ScheduledTask> {
    dependencies
        .iter()
        .map(|task_dependencies| ScheduledTask {
            depends_on: task_dependencies.to_vec(),
            weight: 1,
            ..ScheduledTask::default()
        })
        .collect()
}

pub(crate) fn build_phase(tasks: &[usize], parallel: bool) -> Phase {
    Phase { tasks: tasks.to_vec(), parallel }
}

impl BatchDriver {
    /// Creates a batch of tasks in one phase.
    pub fn new(dependencies: &[&[usize]], overlaps: &[&[usize]], options: BatchOptions) -> BatchDriver {
        BatchDriver::from_parts(build_tasks(dependencies), Vec::new(), overlaps, &options)
    }

    pub(crate) fn from_parts(
        tasks: Vec<ScheduledTask>,
        phases: Vec<Phase>,
        overlaps: &[&[usize]],
        options: &BatchOptions,
    ) -> BatchDriver {
        let overlaps = overlaps.iter().map(|group| group.to_vec()).collect();
        BatchDriver { state: State::new(&Workload::new(tasks, phases, overlaps).unwrap(), options) }
    }

    pub fn handle(&mut self, event: &ScheduleEvent) -> String {
        let descriptions: Vec<String> = self.state.handle(event).iter().map(describe_action).collect();
        descriptions.join("; ")
    }

    pub fn start(&mut self) -> String {
        self.handle(&ScheduleEvent::BatchStarted)
    }

    /// Starts the batch and reports the first `lanes` lanes as set up.
    pub(crate) fn start_with_lanes(mut self, lanes: usize) -> BatchDriver {
        self.start();
        for lane in 0..lanes {
            self.set_up_lane(lane);
        }
        self
    }

    pub fn set_up_lane(&mut self, lane: usize) -> String {
        self.handle(&ScheduleEvent::LaneSetUp { lane })
    }

    pub(crate) fn end_run(&mut self, task: usize, end: TaskRunEnd) -> String {
        let attempt = self.state.attempts(task);
        assert_eq!(self.handle(&ScheduleEvent::RunStarted { task, attempt }), "");
        self.handle(&ScheduleEvent::RunEnded { task, attempt, end })
    }

    pub(crate) fn complete_run(&mut self, task: usize) -> String {
        self.end_run(task, TaskRunEnd::Done)
    }

    pub(crate) fn crash_run(&mut self, task: usize) -> String {
        self.end_run(task, TaskRunEnd::Failed(RunClass::Crashed))
    }

    pub(crate) fn land_tasks(&mut self, tasks: &[usize]) -> String {
        self.handle(&ScheduleEvent::Landed { tasks: tasks.to_vec() })
    }
}

fn describe_action(action: &Action) -> String {
    let describe_base = |base: &RunBase| match base {
        RunBase::BranchTip(tip) => format!("@{tip}"),
        RunBase::OnTask(task) => format!("on {task}"),
    };
    match action {
        Action::CreateLane { lane, task, branch_updates: from } => format!("make L{lane} for {task} @{from}"),
        Action::SetUpLane { lane } => format!("set up L{lane}"),
        Action::MarkQueued { task } => format!("queue {task}"),
        Action::StartRun { task, lane, attempt, base: from } => {
            format!("start {task}.{attempt} in L{lane} {}", describe_base(from))
        }
        Action::StopRun { task, attempt, hard } => {
            format!("stop {task}.{attempt}{}", if *hard { " hard" } else { "" })
        }
        Action::ResetLane { lane, task, base: to } => {
            format!("take {task} off L{lane} to {}", describe_base(to))
        }
        Action::Land { tasks, .. } => format!("land {tasks:?}"),
        Action::StartResolution { task } => format!("resolve {task}"),
        Action::StopResolution { task, .. } => format!("stop resolving {task}"),
        Action::ReleaseTask { task } => format!("release {task}"),
        Action::DiscardLane { lane } => format!("discard L{lane}"),
        Action::RetainLane { lane } => format!("keep L{lane}"),
        Action::MarkWaiting { task } => format!("{task} waits"),
        Action::MarkSkipped { task, cause: because } => format!("skip {task} for {because}"),
        Action::MarkFailed { task, reason: why } => format!("{task} failed: {why:?}"),
        Action::MarkSetAside { task } => format!("set {task} aside"),
        Action::MarkPaused { reason: why } => format!("paused: {why:?}"),
        Action::MarkFinished { outcome } => format!("over: {outcome:?}"),
    }
}
