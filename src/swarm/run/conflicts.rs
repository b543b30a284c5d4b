//! Owns sending an agent at the conflict of a task, in the task's lane, and hearing what came of it.

use std::path::PathBuf;

use super::checks::ChecksThen;
use super::known::Work;
use super::runner::{Heard, Runner};
use crate::agent::{self, Asked};
use crate::git::Oid;
use crate::lane::{self, Project};
use crate::merge::{self, Leave, Part, Parts, Resolver, Verdict, land_parts};
use crate::note::Listener;
use crate::store::records::{ConflictRecord, Cost, RunRecord};
use crate::store::{Limit, LockName, Record};
use crate::swarm::Error;
use crate::swarm::batch::Facts;
use crate::swarm::schedule::{Event, Fate};

/// Somebody to send at a conflict, and all that it takes.
struct Errand {
    dir: PathBuf,
    checks: ChecksThen,
    exe: PathBuf,
    agent: String,
    part: Part,
    onto: String,
    /// What the lane is about while its conflict is resolved.
    title: String,
    text: String,
}

/// What came of it: the lane's new tip, and who made it.
struct Over {
    to: Oid,
    by: Option<String>,
    cost: Option<Cost>,
}

impl Runner<'_> {
    /// Sends somebody to resolve a task's conflict, or says why nobody can.
    pub(super) fn resolve(&mut self, task: usize) -> Result<(), Error> {
        if !self.resolving.insert(task) {
            return Ok(());
        }
        match self.errand(task)? {
            Ok(errand) => {
                let tell = self.tell.clone();
                std::thread::spawn(move || {
                    let (event, facts) = errand.run(task);
                    // Whoever is ended in the middle of it goes on with it next time.
                    if crate::interrupt::check().is_ok() {
                        drop(tell.send(Heard::Conflict(task, event, Box::new(facts))));
                    }
                });
            }
            Err(why) => {
                self.resolving.remove(&task);
                self.due.push_back((Event::ConflictGivenUp { task }, Facts::saying(why)));
            }
        }
        Ok(())
    }

    fn errand(&self, task: usize) -> Result<Result<Errand, String>, Error> {
        let Some(part) = self.part(task, &[])? else { return Ok(Err("its lane is gone".to_owned())) };
        if let Some(below) = self.stands_on(task) {
            let below = self.batch.name(below);
            return Ok(Err(format!("in its lane it stands on the work of {below}, which has not landed")));
        }
        let it = &self.batch.tasks[task];
        let settings = &self.project.settings;
        let Some(agent) = settings.conflict_agent.clone().or_else(|| it.agent.clone()) else {
            return Ok(Err("nobody is named who could resolve it".to_owned()));
        };
        let home = self.project.repo.home();
        let may = match settings.conflict_agent {
            Some(_) => merge::require_approved(self.project, &agent),
            None => Ok(()),
        };
        if let Err(why) = may.and_then(|()| Ok(agent::require(self.project, &agent, home)?)) {
            return Ok(Err(why.to_string()));
        }
        Ok(Ok(Errand {
            dir: home.to_owned(),
            checks: self.checks.clone(),
            exe: self.exe.clone(),
            agent,
            part,
            onto: self.batch.record.branch.clone(),
            title: it.title.clone(),
            text: super::agents::prompt(&self.batch, task),
        }))
    }

    /// The task right below another one in its lane, if that has not landed.
    fn stands_on(&self, task: usize) -> Option<usize> {
        let Work { lane, from, .. } = self.known.works.get(&task)?;
        let is_below =
            |(other, work): &(&usize, &Work)| **other != task && work.lane == *lane && work.to == *from;
        let (below, _) = self.known.works.iter().find(is_below)?;
        let there = matches!(self.state.fate(*below), Some(Fate::Landed | Fate::Already));
        (!there).then_some(*below)
    }

    /// Has whoever resolves a conflict stopped.
    pub(super) fn stop_resolve(&mut self, task: usize, hard: bool) -> Result<(), Error> {
        if !self.resolving.contains(&task) {
            self.due.push_back((Event::ConflictGivenUp { task }, Facts::default()));
            return Ok(());
        }
        let Some(lane) = self.known.works.get(&task).map(|work| work.lane.clone()) else { return Ok(()) };
        let dir = self.project.repo.home().to_owned();
        std::thread::spawn(move || {
            let Ok(project) = Project::open(&dir, Listener::silent()) else { return };
            // What is just being begun is heard of when it is over.
            drop(if hard { agent::stop_at_once(&project, &lane) } else { agent::stop(&project, &lane) });
        });
        Ok(())
    }
}

impl Errand {
    /// What the scheduler is to be told.
    fn run(&self, task: usize) -> (Event, Facts) {
        match self.resolve() {
            Ok(over) => {
                let lane = Some(self.part.lane.clone());
                let (from, to) = (Some(self.part.from), Some(over.to));
                let facts = Facts { lane, from, to, agent: over.by, cost: over.cost, ..Facts::default() };
                (Event::ConflictResolved { task }, facts)
            }
            Err(why) => {
                let lane = Some(self.part.lane.clone());
                (Event::ConflictGivenUp { task }, Facts { lane, ..Facts::saying(why) })
            }
        }
    }

    fn resolve(&self) -> Result<Over, String> {
        let said = |e: &dyn std::error::Error| e.to_string();
        let project = self.checks.open(&self.dir)?;
        let name = &self.part.lane;
        // One that another process had sent may still be at it.
        project.store.locks().wait_until_free(&LockName::Run(name.clone())).map_err(|e| said(&e))?;
        let open = project.resolving(name).map_err(|e| said(&e))?.is_some();
        if !open && self.lands_as_it_is(&project).map_err(|e| said(&e))? {
            return Ok(Over { to: self.part.to, by: None, cost: None });
        }
        let (leave, asked) = (Leave::default(), Asked::default());
        let resolver = Resolver {
            agent: &self.agent,
            retries: project.settings.conflict_retries,
            leave: &leave,
            asked: &asked,
            exe: &self.exe,
            dir: &self.dir,
        };
        let before = project.lane(name).map_err(|e| said(&e))?.attempt;
        let resolved = merge::go_on_by_agent(&project, name, &resolver).map_err(|e| said(&e))?;
        let lane = project.lane(name).map_err(|e| said(&e))?;
        let tip = project.repo.branch_tip(&lane.place.branch).map_err(|e| said(&e))?;
        let run = |number| RunRecord::find(&project.store.layout().run_record(name, number)).ok().flatten();
        let costs = (before..=lane.attempt).filter_map(run).filter(|run| run.resolves);
        let cost = costs.filter_map(|run| run.account.cost).reduce(Cost::plus);
        Ok(Over { to: tip.unwrap_or(self.part.to), by: resolved.by, cost })
    }

    /// Brings the lane to the task's work, and has its conflict captured as it is today, unless it is on record. Says whether there
    /// is none any more.
    fn lands_as_it_is(&self, project: &Project) -> Result<bool, Error> {
        let name = &self.part.lane;
        {
            let (lane, _lock) = project.hold_idle(name)?;
            if project.repo.branch_tip(&lane.place.branch)? != Some(self.part.to) {
                let why = format!("the conflict of {} is resolved first", self.part.title);
                lane::put_back(project, &lane, self.part.to, &why)?;
            }
            crate::store::write_atomically(&project.store.layout().task(name), self.text.as_bytes())?;
            project.update_lane(name, |record| {
                record.title.clone_from(&self.title);
                record.checks.clone_from(&self.part.checks);
                record.start = self.part.from;
            })?;
        }
        let known = ConflictRecord::find(&project.store.layout().conflict(name))?;
        if known.is_some_and(|known| known.theirs == self.part.to) {
            return Ok(false);
        }
        let parts = std::slice::from_ref(&self.part);
        let asked = Parts { all: parts, onto: &self.onto, no_checks: false, patience: Limit::Forever };
        let report = land_parts(project, &asked)?;
        let conflicts = report.lanes.iter().any(|line| line.result == Verdict::Conflict);
        Ok(!conflicts)
    }
}
