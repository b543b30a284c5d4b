//! Owns finding the tasks of a batch whose landings were taken back: by an undo, or by whoever moved the batch's branch.

use super::known::{Known, task_of};
use super::runner::{Runner, own_lane};
use crate::git::Oid;
use crate::lane::{self, Project};
use crate::store::now;
use crate::swarm::Error;
use crate::swarm::batch::{Batch, Entry, Facts, Line};
use crate::swarm::schedule::{Event, Fate, State};

/// The event of each task that landed by the log and is not on its branch, in an order in which none stands on a later one.
fn taken_back(
    project: &Project,
    batch: &Batch,
    state: &State,
    known: &Known,
) -> Result<Vec<(Event, Facts)>, Error> {
    let repo = &project.repo;
    let mut out = Vec::new();
    // A branch that somebody has deleted is made again where it was.
    let tip = repo.branch_tip(&batch.record.branch)?.filter(|_| batch.record.cleaned.is_none());
    let Some(tip) = tip else { return Ok(out) };
    if let Some(last) = known.tips.last()
        && repo.has_object(*last)
        && repo.is_ancestor(*last, tip)?
    {
        return Ok(out);
    }
    let mut anew = Vec::new();
    for (task, commit) in known.landed.iter().copied() {
        if state.fate(task) != Some(Fate::Landed) || is_there(project, batch, (task, commit), tip)? {
            continue;
        }
        let stands_on_none = batch.tasks[task].needs.iter().all(|need| !anew.contains(need));
        let kept = stands_on_none && is_kept(project, batch, known, task)?;
        if !kept {
            anew.push(task);
        }
        let facts = Facts { tip: Some(tip), ..Facts::saying("its landing was taken back") };
        out.push((Event::TakenBack { task, kept }, facts));
    }
    Ok(out)
}

/// Whether the work that landed by `commit` is on the batch's branch, which is at `tip`, as such or in other commits.
fn is_there(project: &Project, batch: &Batch, (task, commit): (usize, Oid), tip: Oid) -> Result<bool, Error> {
    let repo = &project.repo;
    // Users rewrite the commits of a branch of theirs and go on with them; an undo takes the record of the landing with it.
    if batch.record.auto_merge && project.store.layout().batch_proof(batch.id(), task).exists() {
        return Ok(true);
    }
    Ok(repo.has_object(commit)
        && (repo.is_ancestor(commit, tip)? || lane::is_contained(project, commit, tip)?))
}

/// Whether the lane of a task is there with its work, so that no agent has to do that again.
fn is_kept(project: &Project, batch: &Batch, known: &Known, task: usize) -> Result<bool, Error> {
    let Some(work) = known.works.get(&task) else { return Ok(false) };
    Ok(project.repo.has_object(work.to) && own_lane(project, batch.id(), &work.lane)?.is_some())
}

/// Whether tasks of a batch landed and are on its branch no longer.
///
/// # Errors
/// When the batch or the repository cannot be read.
pub(crate) fn has_taken_back(project: &Project, batch: &Batch) -> Result<bool, Error> {
    let lines = batch.log(project)?;
    let (state, known) = (batch.state(&lines), Known::of(batch, &lines));
    Ok(!taken_back(project, batch, &state, &known)?.is_empty())
}

/// Corrects what is known by the log of a batch that nobody goes on with now. Where the repository cannot be read the log counts.
pub(super) fn correct(project: &Project, batch: &Batch, state: &mut State, known: &mut Known) {
    for (event, facts) in taken_back(project, batch, state, known).unwrap_or_default() {
        state.foresee(&event);
        known.take(&Line::Entry(Box::new(Entry { n: 0, at: now(), event, facts })));
    }
}

impl Runner<'_> {
    /// Writes down which landings were taken back while nobody went on with the batch. What is to be done about that belongs to all
    /// that is owed when the batch is taken up, which comes next.
    pub(super) fn note_taken_back(&mut self) -> Result<(), Error> {
        for (event, facts) in taken_back(self.project, &self.batch, &self.state, &self.known)? {
            drop(self.write_down(&event, &facts)?);
        }
        Ok(())
    }

    /// Goes on with the tasks whose landings were taken back, as far as no other batch has them.
    pub(super) fn go_on_with_taken_back(&mut self) -> Result<(), Error> {
        let found = taken_back(self.project, &self.batch, &self.state, &self.known)?;
        let tasks: Vec<usize> = found.iter().filter_map(|(event, _)| task_of(event)).collect();
        self.claim_these(&tasks)?;
        self.due.extend(found);
        self.take_due()
    }
}
