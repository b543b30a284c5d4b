//! Owns what people want of a batch: leaving it for its scheduler, and taking it up there.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::begin::{Resumed, resume};
use super::known::Work;
use super::runner::Runner;
use crate::git::Oid;
use crate::lane::Project;
use crate::store::records::ConflictRecord;
use crate::store::{Changes, LockName, Record};
use crate::swarm::batch::{Facts, Wish, WishKind, open_wishes, runs, wake};
use crate::swarm::schedule::{Event, Fate, Now, Why};
use crate::swarm::{BatchError, Error};

/// How often it is looked whether somebody still goes on with a batch.
const GLANCE: Duration = Duration::from_millis(100);

/// How often one that has heard nothing yet is woken again.
const AGAIN: Duration = Duration::from_secs(2);

/// How long that may take: a scheduler in the middle of making a lane of a large repository hears nothing.
const PATIENCE: Duration = Duration::from_mins(2);

/// Leaves wishes for a batch, has somebody go on with it if nobody does, and returns once they are heard.
///
/// # Errors
/// When nobody can be started, or nobody hears it.
pub(crate) fn ask(project: &Project, id: &str, exe: &Path, kinds: Vec<WishKind>) -> Result<(), Error> {
    let mut paths = Vec::new();
    for kind in kinds {
        paths.push(Wish::leave(project, id, kind)?);
    }
    let begin = Instant::now();
    let changes = Changes::in_folder(&project.store.layout().batch_wishes(id));
    let mut woken: Option<Instant> = None;
    while paths.iter().any(|path| path.exists()) {
        // One that is just ending does not hear it any more; then another one is started, which looks by itself.
        let goes_on = runs(project, id)?;
        if !goes_on {
            let (Resumed::GoesOn | Resumed::Begun) = resume(project, id, exe)?;
        } else if woken.is_none_or(|at| at.elapsed() >= AGAIN) {
            wake(project, id);
            woken = Some(Instant::now());
        }
        if begin.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(BatchError::Deaf { id: id.to_owned(), seconds }.into());
        }
        changes.wait(GLANCE);
    }
    Ok(())
}

impl Runner<'_> {
    /// Takes up what people want. A wish goes once it is in the log.
    pub(super) fn hear_wishes(&mut self) -> Result<(), Error> {
        for (path, wish) in open_wishes(self.project, self.batch.id()) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if !self.known.wishes.contains(&name) {
                self.take_up_wish(&wish.kind, name)?;
            }
            std::fs::remove_file(&path).map_err(crate::store::Error::io("remove", &path))?;
        }
        Ok(())
    }

    fn take_up_wish(&mut self, kind: &WishKind, name: String) -> Result<(), Error> {
        let facts = Facts { wish: Some(name), ..Facts::default() };
        let event = match kind {
            WishKind::Pause => Event::Pause,
            WishKind::Resume => {
                self.lander.go_on();
                self.cold.store(false, Ordering::Relaxed);
                self.go_on_with_taken_back()?;
                self.claim()?;
                self.see_resolved()?;
                Event::Resume
            }
            WishKind::Abort { hard } => {
                self.lander.give_up();
                self.cold.store(true, Ordering::Relaxed);
                Event::Abort { hard: *hard }
            }
            WishKind::Retry { task } => {
                self.go_on_with_taken_back()?;
                self.claim()?;
                Event::Retry { task: *task }
            }
            WishKind::Budget { most } => Event::BudgetSet { most: *most },
        };
        self.due.push_back((event, facts));
        self.take_due()
    }

    /// Reports conflicts and failed checks that a person has repaired in their lanes meanwhile: their branch has other commits than were
    /// to land, and no conflict is laid out or on record for those; or their lane has landed on the batch's branch. Checks run again
    /// on work that is as it was, since what they depend on may have been repaired.
    fn see_resolved(&mut self) -> Result<(), Error> {
        for task in 0..self.batch.tasks.len() {
            let now = self.state.now(task);
            let failed_checks = now == Now::Over(Fate::Failed(Why::Check));
            let conflicts = matches!(now, Now::Over(Fate::Failed(Why::Conflict)) | Now::Conflict);
            if !(failed_checks || conflicts) || self.resolving.contains(&task) {
                continue;
            }
            match self.repair_of(task)? {
                Repair::Commits { from, to } => {
                    let detail = Some("by hand".to_owned());
                    let facts = Facts { from: Some(from), to: Some(to), detail, ..Facts::default() };
                    self.due.push_back((Event::ConflictResolved { task }, facts));
                }
                Repair::AsItWas if failed_checks => {
                    self.due.push_back((Event::CheckAgain { task }, Facts::default()));
                }
                Repair::AsItWas | Repair::None => {}
            }
        }
        self.take_due()
    }

    fn repair_of(&self, task: usize) -> Result<Repair, Error> {
        let Some(work) = self.known.works.get(&task) else { return Ok(Repair::None) };
        if self.landed_by_hand(task)?.is_some() {
            return Ok(Repair::Commits { from: work.from, to: work.to });
        }
        let Some(lane) = self.lane_named(&work.lane)? else { return Ok(Repair::None) };
        let layout = self.project.store.layout();
        let held = self.project.store.locks().is_held(&LockName::Run(lane.name.clone()))?;
        let known = ConflictRecord::find(&layout.conflict(&lane.name))?;
        let Some(tip) = self.project.repo.branch_tip(&lane.place.branch)? else { return Ok(Repair::None) };
        if held || layout.resolve(&lane.name).exists() {
            return Ok(Repair::None);
        }
        if tip == work.to {
            return Ok(Repair::AsItWas);
        }
        // What was committed there by hand lands as it is, or conflicts as it is.
        if known.is_some_and(|known| known.theirs == tip) {
            return Ok(Repair::None);
        }
        if self.project.repo.is_ancestor(work.to, tip)? {
            return Ok(Repair::Commits { from: work.from, to: tip });
        }
        let from = self.start_of_rewritten(task, work, tip)?;
        Ok(from.map_or(Repair::None, |from| Repair::Commits { from, to: tip }))
    }

    /// Finds where a task's work begins after its commits were amended or rebased; `tip` is their last. None where they may belong to
    /// another task of the same lane, or nothing of them is left.
    fn start_of_rewritten(&self, task: usize, work: &Work, tip: Oid) -> Result<Option<Oid>, Error> {
        let repo = &self.project.repo;
        let is_there = |other: usize| matches!(self.state.fate(other), Some(Fate::Landed | Fate::Already));
        let shares =
            |(other, lane): (&usize, &String)| *other != task && *lane == work.lane && !is_there(*other);
        if self.known.lanes.iter().any(shares) {
            return Ok(None);
        }
        let Some(branch) = repo.branch_tip(&self.batch.record.branch)? else { return Ok(None) };
        if repo.is_ancestor(tip, branch)? {
            return Ok(None);
        }
        // Below it may lie the work of others that landed in other commits.
        if repo.is_ancestor(work.from, tip)? && !repo.is_ancestor(work.from, branch)? {
            return Ok(Some(work.from));
        }
        Ok(repo.merge_base(branch, tip)?)
    }
}

/// What a person did about a task that could not land.
enum Repair {
    /// Nothing that could land.
    None,
    /// Nothing in its lane.
    AsItWas,
    /// These commits are to land in place of its own.
    Commits {
        /// Where they begin.
        from: Oid,
        /// Where they end.
        to: Oid,
    },
}
