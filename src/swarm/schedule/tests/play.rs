//! Owns a batch that is played by hand, whose actions read as short lines.

use crate::store::records::RunClass;
use crate::swarm::schedule::{Action, Base, End, Event, Options, Phase, State, Task, Work};

pub(super) struct Play {
    pub(super) state: State,
}

/// Tasks by what each depends on.
pub(super) fn tasks(after: &[&[usize]]) -> Vec<Task> {
    after.iter().map(|a| Task { after: a.to_vec(), weight: 1, ..Task::default() }).collect()
}

pub(super) fn phase(tasks: &[usize], parallel: bool) -> Phase {
    Phase { tasks: tasks.to_vec(), parallel }
}

impl Play {
    /// A batch of tasks in one phase.
    pub(super) fn new(after: &[&[usize]], overlaps: &[&[usize]], options: Options) -> Play {
        Play::of(tasks(after), Vec::new(), overlaps, &options)
    }

    pub(super) fn of(tasks: Vec<Task>, phases: Vec<Phase>, overlaps: &[&[usize]], options: &Options) -> Play {
        let overlaps = overlaps.iter().map(|group| group.to_vec()).collect();
        Play { state: State::new(&Work::new(tasks, phases, overlaps).unwrap(), options) }
    }

    pub(super) fn on(&mut self, event: &Event) -> String {
        let lines: Vec<String> = self.state.on(event).iter().map(line).collect();
        lines.join("; ")
    }

    pub(super) fn begin(&mut self) -> String {
        self.on(&Event::Begun)
    }

    /// Begins, and sets these lanes up.
    pub(super) fn with_lanes(mut self, lanes: usize) -> Play {
        self.begin();
        for lane in 0..lanes {
            self.set_up(lane);
        }
        self
    }

    pub(super) fn set_up(&mut self, lane: usize) -> String {
        self.on(&Event::SetUp { lane })
    }

    pub(super) fn end(&mut self, task: usize, end: End) -> String {
        let attempt = self.state.attempts(task);
        assert_eq!(self.on(&Event::Started { task, attempt }), "");
        self.on(&Event::Ended { task, attempt, end })
    }

    pub(super) fn done(&mut self, task: usize) -> String {
        self.end(task, End::Done)
    }

    pub(super) fn crash(&mut self, task: usize) -> String {
        self.end(task, End::Failed(RunClass::Crashed))
    }

    pub(super) fn landed(&mut self, tasks: &[usize]) -> String {
        self.on(&Event::Landed { tasks: tasks.to_vec() })
    }
}

fn line(action: &Action) -> String {
    let base = |base: &Base| match base {
        Base::Landed(tip) => format!("@{tip}"),
        Base::Task(task) => format!("on {task}"),
    };
    match action {
        Action::MakeLane { lane, task, from } => format!("make L{lane} for {task} @{from}"),
        Action::SetUpLane { lane } => format!("set up L{lane}"),
        Action::Queue { task } => format!("queue {task}"),
        Action::StartRun { task, lane, attempt, from } => {
            format!("start {task}.{attempt} in L{lane} {}", base(from))
        }
        Action::StopRun { task, attempt, hard } => {
            format!("stop {task}.{attempt}{}", if *hard { " hard" } else { "" })
        }
        Action::TakeBack { lane, task, to } => format!("take {task} off L{lane} to {}", base(to)),
        Action::Land { tasks, .. } => format!("land {tasks:?}"),
        Action::Resolve { task } => format!("resolve {task}"),
        Action::StopResolve { task, .. } => format!("stop resolving {task}"),
        Action::Release { task } => format!("release {task}"),
        Action::DiscardLane { lane } => format!("discard L{lane}"),
        Action::KeepLane { lane } => format!("keep L{lane}"),
        Action::MarkWaiting { task } => format!("{task} waits"),
        Action::MarkSkipped { task, because } => format!("skip {task} for {because}"),
        Action::MarkFailed { task, why } => format!("{task} failed: {why:?}"),
        Action::MarkSetAside { task } => format!("set {task} aside"),
        Action::MarkPaused { why } => format!("paused: {why:?}"),
        Action::MarkOver { outcome } => format!("over: {outcome:?}"),
    }
}
