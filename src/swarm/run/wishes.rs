//! Owns what people want of a batch: leaving it for its scheduler, and taking it up there.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::begin::{Resumed, resume};
use super::known::Work;
use super::repairs::{Repair, repair_of};
use super::runner::Runner;
use crate::lane::Project;
use crate::store::Changes;
use crate::swarm::batch::{Facts, Wish, WishKind, open_wishes, runs, wake};
use crate::swarm::schedule::{Event, Fate, Why};
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
                self.see_repairs()?;
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

    /// Reports tasks that a person has repaired or finished in their lanes meanwhile. Checks run again on work that is as it was, since
    /// what they depend on may have been repaired.
    fn see_repairs(&mut self) -> Result<(), Error> {
        for task in 0..self.batch.tasks.len() {
            if self.resolving.contains(&task) {
                continue;
            }
            let repair = repair_of(self.project, (&self.batch, &self.state, &self.known), task)?;
            let detail = Some("by hand".to_owned());
            match repair {
                Repair::Commits(Work { lane, from, to }) => {
                    let (lane, from, to) = (Some(lane), Some(from), Some(to));
                    let facts = Facts { lane, from, to, detail, ..Facts::default() };
                    let ended =
                        matches!(self.state.fate(task), Some(Fate::Failed(Why::Run(_)) | Fate::SetAside));
                    let event =
                        if ended { Event::Finished { task } } else { Event::ConflictResolved { task } };
                    self.due.push_back((event, facts));
                }
                Repair::AsItWas if self.state.fate(task) == Some(Fate::Failed(Why::Check)) => {
                    self.due.push_back((Event::CheckAgain { task }, Facts::default()));
                }
                Repair::AsItWas | Repair::None => {}
            }
        }
        self.take_due()
    }
}
