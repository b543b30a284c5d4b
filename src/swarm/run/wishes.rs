//! Owns what people want of a batch: leaving it for its scheduler, and taking it up there.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::begin::{Resumed, resume};
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
                self.claim()?;
                Event::Retry { task: *task }
            }
            WishKind::Budget { most } => Event::BudgetSet { most: *most },
        };
        self.due.push_back((event, facts));
        self.take_due()
    }

    /// Tells of conflicts and failed checks that somebody has put right in their lanes meanwhile: there is more on them than was to
    /// land, and no conflict is laid out or on record for that; or their lane has landed on the batch's branch.
    fn see_resolved(&mut self) -> Result<(), Error> {
        for task in 0..self.batch.tasks.len() {
            let stuck = matches!(
                self.state.now(task),
                Now::Over(Fate::Failed(Why::Conflict | Why::Check)) | Now::Conflict
            );
            if stuck
                && !self.resolving.contains(&task)
                && let Some(to) = self.resolved_in_lane(task)?
            {
                let facts = Facts { to: Some(to), detail: Some("by hand".to_owned()), ..Facts::default() };
                self.due.push_back((Event::ConflictResolved { task }, facts));
            }
        }
        self.take_due()
    }

    fn resolved_in_lane(&self, task: usize) -> Result<Option<Oid>, Error> {
        let Some(work) = self.known.works.get(&task) else { return Ok(None) };
        if self.landed_by_hand(task)?.is_some() {
            return Ok(Some(work.to));
        }
        let Some(lane) = self.lane_named(&work.lane)? else { return Ok(None) };
        let layout = self.project.store.layout();
        let held = self.project.store.locks().is_held(&LockName::Run(lane.name.clone()))?;
        let known = ConflictRecord::find(&layout.conflict(&lane.name))?;
        let tip = self.project.repo.branch_tip(&lane.place.branch)?;
        let Some(tip) = tip.filter(|tip| *tip != work.to) else { return Ok(None) };
        // What was committed there by hand lands as it is, or conflicts as it is.
        let moved = known.is_none_or(|known| known.theirs != tip);
        let builds_on = self.project.repo.is_ancestor(work.to, tip)?;
        let ready = !held && !layout.resolve(&lane.name).exists() && moved && builds_on;
        Ok(ready.then_some(tip))
    }
}
