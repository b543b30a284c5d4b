//! Owns taking the steps of an operation back.

use std::path::PathBuf;

use super::operation::{Operation, no_way_back};
use super::{Error, steps};
use crate::git::{self, RepoPath, Snapshot};
use crate::store::records::{Before, SnapRecord, Step};
use crate::store::{Line, Status};

impl Operation<'_> {
    /// Takes back the steps from number `since` on that `is_one` names, newest first, up to where there is no way back.
    pub(super) fn take_back(&self, since: usize, is_one: impl Fn(&Step) -> bool) -> Result<(), Error> {
        let Some(entry) = self.entry() else { return Ok(()) };
        let from = since.max(no_way_back(&entry));
        for n in (from..entry.steps.len()).rev() {
            let planned = &entry.steps[n];
            if planned.status == Status::Done && planned.of.is_none() && is_one(&planned.step) {
                self.on_the_way_back_of(n, || steps::invert(self, &planned.step))?;
                let _ = self.note(Line::Back(n));
            }
        }
        Ok(())
    }

    /// Runs `act`, whose steps are noted as inverses of step `n`.
    pub(super) fn on_the_way_back_of<T>(&self, n: usize, act: impl FnOnce() -> T) -> T {
        self.of.set(Some(n));
        let done = act();
        self.of.set(None);
        done
    }

    /// Whether snapshot `id`, taken while the bringing back of another one was taken back, holds nothing but what that one or the
    /// state before it holds: no other file, no other flag, and nobody waits for it.
    fn is_repeat(&self, id: &str, taken_back: &Step) -> Result<bool, Error> {
        let Step::Restore { dir, snap, before, .. } = taken_back else { return Ok(false) };
        let (Some(new), Some(old)) = (self.project.find_any_snap(id)?, self.project.find_any_snap(snap)?)
        else {
            return Ok(false);
        };
        if new.id == old.id || !new.snapshot.ignored.is_empty() || self.awaited_by(id)?.is_some() {
            return Ok(false);
        }
        let mut known = vec![old];
        if let Some(before) = before.as_ref().and_then(|before| before.snap.as_deref()) {
            known.extend(self.project.find_any_snap(before)?);
        }
        let index = |snap: &SnapRecord| self.project.kept_index(dir, &snap.id);
        let indexes: Vec<PathBuf> = known.iter().map(index).collect();
        let known: Vec<Snapshot> = known.into_iter().map(|snap| snap.snapshot).collect();
        let announced = |path| known.iter().any(|snapshot| snapshot.intent_to_add.contains(path));
        // Of a folder that goes with those above it, the upper ones may be left.
        let holds =
            |folder: &RepoPath, path: &RepoPath| folder == path || folder.parents().any(|up| up == *path);
        let is_folder = |path| known.iter().any(|s| s.empty_dirs.iter().any(|folder| holds(folder, path)));
        let snapshot = &new.snapshot;
        let repo = &self.project.repo;
        Ok(snapshot.stages.is_none()
            && snapshot.empty_dirs.iter().all(is_folder)
            && snapshot.intent_to_add.iter().all(announced)
            && snapshot.added_to(repo, &known)?.is_empty()
            // What cannot be read says nothing.
            && git::has_flags_of_any(repo, dir, &index(&new), &indexes).unwrap_or(false))
    }
}

/// A step whose inverse has happened is taken back, also when that was not noted any more.
pub(super) fn mark_taken_back(op: &Operation<'_>) -> Result<(), Error> {
    let Some(entry) = op.entry() else { return Ok(()) };
    for planned in entry.steps.iter().filter(|p| p.status == Status::Done) {
        if let Some(of) = planned.of
            && entry.steps[of].status == Status::Done
            && completes(&planned.step, &entry.steps[of].step)
        {
            steps::finish_inverse(op, &entry.steps[of].step)?;
            let _ = op.note(Line::Back(of));
        }
    }
    Ok(())
}

/// Whether a step is the last one of those that take `target` back. Taking a restore back is to take a snapshot of what is
/// there, to clear, and then to bring back what was there before.
fn completes(step: &Step, target: &Step) -> bool {
    match (target, step) {
        (Step::Restore { before: Some(Before { snap: Some(before), .. }), .. }, step) => {
            matches!(step, Step::Restore { snap, .. } if snap == before)
        }
        (Step::Restore { .. }, Step::Clear { .. }) => true,
        // What comes back is made whole first, where it has to be.
        (Step::Move { .. }, Step::Regrow { .. })
        | (Step::Restore { .. }, _)
        | (_, Step::Snap { .. } | Step::Anchor { .. }) => false,
        _ => true,
    }
}

/// Forgets the snapshots that a way back took of what a killed one before it had left on its way: nothing in them is anybody's own.
pub(super) fn forget_repeats(op: &Operation<'_>) -> Result<(), Error> {
    let Some(entry) = op.entry() else { return Ok(()) };
    for planned in entry.steps.iter().filter(|p| p.status == Status::Done) {
        let (Step::Snap { id, .. }, Some(of)) = (&planned.step, planned.of) else { continue };
        if op.is_repeat(id, &entry.steps[of].step)? {
            op.on_the_way_back_of(of, || steps::forget_snap(op, id))?;
        }
    }
    Ok(())
}
