//! Owns what is said of each change of a batch, a line for each.

use crate::harmless;
use crate::swarm::{Action, Batch, Entry, Event, Fate, Known, Line, Outcome, PauseReason, State, Why};

/// How many tasks are named that one event has queued.
const MOST_QUEUED: usize = 10;

/// A batch as somebody sees it who reads its log with the scheduler's eyes.
pub(super) struct Reader {
    pub(super) batch: Batch,
    pub(super) state: State,
    pub(super) known: Known,
}

impl Reader {
    /// Nothing was read yet.
    pub(super) fn new(batch: Batch) -> Reader {
        let (state, known) = (batch.state(&[]), Known::of(&batch, &[]));
        Reader { batch, state, known }
    }

    /// Takes a line in, and says what a person is to know of it.
    pub(super) fn take(&mut self, line: &Line) -> Vec<String> {
        self.known.take(line);
        let mut out = Vec::new();
        match line {
            Line::Note { note, tasks, .. } => {
                let names: Vec<&str> = tasks.iter().map(|task| self.batch.name(*task)).collect();
                let of = if names.is_empty() { String::new() } else { format!("{}: ", names.join(", ")) };
                out.push(format!("{of}{note}"));
            }
            Line::Entry(entry) => {
                out.extend(self.of_event(entry));
                let actions = self.state.on(&entry.event);
                let (queued, others): (Vec<&Action>, Vec<&Action>) =
                    actions.iter().partition(|action| matches!(action, Action::Queue { .. }));
                out.extend(others.into_iter().filter_map(|action| self.of_action(action)));
                let more = queued.len().saturating_sub(MOST_QUEUED);
                out.extend(queued.into_iter().take(MOST_QUEUED).filter_map(|action| self.of_action(action)));
                out.extend((more > 0).then(|| format!("{more} more: queued")));
            }
        }
        out.into_iter().map(|text| harmless::line(&text)).collect()
    }

    fn of_event(&self, entry: &Entry) -> Option<String> {
        let facts = &entry.facts;
        let name = |task: usize| self.batch.name(task);
        let why = facts.detail.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let lane = facts.lane.as_deref().unwrap_or_default();
        Some(match &entry.event {
            Event::Started { task, attempt } => {
                let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                let who = self.batch.tasks[*task].agent.as_deref().unwrap_or("its agent");
                format!("{}: {who} is at work in lane '{lane}'{again}", name(*task))
            }
            Event::Ended { task, end, .. } => {
                use crate::swarm::End;
                let how = match end {
                    End::Done => "done".to_owned(),
                    End::NoChange => "it changed nothing".to_owned(),
                    End::Already => "had been done before".to_owned(),
                    End::NotStarted => "its agent could not be started".to_owned(),
                    End::Failed(class) => format!("its run {}", in_past(&class.to_string())),
                };
                format!("{}: {how}{why}", name(*task))
            }
            Event::Landed { tasks } => {
                let names: Vec<&str> = tasks.iter().map(|task| name(*task)).collect();
                let tip = facts.tip.map(|tip| format!(" ({})", tip.short())).unwrap_or_default();
                format!("{}: landed on {}{tip}", names.join(", "), self.batch.record.branch)
            }
            Event::TakenBack { task, kept } => {
                let next = if *kept { "it lands again" } else { "it is done anew" };
                format!("{}: its landing was taken back; {next}", name(*task))
            }
            Event::ConflictCaptured { task } => format!("{}{why}", lead(name(*task), "conflicts", &why)),
            Event::CheckFailed { task } => format!("{}: left out{why}", name(*task)),
            Event::ConflictResolved { task } if self.state.fate(*task) == Some(Fate::Failed(Why::Check)) => {
                format!("{}: it was repaired, and is checked again", name(*task))
            }
            Event::ConflictResolved { task } => {
                let by = facts.agent.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
                format!("{}: its conflict is resolved{by}", name(*task))
            }
            Event::Finished { task } => format!("{}: it was finished in its lane", name(*task)),
            Event::CheckAgain { task } => format!("{}: its checks run again", name(*task)),
            Event::ConflictGivenUp { task } => format!("{}: its conflict is left{why}", name(*task)),
            Event::Claimed { task } => {
                format!("{}: batch {} has it", name(*task), facts.batch.as_deref().unwrap_or_default())
            }
            Event::SetUpFailed { .. } => format!("no lane could be made{why}"),
            Event::Abort { hard } => format!("it is being aborted{}", if *hard { " at once" } else { "" }),
            Event::Pause => "it is to pause: what runs is ended first".to_owned(),
            Event::Resume => "it goes on".to_owned(),
            Event::TakenUp { .. } => "another process goes on with it".to_owned(),
            Event::Retry { task } => format!("{}: it is tried again", name(*task)),
            Event::Begun
            | Event::SetUp { .. }
            | Event::Slots { .. }
            | Event::Spent { .. }
            | Event::BudgetSet { .. }
            | Event::Unclaimed { .. } => return None,
        })
    }

    fn of_action(&self, action: &Action) -> Option<String> {
        let name = |task: &usize| self.batch.name(*task);
        Some(match action {
            Action::MarkSkipped { task, because } => {
                format!("{}: skipped because of {}", name(task), name(because))
            }
            Action::MarkFailed { task, why } => {
                let why = match why {
                    Why::Run(_) => "it is not tried again",
                    Why::Start => "no agent could be started for it",
                    Why::SetUp => "its lane could not be made",
                    Why::Conflict => "it cannot land: its conflict is not resolved",
                    Why::Check => "it cannot land: its checks fail",
                };
                format!("{}: failed: {why}", name(task))
            }
            Action::MarkSetAside { task } => {
                let count = self.state.failures(*task);
                format!("{}: set aside, it has failed {count} times", name(task))
            }
            Action::MarkWaiting { task } => format!("{}: waits again", name(task)),
            Action::Queue { task } => format!("{}: queued", name(task)),
            Action::Resolve { task } => format!("{}: somebody is sent at its conflict", name(task)),
            Action::KeepLane { .. }
            | Action::MakeLane { .. }
            | Action::SetUpLane { .. }
            | Action::StartRun { .. }
            | Action::StopRun { .. }
            | Action::TakeBack { .. }
            | Action::Land { .. }
            | Action::StopResolve { .. }
            | Action::Release { .. }
            | Action::DiscardLane { .. }
            | Action::MarkPaused { .. }
            | Action::MarkOver { .. } => return None,
        })
    }

    /// What it has come to, in a sentence; none while it goes on.
    pub(super) fn end(&self) -> Option<String> {
        let tasks = self.batch.tasks.len();
        let of = |fate: Fate| (0..tasks).filter(|task| self.state.fate(*task) == Some(fate)).count();
        let before = match of(Fate::Already) {
            0 => String::new(),
            n => format!(", {n} had been done before"),
        };
        let count =
            format!("{} of {} landed{before}", of(Fate::Landed), super::super::ui::count(tasks, "task"));
        if let Some(outcome) = self.state.outcome_if_over() {
            let how = match outcome {
                Outcome::Complete => "is complete",
                Outcome::Partly => "is over",
                Outcome::Stopped => "was stopped by a failure",
                Outcome::Aborted => "was aborted",
            };
            return Some(format!("batch {} {how}: {count}", self.batch.id()));
        }
        let why = match self.state.pause_reason()? {
            PauseReason::Asked => String::new(),
            PauseReason::Merge(task) => format!(", since {} cannot land", self.batch.name(task)),
            PauseReason::Budget => ", since it has cost what it may".to_owned(),
        };
        Some(format!("batch {} is paused{why}: {count}", self.batch.id()))
    }
}

/// `x: it conflicts with …`: the detail says so already, where there is one.
fn lead(name: &str, what: &str, why: &str) -> String {
    if why.is_empty() { format!("{name}: {what}") } else { name.to_owned() }
}

/// How a run ended, as the end of a sentence.
fn in_past(class: &str) -> String {
    match class {
        "failed" | "crashed" | "stalled" => class.to_owned(),
        "timeout" => "took too long".to_owned(),
        other => format!("ended as {other}"),
    }
}
