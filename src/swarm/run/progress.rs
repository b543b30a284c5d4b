//! Owns the picture of a batch that people and programs are shown.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde::Serialize;

use super::known::Known;
use super::land_all::landed_on;
use super::repairs::{Repair, repair_of};
use super::runner::Runner;
use super::taken_back::correct;
use crate::agent::{PacketShown, shown_live, shown_packet};
use crate::lane::{Project, effective_state};
use crate::store::records::{LaneRecord, LaneState, RunRecord, Tokens};
use crate::store::{Moment, Record, now, write_cache};
use crate::swarm::Progress;
use crate::swarm::batch::{Batch, Line, Proof};
use crate::swarm::schedule::{Fate, Left, Now, Outcome, PauseReason, State, Why};

/// What the output of an agent is called that says nothing of itself.
const PLAIN: &str = "text";

/// How much of a log is looked at for its last line.
const TAIL: u64 = 2_000;

/// Why a batch is paused that has used up its budget.
pub(crate) const SPENT: &str = "it has cost what it may";

/// A batch at one moment.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Picture {
    /// Its name.
    pub(crate) batch: String,
    /// What it is about.
    pub(crate) summary: String,
    /// Where it is bound: `new`, `running`, `pausing`, `paused`, `stopping`, `over`.
    pub(crate) state: &'static str,
    /// How it ended, or why it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// Whether a process goes on with it.
    pub(crate) scheduler: bool,
    /// The branch that it is for.
    pub(crate) base: String,
    /// The branch that its tasks land on.
    pub(crate) branch: String,
    /// Whether it is over, and all that landed on a branch of its own is on the base.
    pub(crate) on_base: bool,
    /// The branch that has it then.
    #[serde(skip)]
    pub(crate) landed_on: Option<String>,
    /// When it was made.
    pub(crate) created: Moment,
    /// How many tasks are how far.
    pub(crate) counts: Counts,
    /// What it has cost, looking at its criteria included, in US dollars; none when no agent has told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
    /// What was found out of its criteria.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) criteria: Option<Proof>,
    /// Its tasks, in the plan's order.
    pub(crate) tasks: Vec<Task>,
    /// The lanes in which something runs.
    pub(crate) lanes: Vec<Lane>,
}

/// How many tasks are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// All of them.
    pub(crate) tasks: usize,
    /// Those that landed.
    pub(crate) landed: usize,
    /// Those that were done before.
    pub(crate) before: usize,
    /// Those with an agent at work, or about to start.
    pub(crate) at_work: usize,
    /// Those that are done and land, wait to land, or conflict.
    pub(crate) landing: usize,
    /// Those that wait.
    pub(crate) waiting: usize,
    /// Those that failed, were set aside or brought nothing.
    pub(crate) failed: usize,
    /// Those that are skipped.
    pub(crate) skipped: usize,
    /// Those that were left over when it ended.
    pub(crate) left: usize,
}

/// A task at one moment.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Task {
    /// Its name.
    pub(crate) name: String,
    /// What it is about.
    pub(crate) title: String,
    /// How far it is, in a word or two.
    pub(crate) state: String,
    /// Why, or what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// The lane that it was in last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<String>,
    /// Who does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// How many runs were started.
    pub(crate) attempts: u32,
    /// How many of its boxes are ticked, while it is worked at step by step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) boxes: Option<Progress>,
    /// Whether a person has repaired, finished or landed it since, so that it lands when the batch goes on.
    #[serde(skip)]
    pub(crate) is_repaired: bool,
}

/// A lane in which something runs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Lane {
    /// Its name.
    pub(crate) name: String,
    /// Its task.
    pub(crate) task: String,
    /// Its state.
    pub(crate) state: LaneState,
    /// How many boxes of its task are ticked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) boxes: Option<Progress>,
    /// What its agent did last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<String>,
    /// For how long its run has lasted.
    pub(crate) seconds: u64,
    /// What that has cost so far, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_usd: Option<f64>,
    /// What it has used so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Tokens>,
}

impl Picture {
    /// A batch by its log, by what was taken back since, and by its lanes as they are now.
    pub(crate) fn of(project: &Project, batch: &Batch, lines: &[Line], scheduler: bool) -> Picture {
        let (mut state, mut known) = (batch.state(lines), Known::of(batch, lines));
        if scheduler {
            return Picture::by(project, batch, &state, &known, scheduler);
        }
        correct(project, batch, &mut state, &mut known);
        let mut picture = Picture::by(project, batch, &state, &known, scheduler);
        for (number, task) in picture.tasks.iter_mut().enumerate() {
            let repair = repair_of(project, (batch, &state, &known), number);
            if let Ok(Repair::Commits(_)) = repair {
                task.is_repaired = true;
                task.detail = Some("repaired since; it lands when the batch goes on".to_owned());
            }
        }
        picture
    }

    /// The same by what is known already.
    pub(crate) fn by(
        project: &Project,
        batch: &Batch,
        state: &State,
        known: &Known,
        scheduler: bool,
    ) -> Picture {
        let record = &batch.record;
        let lanes = lanes_at_work(project, batch);
        let mut tasks: Vec<Task> =
            (0..batch.tasks.len()).map(|task| task_at(batch, state, known, task)).collect();
        for task in &mut tasks {
            task.boxes = lanes.iter().find(|lane| lane.task == task.name).and_then(|lane| lane.boxes);
        }
        let criteria = record.proof(project);
        let looking = criteria.as_ref().and_then(|proof| proof.cost).map_or(0, |cost| cost.nanos);
        let spent = known.spent().saturating_add(looking);
        let over = state.outcome_if_over().is_some();
        let landed_on = if over { landed_on(project, record).ok().flatten() } else { None };
        Picture {
            batch: record.id.clone(),
            summary: record.summary.clone(),
            state: state.word(),
            why: why(batch, state),
            scheduler,
            base: record.base.clone(),
            branch: record.branch.clone(),
            created: record.created,
            counts: counts(state, batch.tasks.len()),
            cost_usd: (spent > 0).then(|| dollars(spent)),
            on_base: landed_on.is_some(),
            landed_on,
            criteria,
            tasks,
            lanes,
        }
    }
}

/// Billionths of a dollar as dollars, for people.
#[expect(clippy::cast_precision_loss, reason = "nobody is shown more than a few digits of it")]
fn dollars(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn why(batch: &Batch, state: &State) -> Option<String> {
    if let Some(outcome) = state.outcome_if_over() {
        let how = match outcome {
            Outcome::Complete => "complete",
            Outcome::Partly => "partly",
            Outcome::Stopped => "stopped",
            Outcome::Aborted => "aborted",
        };
        return Some(how.to_owned());
    }
    Some(match state.pause_reason()? {
        PauseReason::Asked => "asked".to_owned(),
        PauseReason::Merge(task) => format!("{} cannot land", batch.name(task)),
        PauseReason::Budget => SPENT.to_owned(),
    })
}

fn counts(state: &State, tasks: usize) -> Counts {
    let mut out = Counts { tasks, ..Counts::default() };
    for task in 0..tasks {
        match state.now(task) {
            Now::Over(Fate::Landed) => out.landed += 1,
            Now::Over(Fate::Already) => out.before += 1,
            Now::Over(Fate::NoChange | Fate::Failed(_) | Fate::SetAside) => out.failed += 1,
            Now::Over(Fate::Skipped) => out.skipped += 1,
            Now::Over(Fate::Left(_)) => out.left += 1,
            Now::Waiting => out.waiting += 1,
            Now::Preparing | Now::Starting | Now::Running => out.at_work += 1,
            Now::Done | Now::Landing | Now::Conflict => out.landing += 1,
        }
    }
    out
}

fn task_at(batch: &Batch, state: &State, known: &Known, task: usize) -> Task {
    let it = &batch.tasks[task];
    let (word, detail) = in_words(batch, state, known, task);
    Task {
        name: it.name.clone(),
        title: it.title.clone(),
        state: word.to_owned(),
        detail,
        lane: known.lanes.get(&task).cloned(),
        agent: it.agent.clone(),
        attempts: state.attempts(task),
        boxes: None,
        is_repaired: false,
    }
}

/// How far a task is, in a word, and why.
fn in_words(batch: &Batch, state: &State, known: &Known, task: usize) -> (&'static str, Option<String>) {
    let said = || known.details.get(&task).cloned();
    match state.now(task) {
        Now::Waiting => waiting(batch, state, known, task),
        Now::Preparing | Now::Starting => ("starting", said()),
        Now::Running if state.is_stopping(task) => ("stopping", None),
        Now::Running => ("running", None),
        Now::Done => ("done", Some("it is to land".to_owned())),
        Now::Landing => ("landing", said()),
        Now::Over(Fate::Landed) => ("landed", known.endings.get(&task).cloned()),
        Now::Over(Fate::Already) => ("done before", None),
        Now::Over(Fate::NoChange) => ("no change", said()),
        Now::Over(Fate::Failed(Why::Run(class))) => ("failed", said().or(Some(class.to_string()))),
        Now::Over(Fate::Failed(Why::SetUp)) => {
            ("failed", said().or(Some("its lane could not be made".to_owned())))
        }
        Now::Over(Fate::Failed(Why::Start)) => {
            ("failed", said().or(Some("its agent did not start".to_owned())))
        }
        Now::Conflict | Now::Over(Fate::Failed(Why::Conflict)) => ("conflict", said()),
        Now::Over(Fate::Failed(Why::Check)) => ("check failed", said()),
        Now::Over(Fate::SetAside) => ("set aside", said()),
        Now::Over(Fate::Skipped) => {
            let because = state.skipped_for(task).map(|other| format!("because of {}", batch.name(other)));
            ("skipped", because)
        }
        Now::Over(Fate::Left(Left::NotStarted)) => ("not started", None),
        Now::Over(Fate::Left(Left::CutOff)) => ("cut off", said()),
        Now::Over(Fate::Left(Left::NotLanded)) => ("not landed", said()),
    }
}

fn waiting(batch: &Batch, state: &State, known: &Known, task: usize) -> (&'static str, Option<String>) {
    if let Some(other) = known.elsewhere.get(&task) {
        return ("waiting", Some(format!("batch {other} has it")));
    }
    let before = state.waits_for(task);
    if before.is_empty() {
        let again = state.attempts(task) > 0;
        let said = known.details.get(&task).filter(|_| again).cloned();
        return ("queued", said);
    }
    let names: Vec<&str> = before.iter().take(3).map(|other| batch.name(*other)).collect();
    let more = if before.len() > 3 { format!(", +{}", before.len() - 3) } else { String::new() };
    ("waiting", Some(format!("for {}{more}", names.join(", "))))
}

fn lanes_at_work(project: &Project, batch: &Batch) -> Vec<Lane> {
    let lanes = super::evidence::lanes_of(project, batch.id()).unwrap_or_default();
    let mut out = Vec::new();
    for (_, lane) in lanes.into_iter().filter(|(_, lane)| lane.state.is_claimed()) {
        let Ok((state, doing)) = effective_state(project, &lane) else { continue };
        if !state.is_busy() {
            continue;
        }
        let layout = project.store.layout();
        let run = RunRecord::find(&layout.run_record(&lane.name, lane.attempt)).ok().flatten();
        // Of one that says nothing of itself, what it wrote last.
        let plain = run.as_ref().is_some_and(|run| run.dialect.as_deref() == Some(PLAIN));
        let said = if plain { last_line(&layout.run_log(&lane.name, lane.attempt)) } else { None };
        let steps = run.as_ref().is_some_and(|run| run.stint.is_some());
        let packet =
            |lane: &LaneRecord| shown_packet(&layout.lane(&lane.name), &lane.clone().any()).ok().flatten();
        let boxes = Some(&lane).filter(|_| steps).and_then(packet);
        let live = shown_live(&layout.run_live(&lane.name, lane.attempt));
        out.push(Lane {
            task: lane.batch.as_ref().map_or_else(String::new, |of| of.task.clone()),
            state,
            boxes: boxes.map(|PacketShown { done, of, .. }| Progress { done, of }),
            step: doing.or_else(|| live.last_tool.clone()).or(said),
            seconds: run.map_or(0, |run| now().since(run.started).as_secs()),
            cost_usd: live.cost.map(|cost| dollars(cost.nanos)),
            tokens: live.tokens,
            name: lane.name,
        });
    }
    out
}

/// The last line of a log, of which only the end is read.
fn last_line(log: &Path) -> Option<String> {
    let mut file = crate::regular_file::open_record(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(crate::harmless::line(line))
}

impl Runner<'_> {
    /// Writes the file that somebody wants to follow the batch by. Nothing depends on it.
    pub(super) fn show_progress(&self) {
        let Some(path) = &self.batch.record.progress_file else { return };
        let picture = Picture::by(self.project, &self.batch, &self.state, &self.known, true);
        write_picture(path, &picture);
    }
}

fn write_picture(path: &Path, picture: &Picture) {
    #[derive(Serialize)]
    struct Whole<'a> {
        schema: u32,
        #[serde(flatten)]
        picture: &'a Picture,
    }
    if let Ok(text) = serde_json::to_vec_pretty(&Whole { schema: 1, picture }) {
        drop(write_cache(path, &text));
    }
}
