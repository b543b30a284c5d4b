//! Owns landing tasks: in a thread of its own, one landing after the other, each tried until it can be tried.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use super::runner::{Heard, Runner};
use crate::git::Oid;
use crate::lane::Project;
use crate::merge::{Outcome, Part, Parts, Verdict, land_parts};
use crate::note::Listener;
use crate::store::Limit;
use crate::store::records::LaneRecord;
use crate::swarm::Error;
use crate::swarm::batch::{Brought, Facts};
use crate::swarm::schedule::Event;

/// How long after each time a landing is tried again that could not be: a lock passes, a person puts a hook right.
const WAITS: [u64; 6] = [200, 1_000, 5_000, 10_000, 20_000, 30_000];

/// How often it is looked whether it is to be given up.
const GLANCE: Duration = Duration::from_millis(100);

/// What came of a landing.
pub(super) struct Landed {
    /// The tasks that are there now, each with its commit.
    brought: Vec<Brought>,
    /// The tasks that are not, and why.
    left: Vec<(Event, Facts)>,
    /// Where the branch is now.
    tip: Option<Oid>,
    /// The checks that succeeded there.
    checks: Vec<String>,
}

/// Something to land.
struct Order {
    parts: Vec<Part>,
    onto: String,
}

/// The thread that lands.
pub(super) struct Lander {
    orders: Sender<Order>,
    given_up: Arc<AtomicBool>,
}

impl Lander {
    /// Begins it. It has the repository open for itself.
    pub(super) fn begin(project: &Project, tell: Sender<Heard>) -> Lander {
        let (orders, hear) = mpsc::channel::<Order>();
        let given_up = Arc::new(AtomicBool::new(false));
        let (dir, stop) = (project.repo.home().to_owned(), Arc::clone(&given_up));
        std::thread::spawn(move || {
            for order in hear {
                land(&dir, &order, &tell, &stop);
            }
        });
        Lander { orders, given_up }
    }

    /// What cannot be landed now is not tried again.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// It is, from now on.
    pub(super) fn go_on(&self) {
        self.given_up.store(false, Ordering::Relaxed);
    }
}

/// Tries until it could be tried. After giving up, the tasks are told not to fit, so that somebody sees to them when the batch
/// goes on.
fn land(dir: &Path, order: &Order, tell: &Sender<Heard>, given_up: &AtomicBool) {
    let keys = || order.parts.iter().map(|part| part.key).collect::<Vec<_>>();
    let mut waits = WAITS.iter().copied().chain(std::iter::repeat(WAITS[WAITS.len() - 1]));
    let mut said = String::new();
    loop {
        let why = match try_to_land(dir, order) {
            Ok(landed) => return drop(tell.send(Heard::Landed(landed))),
            Err(why) => why,
        };
        if crate::interrupt::check().is_err() {
            return;
        }
        if said != why {
            drop(tell.send(Heard::Delayed(keys(), why.clone())));
            said.clone_from(&why);
        }
        let until = Instant::now() + Duration::from_millis(waits.next().unwrap_or_default());
        while Instant::now() < until {
            if given_up.load(Ordering::Relaxed) {
                let left =
                    keys().into_iter().map(|task| (Event::ConflictCaptured { task }, Facts::saying(&*why)));
                let landed =
                    Landed { brought: Vec::new(), left: left.collect(), tip: None, checks: Vec::new() };
                return drop(tell.send(Heard::Landed(landed)));
            }
            std::thread::sleep(GLANCE);
        }
    }
}

/// What came of trying; why it could not be tried.
fn try_to_land(dir: &Path, order: &Order) -> Result<Landed, String> {
    let project = Project::open(dir, Listener::silent()).map_err(|e| e.to_string())?;
    let asked = Parts { all: &order.parts, onto: &order.onto, no_checks: false, patience: Limit::Forever };
    let report = land_parts(&project, &asked).map_err(|e| e.to_string())?;
    let tip = project.repo.branch_tip(&order.onto).map_err(|e| e.to_string())?;
    let (mut brought, mut left) = (Vec::new(), Vec::new());
    for line in &report.lanes {
        let Some(task) = line.part else { continue };
        match line.result {
            Verdict::Landed | Verdict::Resolved | Verdict::AlreadyLanded => {
                let commit = line.commit.or(tip);
                brought.extend(commit.map(|commit| Brought { task, commit }));
            }
            Verdict::Conflict => left.push((Event::ConflictCaptured { task }, conflict(line))),
            // A lock, a hook, a branch that is in use.
            Verdict::Refused if line.files.is_empty() => {
                return Err(line.message.clone().unwrap_or_else(|| "it may not land".to_owned()));
            }
            // The latter where what is in it is not fit to land.
            Verdict::CheckFailed | Verdict::Refused => {
                left.push((Event::CheckFailed { task }, failed_check(line)));
            }
        }
    }
    let checks = checks(&project, order, &brought);
    Ok(Landed { brought, left, tip, checks })
}

/// What has to succeed with these tasks before they land, each once.
fn checks(project: &Project, order: &Order, brought: &[Brought]) -> Vec<String> {
    let own = order.parts.iter().filter(|part| brought.iter().any(|one| one.task == part.key));
    let mut all: Vec<String> = Vec::new();
    for check in project.settings.verify_commands.iter().chain(own.flat_map(|part| &part.checks)) {
        if !all.contains(check) {
            all.push(check.clone());
        }
    }
    all
}

fn conflict(line: &Outcome) -> Facts {
    Facts {
        lane: Some(line.lane.clone()),
        files: line.files.clone(),
        detail: Some(format!("it conflicts with {} in {}", line.onto, crate::git::names(&line.files))),
        ..Facts::default()
    }
}

fn failed_check(line: &Outcome) -> Facts {
    Facts {
        lane: Some(line.lane.clone()),
        files: line.files.clone(),
        check: line.check.as_ref().map(|check| check.command.clone()),
        log: line.check.as_ref().map(|check| check.log.clone()),
        detail: line.message.as_deref().map(crate::harmless::line),
        ..Facts::default()
    }
}

impl Runner<'_> {
    /// Has tasks landed, in this order and by one move.
    pub(super) fn land(&mut self, tasks: &[usize]) -> Result<(), Error> {
        let mut parts = Vec::new();
        for task in tasks {
            if let Some(commit) = self.landed_by_hand(*task)? {
                let tip = self.project.repo.branch_tip(&self.batch.record.branch)?;
                let brought = vec![Brought { task: *task, commit }];
                let facts = Facts { brought, tip, ..Facts::default() };
                self.due.push_back((Event::Landed { tasks: vec![*task] }, facts));
            } else if let Some(part) = self.part(*task, tasks)? {
                parts.push(part);
            } else {
                let facts = Facts::saying("its lane is gone");
                self.due.push_back((Event::CheckFailed { task: *task }, facts));
            }
        }
        if !parts.is_empty() {
            let order = Order { parts, onto: self.batch.record.branch.clone() };
            // It is there for as long as this process.
            drop(self.lander.orders.send(order));
        }
        Ok(())
    }

    /// The commit with which a person landed a task's lane on the batch's branch, by `git proq merge LANE`.
    pub(super) fn landed_by_hand(&self, task: usize) -> Result<Option<Oid>, Error> {
        let Some(work) = self.known.works.get(&task) else { return Ok(None) };
        let record = &self.batch.record;
        let past = self.project.past_lanes().into_iter().map(|(_, lane)| lane);
        let own = |lane: &LaneRecord| {
            lane.name == work.lane && lane.batch.as_ref().is_some_and(|of| of.batch == record.id)
        };
        let landed = self.lane_named(&work.lane)?.into_iter().chain(past).filter(own);
        let landed = landed.filter_map(|lane| lane.landed).filter(|landed| landed.onto == record.branch);
        let Some(tip) = self.project.repo.branch_tip(&record.branch)? else { return Ok(None) };
        for landed in landed {
            let has_work = self.project.repo.is_ancestor(work.to, landed.tip)?;
            if has_work && self.project.repo.is_ancestor(landed.commit, tip)? {
                return Ok(Some(landed.commit));
            }
        }
        Ok(None)
    }

    /// A task's own work as a part of its lane. None when that lane is gone: somebody has thrown it away.
    pub(super) fn part(&self, task: usize, with: &[usize]) -> Result<Option<Part>, Error> {
        let Some(work) = self.known.works.get(&task) else { return Ok(None) };
        if self.lane_named(&work.lane)?.is_none() {
            return Ok(None);
        }
        let it = &self.batch.tasks[task];
        Ok(Some(Part {
            key: task,
            lane: work.lane.clone(),
            from: work.from,
            to: work.to,
            title: it.title.clone(),
            checks: it.checks.clone(),
            needs: it.needs.iter().copied().filter(|need| with.contains(need)).collect(),
            proof: self.project.store.layout().batch_proof(self.batch.id(), task),
        }))
    }

    /// Tells what came of a landing.
    pub(super) fn take_landed(&mut self, landed: Landed) -> Result<(), Error> {
        let Landed { brought, left, tip, checks } = landed;
        self.due.extend(left);
        if !brought.is_empty() {
            let tasks = brought.iter().map(|one| one.task).collect();
            self.due.push_back((Event::Landed { tasks }, Facts { brought, tip, checks, ..Facts::default() }));
        }
        Ok(())
    }
}
