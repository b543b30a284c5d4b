//! Owns what happened in a batch from its beginning on, for whoever reads of it afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;

use super::closing::noted_before;
use super::progress::Picture;
use crate::git::{Oid, RepoPath};
use crate::lane::Project;
use crate::store::Moment;
use crate::store::records::{Cost, Tokens};
use crate::swarm::Noting;
use crate::swarm::batch::{Batch, Entry, Line};
use crate::swarm::schedule::{End, Event};

/// A batch, and all that is on record of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct History {
    /// What it has come to.
    #[serde(flatten)]
    pub(crate) picture: Picture,
    /// When it began.
    pub(crate) began: Moment,
    /// When something last happened.
    pub(crate) last: Moment,
    /// What it was read from, as it was named.
    pub(crate) sources: Vec<String>,
    /// The commit that it began from.
    pub(crate) start: Oid,
    /// Where its branch is by its log.
    pub(crate) tip: Oid,
    /// What it cost, resolving conflicts included; none where no agent has told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Cost>,
    /// What its agents used.
    pub(crate) tokens: Tokens,
    /// Its tasks by how many have to be done one after the other before each.
    pub(crate) waves: Vec<Vec<String>>,
    /// The runs, in the order in which they began.
    pub(crate) runs: Vec<Run>,
    /// What landed, in order.
    pub(crate) landings: Vec<Landing>,
    /// What did not merge, or failed its checks.
    pub(crate) obstacles: Vec<Obstacle>,
    /// What else a person should know.
    pub(crate) remarks: Vec<Remark>,
    /// What was noted in the files of its plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) noted: Option<Noting>,
}

/// One attempt at a task.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Run {
    /// The task.
    pub(crate) task: String,
    /// Which of its attempts, from 1.
    pub(crate) attempt: u32,
    /// The lane.
    pub(crate) lane: String,
    /// Who did it.
    pub(crate) agent: String,
    /// With which model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// When it began.
    pub(crate) began: Moment,
    /// When it ended, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Moment>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<Ended>,
    /// What it cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Cost>,
    /// What it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Tokens>,
    /// Where its work begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Oid>,
    /// Where its work ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<Oid>,
    /// More, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Ended {
    /// Whether it was well.
    pub(crate) well: bool,
    /// In a word or two.
    pub(crate) how: String,
}

/// Tasks that came to the branch by one move of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Landing {
    /// When.
    pub(crate) at: Moment,
    /// Which.
    pub(crate) tasks: Vec<String>,
    /// The checks that succeeded with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) checks: Vec<String>,
    /// Where the branch was then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tip: Option<Oid>,
}

/// Something that kept a task from landing.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Obstacle {
    /// When.
    pub(crate) at: Moment,
    /// Which task.
    pub(crate) task: String,
    /// The files in conflict; none where it was a check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<RepoPath>,
    /// The check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<String>,
    /// What that wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<PathBuf>,
    /// What became of it: `open`, `resolved`, `checked again`, `given up`.
    pub(crate) became: &'static str,
}

/// Something that a person should know.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Remark {
    /// When.
    pub(crate) at: Moment,
    /// What.
    pub(crate) text: String,
    /// The tasks that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tasks: Vec<String>,
}

impl History {
    /// What the log of a batch tells.
    pub(crate) fn of(project: &Project, batch: &Batch, lines: &[Line], scheduler: bool) -> History {
        let record = &batch.record;
        let (runs, out) = Reader::read(batch, lines);
        let looking = record.proof(project).and_then(|proof| proof.cost);
        let cost =
            runs.iter().filter_map(|run| run.cost).chain(out.other_costs).chain(looking).reduce(Cost::plus);
        let tokens = runs.iter().filter_map(|run| run.tokens).reduce(Tokens::plus);
        History {
            picture: Picture::of(project, batch, lines, scheduler),
            began: record.created,
            last: lines.last().map_or(record.created, Line::at),
            sources: record.sources.clone(),
            start: record.start,
            tip: out.tip.unwrap_or(record.start),
            cost,
            tokens: tokens.unwrap_or_default(),
            waves: waves(batch),
            runs,
            landings: out.landings,
            obstacles: out.obstacles,
            remarks: out.remarks,
            noted: noted_before(project, batch.id()),
        }
    }
}

/// What was read that needs no more.
#[derive(Default)]
struct Parts {
    tip: Option<Oid>,
    landings: Vec<Landing>,
    obstacles: Vec<Obstacle>,
    remarks: Vec<Remark>,
    other_costs: Vec<Cost>,
}

struct Reader<'a> {
    batch: &'a Batch,
    /// By task and attempt.
    runs: BTreeMap<(usize, u32), Run>,
    out: Parts,
}

/// The runs of a batch, in the order in which they began, of its log alone.
pub(crate) fn runs_of(batch: &Batch, lines: &[Line]) -> Vec<Run> {
    Reader::read(batch, lines).0
}

impl Reader<'_> {
    fn read(batch: &Batch, lines: &[Line]) -> (Vec<Run>, Parts) {
        let mut reader = Reader { batch, runs: BTreeMap::new(), out: Parts::default() };
        for line in lines {
            reader.take(line);
        }
        let mut runs: Vec<Run> = reader.runs.into_values().collect();
        runs.sort_by_key(|run| run.began);
        (runs, reader.out)
    }

    fn take(&mut self, line: &Line) {
        match line {
            Line::Entry(entry) => self.entry(entry),
            Line::Note { at, note, tasks, .. } => {
                let tasks = tasks.iter().map(|task| self.batch.name(*task).to_owned()).collect();
                self.out.remarks.push(Remark { at: *at, text: note.clone(), tasks });
            }
        }
    }

    fn entry(&mut self, entry: &Entry) {
        let (at, facts) = (entry.at, &entry.facts);
        match &entry.event {
            Event::Started { task, attempt } => {
                // It could not be started before, which was no attempt.
                if self.runs.get(&(*task, *attempt)).is_some_and(|run| run.ended.is_some()) {
                    self.runs.remove(&(*task, *attempt));
                }
                self.run(*task, *attempt, entry);
            }
            Event::Ended { task, attempt, end } => {
                let run = self.run(*task, *attempt, entry);
                run.ended = Some(at);
                run.end = Some(ended(*end));
                run.cost = facts.cost;
                run.tokens = facts.tokens;
                run.detail.clone_from(&facts.detail);
            }
            Event::Landed { tasks } => {
                let tasks = tasks.iter().map(|task| self.batch.name(*task).to_owned()).collect();
                self.out.landings.push(Landing { at, tasks, tip: facts.tip, checks: facts.checks.clone() });
                self.out.tip = facts.tip.or(self.out.tip);
            }
            Event::TakenBack { task, .. } => {
                let (text, tasks) = ("its landing was taken back", vec![self.batch.name(*task).to_owned()]);
                self.out.remarks.push(Remark { at, text: text.to_owned(), tasks });
                self.out.tip = facts.tip.or(self.out.tip);
            }
            Event::ConflictCaptured { task } | Event::CheckFailed { task } => {
                self.out.obstacles.push(Obstacle {
                    at,
                    task: self.batch.name(*task).to_owned(),
                    files: facts.files.clone(),
                    check: facts.check.clone(),
                    log: facts.log.clone(),
                    became: "open",
                });
            }
            Event::ConflictResolved { task } => self.became(*task, "resolved", entry),
            Event::CheckAgain { task } => self.became(*task, "checked again", entry),
            Event::ConflictGivenUp { task } => self.became(*task, "given up", entry),
            _ => {}
        }
    }

    /// What is known of a run, with what this entry adds.
    fn run(&mut self, task: usize, attempt: u32, entry: &Entry) -> &mut Run {
        let (name, facts) = (self.batch.name(task), &entry.facts);
        let run = self.runs.entry((task, attempt)).or_insert_with(|| Run {
            task: name.to_owned(),
            attempt,
            lane: String::new(),
            agent: String::new(),
            model: None,
            began: facts.began.unwrap_or(entry.at),
            ended: None,
            end: None,
            cost: None,
            tokens: None,
            from: None,
            to: None,
            detail: None,
        });
        run.lane = facts.lane.clone().unwrap_or(std::mem::take(&mut run.lane));
        run.agent = facts.agent.clone().unwrap_or(std::mem::take(&mut run.agent));
        run.model = facts.model.clone().or(run.model.take());
        run.from = facts.from.or(run.from);
        run.to = facts.to.or(run.to);
        run
    }

    /// What became of the last conflict of a task.
    fn became(&mut self, task: usize, what: &'static str, entry: &Entry) {
        self.out.other_costs.extend(entry.facts.cost);
        let name = self.batch.name(task);
        let last = self.out.obstacles.iter_mut().rev().find(|obstacle| obstacle.task == name);
        if let Some(obstacle) = last {
            obstacle.became = what;
        }
    }
}

fn ended(end: End) -> Ended {
    let (well, how) = match end {
        End::Done => (true, "done".to_owned()),
        End::NoChange => (false, "no change".to_owned()),
        End::Already => (true, "done before".to_owned()),
        End::NotStarted => (false, "not started".to_owned()),
        End::Failed(class) => (false, class.to_string()),
    };
    Ended { well, how }
}

/// Tasks by how many have to be done one after the other before each: through what it needs, and through the phases before.
fn waves(batch: &Batch) -> Vec<Vec<String>> {
    let mut waves: Vec<Vec<String>> = Vec::new();
    let whole = vec![(0..batch.tasks.len()).collect::<Vec<_>>()];
    let phases: Vec<Vec<usize>> = batch.record.phases.iter().map(|phase| phase.tasks.clone()).collect();
    for phase in if phases.is_empty() { whole } else { phases } {
        let mut left: BTreeSet<usize> = phase.into_iter().filter(|task| !batch.tasks[*task].done).collect();
        while !left.is_empty() {
            let is_next = |task: &usize| batch.tasks[*task].needs.iter().all(|need| !left.contains(need));
            let (next, later): (BTreeSet<usize>, BTreeSet<usize>) =
                left.iter().partition(|task| is_next(task));
            // A plan in a circle is none, and none gets as far as this.
            if next.is_empty() {
                break;
            }
            waves.push(next.iter().map(|task| batch.name(*task).to_owned()).collect());
            left = later;
        }
    }
    waves
}
