//! Owns the runs of a batch: starting each once, waiting for its end, stopping it.

use super::evidence::{Chain, chain_of, lanes_of};
use super::runner::{Heard, Runner};
use crate::agent::{self, Asked, Job};
use crate::git::Oid;
use crate::lane::{self, Project};
use crate::note::Listener;
use crate::store::LockName;
use crate::store::records::{LaneState, RunClass};
use crate::swarm::Error;
use crate::swarm::batch::{Batch, Facts};
use crate::swarm::schedule::{Base, End, Event};

/// A run that is to start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Starting {
    pub(super) task: usize,
    pub(super) lane: usize,
    pub(super) attempt: u32,
    pub(super) from: Base,
}

/// What came of starting a run.
pub(super) struct Launched {
    /// The lane.
    pub(super) lane: String,
    /// Whether an agent runs: of a task whose boxes are all ticked, nothing is left to do.
    pub(super) runs: bool,
    /// What stopped runs of the task have committed there, from the first commit to the last.
    pub(super) work: Option<(Oid, Oid)>,
}

impl Runner<'_> {
    /// Starts a run, unless it was started before; one for which there is no room waits.
    pub(super) fn start_run(&mut self, it: Starting) -> Result<(), Error> {
        if let Some(lane) = self.lane(it.lane)?
            && chain_of(self.project, &lane, self.batch.id(), (it.task, it.attempt))?.is_some()
        {
            let facts = Facts { lane: Some(lane.name), ..Facts::default() };
            self.due.push_back((Event::Started { task: it.task, attempt: it.attempt }, facts));
            self.watch(it.task, it.attempt);
            return Ok(());
        }
        self.starting.push(it);
        self.start_waiting()
    }

    /// Starts what waits, as far as there is room.
    pub(super) fn start_waiting(&mut self) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.starting);
        let mut waiting = waiting.into_iter();
        // Two batches that look at the same time would both find the same room.
        let _lock = match self.project.settings.max_running {
            Some(_) => Some(self.project.store.locks().take(&LockName::Room)?),
            None => None,
        };
        for it in waiting.by_ref() {
            if !self.has_room()? {
                self.starting.push(it);
                break;
            }
            let (task, attempt) = (it.task, it.attempt);
            match self.launch(it) {
                Ok(launched) => self.has_launched((task, attempt), launched),
                Err(Error::Lane(lane::Error::Busy { name })) => self.wait_for_lane(it, &name)?,
                Err(e) => {
                    crate::interrupt::check().map_err(crate::store::Error::from)?;
                    let facts =
                        Facts { lane: self.lanes.get(&it.lane).cloned(), ..Facts::saying(e.to_string()) };
                    self.due.push_back((Event::Ended { task, attempt, end: End::NotStarted }, facts));
                }
            }
        }
        self.starting.extend(waiting);
        Ok(())
    }

    /// Notes that a run has started, or that nothing was left to do.
    fn has_launched(&mut self, (task, attempt): (usize, u32), launched: Launched) {
        let Launched { lane, runs, work } = launched;
        if runs {
            let (agent, model) = (self.batch.tasks[task].agent.clone(), self.batch.tasks[task].model.clone());
            let facts = Facts { lane: Some(lane), agent, model, ..Facts::default() };
            self.due.push_back((Event::Started { task, attempt }, facts));
            self.watch(task, attempt);
            return;
        }
        let facts = Facts { lane: Some(lane), ..Facts::saying("all of its boxes were ticked") };
        let (end, facts) = match work {
            Some((from, to)) => (End::Done, Facts { from: Some(from), to: Some(to), ..facts }),
            None => (End::Already, facts),
        };
        self.due.push_back((Event::Ended { task, attempt, end }, facts));
    }

    /// Has a run start once nobody works in its lane any more: an agent there lives on although its supervisor is gone, or somebody
    /// else has one at work. No attempt is counted for that; the lane is inspected again each second.
    fn wait_for_lane(&mut self, it: Starting, name: &str) -> Result<(), Error> {
        self.starting.push(it);
        if self.busy.insert((it.task, it.attempt)) {
            self.note(&format!("it waits: an agent is at work in lane '{name}'"), &[it.task])?;
        }
        Ok(())
    }

    /// Brings the lane to where the run begins and starts it; a run that goes on from one that was stopped begins where that ended.
    fn launch(&mut self, it: Starting) -> Result<Launched, Error> {
        let gone = || crate::swarm::BatchError::Cleaned { id: self.batch.id().to_owned() };
        let from = self.commit_of(it.from).ok_or_else(gone)?;
        let cut_off = self.cut_off_at(it, from)?;
        let (lane, lock) = self.lane_at(it.lane, it.task, cut_off.unwrap_or(from))?;
        let mut text = prompt(&self.batch, it.task);
        if let Some(tip) = cut_off.filter(|tip| *tip != from) {
            text.push_str(&format!(
                "\nAn earlier run of this task was stopped. Its commits are in this branch ({}..{}): continue from there.\n",
                from.short(),
                tip.short()
            ));
        }
        let lane = self.give_task(&lane, &lock, it.task, from, &text)?;
        let task = &self.batch.tasks[it.task];
        let asked = Asked { model: task.model.clone(), ..Asked::default() };
        let agent = task.agent.as_deref().unwrap_or_default();
        let job = Job::agent(self.project, agent, &text, self.project.repo.home(), &asked)?;
        self.begin_work(it, (lane, lock), job, cut_off.map(|tip| (from, tip)))
    }

    /// Has the end of a run heard.
    pub(super) fn watch(&mut self, task: usize, attempt: u32) {
        self.watched.insert((task, attempt));
        let tell = self.tell.clone();
        let over = move || drop(tell.send(Heard::RunOver(task, attempt)));
        let chain = self.chain(task, attempt).ok().flatten();
        let lock = chain.map(|chain| {
            let name = chain.lane.name.clone();
            match chain.goes_on(self.project) {
                Ok(Some(LaneState::Orphaned)) => LockName::Alive(name),
                _ => LockName::Run(name),
            }
        });
        // What cannot be waited for is looked at at once.
        let waits = lock.is_some_and(|lock| {
            let over = over.clone();
            self.project.store.locks().when_free(&lock, move |_| over()).is_ok()
        });
        if !waits {
            over();
        }
    }

    /// What is on record of an attempt.
    pub(super) fn chain(&self, task: usize, attempt: u32) -> Result<Option<Chain>, Error> {
        for (_, lane) in lanes_of(self.project, self.batch.id())? {
            if let Some(chain) = chain_of(self.project, &lane, self.batch.id(), (task, attempt))? {
                return Ok(Some(chain));
            }
        }
        Ok(None)
    }

    /// The runs that no end was written of and that were begun, by their records.
    pub(super) fn find_runs(&self) -> Result<Vec<(usize, u32)>, Error> {
        let mut found = Vec::new();
        for (task, attempt) in self.state.open_runs() {
            if self.chain(task, attempt)?.is_some() {
                found.push((task, attempt));
            }
        }
        Ok(found)
    }

    /// Sees what came of a run whose lock is free.
    pub(super) fn see_run_end(&mut self, task: usize, attempt: u32) -> Result<(), Error> {
        if !self.watched.contains(&(task, attempt)) {
            return Ok(());
        }
        let Some(chain) = self.chain(task, attempt)? else {
            self.watched.remove(&(task, attempt));
            let end = End::Failed(RunClass::Interrupted);
            self.due.push_back((Event::Ended { task, attempt, end }, Facts::saying("its lane is gone")));
            return self.look_around_after();
        };
        if chain.goes_on(self.project)?.is_some() {
            self.watch(task, attempt);
            return Ok(());
        }
        let not_gone_on = match self.go_on_with_steps(task, &chain)? {
            Some(Ok(())) => {
                self.watch(task, attempt);
                return Ok(());
            }
            Some(Err(why)) => Some(why),
            None => None,
        };
        // One that died without a word is written down as such.
        if chain.lane.state.is_claimed() {
            drop(self.project.hold_idle(&chain.lane.name)?);
        }
        let Some(chain) = self.chain(task, attempt)? else { return Ok(()) };
        self.watched.remove(&(task, attempt));
        let came = chain.came(self.project)?;
        let (cost, tokens) = chain.account();
        if let Some(cost) = cost.filter(|cost| cost.nanos > 0) {
            // Before the end: what is started then has to be within the budget.
            let total = self.known.spent().saturating_add(cost.nanos);
            self.due.push_back((Event::Spent { total }, Facts::default()));
        }
        let last = chain.last_work();
        let facts = Facts {
            lane: Some(chain.lane.name.clone()),
            agent: last.map(|run| run.agent.clone()),
            model: last.and_then(|run| run.account.model.clone()),
            run: chain.runs.last().map(|run| run.attempt),
            began: chain.began(),
            from: came.from,
            to: came.to,
            cost,
            tokens,
            detail: not_gone_on.map(|why| crate::harmless::line(&why)).or(came.detail),
            ..Facts::default()
        };
        self.due.push_back((Event::Ended { task, attempt, end: came.end }, facts));
        self.look_around_after()
    }

    /// There may be room for others now.
    fn look_around_after(&mut self) -> Result<(), Error> {
        self.take_due()?;
        if self.project.settings.max_running.is_some() {
            crate::swarm::batch::wake_others(self.project, self.batch.id());
            self.start_waiting()?;
        }
        Ok(())
    }

    /// Has a run stopped: told to wrap up first, unless that is to be at once.
    pub(super) fn stop_run(&mut self, task: usize, attempt: u32, hard: bool) -> Result<(), Error> {
        let waited = self.starting.len();
        self.starting.retain(|it| (it.task, it.attempt) != (task, attempt));
        if self.starting.len() < waited {
            let end = End::Failed(RunClass::Stopped);
            self.due.push_back((Event::Ended { task, attempt, end }, Facts::default()));
            return Ok(());
        }
        let Some(chain) = self.chain(task, attempt)? else { return Ok(()) };
        let (dir, lane) = (self.project.repo.home().to_owned(), chain.lane);
        let grace = self.project.settings.abort_grace;
        let stop = move || {
            let Ok(project) = Project::open(&dir, Listener::silent()) else { return };
            // Whatever comes of it is seen by its lock.
            drop(match hard {
                true => agent::stop_at_once(&project, &lane.name),
                false => agent::stop_gently(&project, &lane.name, grace),
            });
        };
        std::thread::spawn(stop);
        Ok(())
    }
}

/// What a task's agent is told: the task in the plan's words, what its group is told besides, and where it stands in the plan.
/// The lane's rules, with scope and checks, are added as for any lane.
pub(super) fn prompt(batch: &Batch, task: usize) -> String {
    let it = &batch.tasks[task];
    let mut out = it.prompt.trim_end().to_owned();
    if !it.more.trim().is_empty() {
        out.push_str(&format!("\n\n{}", it.more.trim()));
    }
    format!("{out}\n\n{}\n", place_in_plan(batch, task))
}

/// What those are told besides their task who work at a task that is a folder.
pub(super) fn told(batch: &Batch, task: usize) -> String {
    let more = batch.tasks[task].more.trim();
    let gap = if more.is_empty() { "" } else { "\n\n" };
    format!("{more}{gap}{}", place_in_plan(batch, task))
}

fn place_in_plan(batch: &Batch, task: usize) -> String {
    let it = &batch.tasks[task];
    let plan = match batch.record.summary.as_str() {
        "" => String::new(),
        summary => format!(" ({summary})"),
    };
    let mut out = format!(
        "This is task `{}` of a plan{plan}. Do this task and no other: others are at work on the rest of the plan.",
        it.name
    );
    let before: Vec<String> = it.needs.iter().map(|need| format!("`{}`", batch.name(*need))).collect();
    if !before.is_empty() {
        out.push_str(&format!(" What it builds on is done and is here: {}.", before.join(", ")));
    }
    out
}
