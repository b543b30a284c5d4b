//! Owns the lanes of a batch: making them, bringing them to where a task begins, and letting them go.

use super::agents::Starting;
use super::evidence::chain_of;
use super::runner::Runner;
use crate::git::{self, Oid};
use crate::lane::{self, Base as LaneBase, Given, NewLane, Why, operate};
use crate::preview;
use crate::store::Guard;
use crate::store::records::{InBatch, LaneRecord, LaneState};
use crate::swarm::Error;
use crate::swarm::batch::Facts;
use crate::swarm::schedule::{Action, Base, Event};

impl Runner<'_> {
    /// Makes the lanes that are asked for at once, which is faster than one after the other. What cannot be made in that way is
    /// left to be made by itself.
    pub(super) fn make_lanes(&mut self, actions: &[Action]) -> Result<(), Error> {
        let mut asked = Vec::new();
        for action in actions {
            if let Action::MakeLane { lane, task, from } = *action
                && let Some(start) = self.known.tip(from)
                && self.lane(lane)?.is_none()
            {
                asked.push((lane, task, start));
            }
        }
        if asked.len() < 2 {
            return Ok(());
        }
        let wanted =
            |(lane, task, start): &(usize, usize, Oid)| self.asked(*lane, *task, *start, Given::NoCommands);
        let plans: Result<Vec<_>, _> =
            asked.iter().map(|one| lane::plan(self.project, wanted(one))).collect();
        match plans.and_then(|plans| lane::create_all(self.project, &plans)) {
            Ok(made) => {
                for ((number, ..), made) in asked.into_iter().zip(made) {
                    self.lanes.insert(number, made.lane.name);
                }
                Ok(())
            }
            Err(_) => Ok(crate::interrupt::check().map_err(crate::store::Error::from)?),
        }
    }

    /// Makes a lane, unless it is there.
    pub(super) fn make_lane(&mut self, number: usize, task: usize, from: u32) -> Result<(), Error> {
        if self.lane(number)?.is_some() {
            return Ok(());
        }
        let made = match self.known.tip(from) {
            // Its commands run beside the other lanes of the batch.
            Some(start) => self.make_at(number, task, start, Given::NoCommands),
            None => Err(crate::swarm::BatchError::Cleaned { id: self.batch.id().to_owned() }.into()),
        };
        match made {
            Ok(_) => drop(self.unmade.remove(&number)),
            Err(e) => {
                crate::interrupt::check().map_err(crate::store::Error::from)?;
                self.unmade.insert(number, crate::harmless::line(&e.to_string()));
            }
        }
        Ok(())
    }

    /// Has a lane got ready that is there.
    pub(super) fn set_up(&mut self, number: usize) -> Result<(), Error> {
        let lane = self.lane(number)?;
        match &lane {
            Some(lane) if self.warm(number, lane)? => Ok(()),
            _ => self.see_ready(number, None),
        }
    }

    /// Says that a lane is ready, or why it is not.
    pub(super) fn see_ready(&mut self, number: usize, failed: Option<String>) -> Result<(), Error> {
        let not = |why: String| {
            let facts = Facts { task: self.state.set_up_for(number), ..Facts::saying(why) };
            (Event::SetUpFailed { lane: number }, facts)
        };
        if let Some(why) = failed {
            let event = not(why);
            self.due.push_back(event);
            return Ok(());
        }
        let event = match (self.lane(number)?, self.unmade.get(&number)) {
            (Some(lane), _) => {
                (Event::SetUp { lane: number }, Facts { lane: Some(lane.name), ..Facts::default() })
            }
            (None, why) => not(why.cloned().unwrap_or_else(|| "its lane is gone".to_owned())),
        };
        self.unmade.remove(&number);
        self.due.push_back(event);
        Ok(())
    }

    /// Makes the lane of a number at a commit. It is called after its first task.
    fn make_at(
        &mut self,
        number: usize,
        task: usize,
        start: Oid,
        given: Given,
    ) -> Result<(LaneRecord, Guard), Error> {
        let made =
            lane::create(self.project, &lane::plan(self.project, self.asked(number, task, start, given))?)?;
        self.lanes.insert(number, made.lane.name.clone());
        Ok((made.lane, made.lock))
    }

    fn asked(&self, number: usize, task: usize, start: Oid, given: Given) -> NewLane<'_> {
        let it = &self.batch.tasks[task];
        NewLane {
            name: None,
            prompt: None,
            words: Some(&it.name),
            agent: it.agent.clone(),
            base: LaneBase { branch: self.batch.record.branch.clone(), start },
            carry: None,
            checks: it.checks.clone(),
            scope: it.scope.clone(),
            sparse: false,
            auto_merge: false,
            group: None,
            batch: Some(InBatch { batch: self.batch.id().to_owned(), lane: number, task: it.name.clone() }),
            given,
        }
    }

    /// The commit that a run starts from.
    pub(super) fn commit_of(&self, from: Base) -> Option<Oid> {
        match from {
            Base::Landed(landings) => self.known.tip(landings),
            Base::Task(below) => self.known.works.get(&below).map(|work| work.to),
        }
    }

    /// The lane of a number, held, clean and at a commit: brought there if it is not, with all that was in it saved; made anew
    /// where it is gone, or where that cannot be done.
    pub(super) fn lane_at(
        &mut self,
        number: usize,
        task: usize,
        at: Oid,
    ) -> Result<(LaneRecord, Guard), Error> {
        let Some(lane) = self.lane(number)? else { return self.make_at(number, task, at, Given::Whole) };
        match self.bring(&lane.name, at, task) {
            Ok(held) => Ok(held),
            Err(Error::Lane(e @ lane::Error::Busy { .. })) => Err(e.into()),
            Err(e) => {
                crate::interrupt::check().map_err(crate::store::Error::from)?;
                // Something else than a branch with commits: somebody is in the middle of a merge there, or HEAD is elsewhere.
                self.note(&format!("lane '{}' is made anew: {e}", lane.name), &[task])?;
                self.remove(&lane.name, true)?;
                self.make_at(number, task, at, Given::Whole)
            }
        }
    }

    /// Where the run of a task goes on that was stopped in its lane: its tip, if that is on top of `from`.
    pub(super) fn cut_off_at(&self, it: Starting, from: Oid) -> Result<Option<Oid>, Error> {
        let Some(lane) = self.lane(it.lane)? else { return Ok(None) };
        for attempt in (1..it.attempt).rev() {
            let Some(chain) = chain_of(self.project, &lane, self.batch.id(), (it.task, attempt))? else {
                continue;
            };
            let tip = self.project.repo.branch_tip(&lane.place.branch)?;
            return Ok(match tip {
                Some(tip) if chain.was_stopped() && self.project.repo.is_ancestor(from, tip)? => Some(tip),
                _ => None,
            });
        }
        Ok(None)
    }

    fn bring(&mut self, name: &str, at: Oid, task: usize) -> Result<(LaneRecord, Guard), Error> {
        let (lane, lock) = self.project.hold_idle(name)?;
        let repo = &self.project.repo;
        let there = repo.branch_tip(&lane.place.branch)? == Some(at)
            && repo.head_of(&lane.path)? == Some(at)
            && git::status(repo, &lane.path, true)?.is_clean();
        if !there {
            let why = format!("lane {name} goes on with {}", self.batch.name(task));
            let kept = lane::put_back(self.project, &lane, at, &why)?;
            if let Some(kept) = kept.in_words() {
                self.note(&format!("taken out of lane '{name}'; {kept}"), &[])?;
            }
        }
        Ok((lane, lock))
    }

    /// Takes what a run that came to nothing has left off its lane.
    pub(super) fn take_back(&mut self, number: usize, task: usize, to: Base) -> Result<(), Error> {
        let (Some(lane), Some(at)) = (self.lane(number)?, self.commit_of(to)) else { return Ok(()) };
        if let Err(e) = self.lane_at(number, task, at) {
            crate::interrupt::check().map_err(crate::store::Error::from)?;
            // It is tried again before anything is run there.
            self.note(&format!("lane '{}' is left as it is for now: {e}", lane.name), &[task])?;
        }
        Ok(())
    }

    /// Writes into a lane what it is for now. `lock` is its own.
    pub(super) fn give_task(
        &self,
        lane: &LaneRecord,
        _lock: &Guard,
        task: usize,
        from: Oid,
        text: &str,
    ) -> Result<LaneRecord, Error> {
        let it = &self.batch.tasks[task];
        let path = self.project.store.layout().task(&lane.name);
        crate::store::write_atomically(&path, text.as_bytes())?;
        let changed = self.project.update_lane(&lane.name, |record| {
            record.title.clone_from(&it.title);
            record.checks.clone_from(&it.checks);
            record.scope.clone_from(&it.scope);
            record.agent.clone_from(&it.agent);
            record.state = LaneState::Idle;
            record.detail = None;
            record.already = false;
            record.landed = None;
            record.start = from;
            if let Some(place) = &mut record.batch {
                place.task.clone_from(&it.name);
            }
        })?;
        let name = lane.name.clone();
        let lane = changed.with_tree().map_err(|purpose| lane::Error::NoTree { name, purpose })?;
        lane::widen_cut(self.project, &lane)?;
        Ok(lane)
    }

    /// Lets a lane go whose work has landed, unless somebody has been at work in it since, or still is.
    pub(super) fn discard_lane(&mut self, number: usize) -> Result<(), Error> {
        let Some(lane) = self.lane(number)? else { return Ok(()) };
        if let Err(e) = self.remove(&lane.name, false) {
            crate::interrupt::check().map_err(crate::store::Error::from)?;
            self.note(&format!("lane '{}' stays: {e}", lane.name), &[])?;
        }
        Ok(())
    }

    /// Removes a lane, with `force` whatever is in it: all of that is saved.
    fn remove(&self, name: &str, force: bool) -> Result<(), Error> {
        // Who looks at it in the main checkout would find themselves elsewhere.
        if preview::showing(self.project)?.is_some_and(|shown| shown.lane == name) {
            return Err(lane::Error::Kept {
                name: name.to_owned(),
                why: vec!["the main checkout shows it".to_owned()],
                busy: false,
                force_helps: false,
                help: None,
            }
            .into());
        }
        operate(self.project, "cleanup", |op| preview::retire(op, name, Why::Tidy, force).map(drop))?;
        Ok(())
    }
}
