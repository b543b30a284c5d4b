//! Owns landing tasks: in a thread of its own, one landing after the other. What cannot be tried waits for its next try and holds
//! up no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::checks::ChecksThen;
use super::known::task_of;
use super::runner::{Heard, Runner, own_lane};
use crate::git::Oid;
use crate::lane::Project;
use crate::merge::{Outcome, Part, Parts, Verdict, land_parts};
use crate::store::Limit;
use crate::store::records::LaneRecord;
use crate::swarm::Error;
use crate::swarm::batch::{Brought, Facts};
use crate::swarm::schedule::Event;

/// Milliseconds until the next try of a landing, by the number of tries before: a lock passes, a person repairs a hook.
const WAITS: [u64; 6] = [200, 1_000, 5_000, 10_000, 20_000, 30_000];

/// Interval at which the thread checks for new orders, due tries and whether to give up.
const GLANCE: Duration = Duration::from_millis(100);

/// Opens the repository for one landing, or says why there is none now.
type Open<'a> = &'a dyn Fn() -> Result<Project, String>;

/// Result of a landing, or of a part of it.
#[derive(Default)]
pub(super) struct Landed {
    /// The tasks that are there now, each with its commit.
    brought: Vec<Brought>,
    /// The tasks that cannot land, and why.
    left: Vec<(Event, Facts)>,
    /// Where the branch is now.
    tip: Option<Oid>,
    /// The checks that succeeded there.
    checks: Vec<String>,
}

/// Tasks of a batch to land.
struct Order {
    batch: String,
    onto: String,
    /// Where the batch's own branch is by the log; none where tasks land on a branch of the user's.
    tip: Option<Oid>,
    parts: Vec<Part>,
}

/// An order, and when it is tried.
struct Waiting {
    order: Order,
    tries: usize,
    due: Instant,
    /// Why the last try failed.
    why: String,
}

/// The thread that lands.
pub(super) struct Lander {
    orders: Sender<Order>,
    given_up: Arc<AtomicBool>,
}

impl Lander {
    /// Begins it. It has the repository open for itself.
    pub(super) fn begin(project: &Project, checks: ChecksThen, tell: Sender<Heard>) -> Lander {
        let (orders, hear) = mpsc::channel::<Order>();
        let given_up = Arc::new(AtomicBool::new(false));
        let (dir, stop) = (project.repo.home().to_owned(), Arc::clone(&given_up));
        std::thread::spawn(move || land_all(&|| checks.open(&dir), &hear, &tell, &stop));
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

/// Lands orders as they come, and those that wait when they are due, until nobody is there to send more.
fn land_all(open: Open<'_>, orders: &Receiver<Order>, tell: &Sender<Heard>, given_up: &AtomicBool) {
    let mut waiting: Vec<Waiting> = Vec::new();
    // The log may lag behind what has landed here.
    let mut last = None;
    loop {
        let next = match waiting.is_empty() {
            true => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => orders.recv_timeout(GLANCE),
        };
        match next {
            Ok(order) => {
                waiting.push(Waiting { order, tries: 0, due: Instant::now(), why: String::new() });
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        for mut one in std::mem::take(&mut waiting) {
            if one.due <= Instant::now() && !one.lands(open, tell, &mut last) {
                continue;
            }
            if crate::interrupt::check().is_err() {
                return;
            }
            if given_up.load(Ordering::Relaxed) {
                one.give_up(tell);
            } else {
                waiting.push(one);
            }
        }
    }
}

impl Waiting {
    /// Tries to land it. Returns whether something of it waits for another try.
    fn lands(&mut self, open: Open<'_>, tell: &Sender<Heard>, last: &mut Option<Oid>) -> bool {
        let mut landed = Landed::default();
        self.order.tip = self.order.tip.map(|tip| last.unwrap_or(tip));
        let result = open().and_then(|project| try_to_land(&project, &self.order, &mut landed));
        *last = landed.tip.or(*last);
        self.order.take_out(&landed);
        if !landed.brought.is_empty() || !landed.left.is_empty() {
            drop(tell.send(Heard::Landed(landed)));
        }
        let Err(why) = result else { return false };
        if self.order.parts.is_empty() {
            return false;
        }
        if self.why != why && crate::interrupt::check().is_ok() {
            drop(tell.send(Heard::Delayed(self.order.keys(), why.clone())));
            self.why = why;
        }
        self.due = Instant::now() + Duration::from_millis(WAITS[self.tries.min(WAITS.len() - 1)]);
        self.tries += 1;
        true
    }

    /// Reports its tasks as in conflict: somebody sees to them when the batch goes on.
    fn give_up(self, tell: &Sender<Heard>) {
        let keys = self.order.keys().into_iter();
        let left = keys.map(|task| (Event::ConflictCaptured { task }, Facts::saying(&*self.why)));
        drop(tell.send(Heard::Landed(Landed { left: left.collect(), ..Landed::default() })));
    }
}

impl Order {
    fn keys(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.key).collect()
    }

    /// Takes out what has landed, what cannot land, and what needs that: of the latter the scheduler knows by itself.
    fn take_out(&mut self, landed: &Landed) {
        let there = |task: &usize| landed.brought.iter().any(|one| one.task == *task);
        let mut gone: Vec<usize> = landed.left.iter().filter_map(|(event, _)| task_of(event)).collect();
        for part in &mut self.parts {
            part.needs.retain(|need| !there(need));
        }
        self.parts.retain(|part| !there(&part.key) && !gone.contains(&part.key));
        while let Some(at) =
            self.parts.iter().position(|part| part.needs.iter().any(|need| gone.contains(need)))
        {
            gone.push(self.parts.remove(at).key);
        }
    }
}

/// Lands what can be landed, and notes it in `landed`.
///
/// # Errors
/// Why the rest has to be tried again.
fn try_to_land(project: &Project, order: &Order, landed: &mut Landed) -> Result<(), String> {
    let words = |e: &dyn std::error::Error| e.to_string();
    let batch = (order.batch.as_str(), order.onto.as_str());
    bring_back(project, order).map_err(|e| words(&e))?;
    let mut parts = Vec::new();
    for part in &order.parts {
        let task = part.key;
        if let Some(commit) = landed_by_hand(project, batch, &part.lane, part.to).map_err(|e| words(&e))? {
            landed.brought.push(Brought { task, commit });
        } else if own_lane(project, batch.0, &part.lane).map_err(|e| words(&e))?.is_none() {
            landed.left.push((Event::CheckFailed { task }, Facts::saying("its lane is gone")));
        } else {
            parts.push(part.clone());
        }
    }
    for part in &mut parts {
        part.needs.retain(|need| !landed.brought.iter().any(|one| one.task == *need));
    }
    landed.tip = project.repo.branch_tip(&order.onto).map_err(|e| words(&e))?;
    if parts.is_empty() {
        return Ok(());
    }
    // A task may change which checks there are.
    let of_base = project.checks_on(&order.onto).map_err(|e| words(&e))?.commands;
    let asked = Parts { all: &parts, onto: &order.onto, no_checks: false, patience: Limit::Forever };
    let report = land_parts(project, &asked).map_err(|e| words(&e))?;
    landed.tip = project.repo.branch_tip(&order.onto).map_err(|e| words(&e))?;
    let mut delayed = None;
    for line in &report.lanes {
        let Some(task) = line.part else { continue };
        match line.result {
            Verdict::Landed | Verdict::Resolved | Verdict::AlreadyLanded => {
                let commit = line.commit.or(landed.tip);
                landed.brought.extend(commit.map(|commit| Brought { task, commit }));
            }
            Verdict::Conflict => landed.left.push((Event::ConflictCaptured { task }, conflict(line))),
            // A lock, a hook, a branch that is in use.
            Verdict::Refused if !line.lasting => {
                delayed = line.message.clone().or_else(|| Some("it may not land".to_owned()));
            }
            Verdict::CheckFailed | Verdict::Refused => {
                landed.left.push((Event::CheckFailed { task }, failed_check(line)));
            }
        }
    }
    landed.checks = checks(&of_base, order, &landed.brought);
    delayed.map_or(Ok(()), Err)
}

/// Makes the batch's own branch again, where it was, if somebody has deleted it: without it nothing could ever land.
fn bring_back(project: &Project, order: &Order) -> Result<(), Error> {
    let Some(tip) = order.tip.filter(|tip| project.repo.has_object(*tip)) else { return Ok(()) };
    if project.repo.branch_tip(&order.onto)?.is_none() {
        let name = format!("refs/heads/{}", order.onto);
        project.repo.create_ref(&name, tip, "git-proq: the branch of the batch was gone")?;
    }
    Ok(())
}

/// Finds the commit with which a person landed a task's work on the batch's branch, by `git proq merge LANE`.
pub(super) fn landed_by_hand(
    project: &Project,
    (batch, branch): (&str, &str),
    lane: &str,
    to: Oid,
) -> Result<Option<Oid>, Error> {
    let past = project.past_lanes().into_iter().map(|(_, lane)| lane);
    let is_own = |it: &LaneRecord| it.name == lane && it.batch.as_ref().is_some_and(|of| of.batch == batch);
    let landed = own_lane(project, batch, lane)?.into_iter().chain(past.filter(is_own));
    let landed = landed.filter_map(|lane| lane.landed).filter(|landed| landed.onto == branch);
    let Some(tip) = project.repo.branch_tip(branch)? else { return Ok(None) };
    for landed in landed {
        let has_work = project.repo.is_ancestor(to, landed.tip)?;
        if has_work && project.repo.is_ancestor(landed.commit, tip)? {
            return Ok(Some(landed.commit));
        }
    }
    Ok(None)
}

/// What has to succeed with these tasks before they land, each once.
fn checks(of_base: &[String], order: &Order, brought: &[Brought]) -> Vec<String> {
    let own = order.parts.iter().filter(|part| brought.iter().any(|one| one.task == part.key));
    let mut all: Vec<String> = Vec::new();
    for check in of_base.iter().chain(own.flat_map(|part| &part.checks)) {
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
        detail: line.message.as_deref().map(|why| {
            let hints = line.hints.iter().flat_map(|hint| ["; ", hint]).collect::<String>();
            crate::harmless::line(&format!("{why}{hints}"))
        }),
        ..Facts::default()
    }
}

impl Runner<'_> {
    /// Has tasks landed, in this order and by one move.
    pub(super) fn land(&mut self, tasks: &[usize]) {
        let mut parts = Vec::new();
        for task in tasks {
            if let Some(part) = self.part_of(*task, tasks) {
                parts.push(part);
            } else {
                let facts = Facts::saying("its lane is gone");
                self.due.push_back((Event::CheckFailed { task: *task }, facts));
            }
        }
        if !parts.is_empty() {
            let (batch, record) = (self.batch.id().to_owned(), &self.batch.record);
            let tip = self.known.tips.last().copied().filter(|_| !record.auto_merge);
            // The thread is there for as long as this process.
            drop(self.lander.orders.send(Order { batch, onto: record.branch.clone(), tip, parts }));
        }
    }

    /// A task's own work as a part of its lane. None when that lane is gone: somebody has thrown it away.
    pub(super) fn part(&self, task: usize, with: &[usize]) -> Result<Option<Part>, Error> {
        let Some(part) = self.part_of(task, with) else { return Ok(None) };
        Ok(self.lane_named(&part.lane)?.map(|_| part))
    }

    fn part_of(&self, task: usize, with: &[usize]) -> Option<Part> {
        let work = self.known.works.get(&task)?;
        let it = &self.batch.tasks[task];
        Some(Part {
            key: task,
            lane: work.lane.clone(),
            from: work.from,
            to: work.to,
            title: it.title.clone(),
            checks: it.checks.clone(),
            needs: it.needs.iter().copied().filter(|need| with.contains(need)).collect(),
            proof: self.project.store.layout().batch_proof(self.batch.id(), task),
        })
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
