//! Owns judging whether operations could be taken back, step by step, without taking any.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::absent::refuse_absent;
use super::alias::branch_behind;
use super::history::moved_branch;
use super::undo::{TakeBack, before_making};
use super::{Error, UndoError, gather_evidence, refuse};
use crate::git::{self, Oid, RefMove, WorktreeList};
use crate::store::records::Step;

/// What is no more as it is on disk once the steps that were judged so far are taken back.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Where refs would be, by their whole names.
    refs: BTreeMap<String, Option<Oid>>,
    /// What would have been moved, from and to.
    moved: BTreeSet<PathBuf>,
    /// Worktrees whose changes would have been set aside.
    set_aside: BTreeSet<PathBuf>,
}

impl Ahead {
    fn was_moved(&self, path: &Path) -> bool {
        self.moved.iter().any(|moved| path.starts_with(moved))
    }
}

impl TakeBack<'_, '_> {
    /// Refuses what taking it back would refuse. With `newest` everything is as the operation left it, or as somebody made it
    /// since.
    pub(super) fn foresee(&self, ahead: &mut Ahead, newest: bool) -> Result<(), Error> {
        let mut steps: Vec<&Step> = self.entry.standing().collect();
        let made = self.made();
        if newest {
            for lane in made.iter().rev() {
                self.foresee_removal(lane)?;
            }
            if made.is_empty() {
                self.hold_lanes()?;
            }
            self.refuse_new_work()?;
        }
        if !made.is_empty() {
            steps.truncate(before_making(&steps));
        }
        steps.into_iter().rev().try_for_each(|step| self.foresee_step(step, ahead, newest))
    }

    fn foresee_step(&self, step: &Step, ahead: &mut Ahead, newest: bool) -> Result<(), Error> {
        match (step, moved_branch(step)) {
            (_, Some((branch, Some(old), Some(new)))) => self.foresee_branch(branch, old, new, ahead),
            (Step::Ref { name, old, new }, _) => self.foresee_ref(name, *old, *new, ahead),
            (Step::Tree { dir, mv: RefMove::Switch { from, .. }, .. }, _) if newest => {
                if !ahead.set_aside.contains(dir) {
                    self.refuse_edits(dir)?;
                }
                self.refuse_moved(step)?;
                self.refuse_closed_way(step)?;
                self.refuse_gone(step, |branch| self.tip_ahead(&format!("refs/heads/{branch}"), ahead))?;
                if !self.is_on(dir, from)? && !dir.exists() {
                    return Err(Error::Expired { path: dir.clone() });
                }
                Ok(())
            }
            (Step::Restore { dir, .. } | Step::Clear { dir, .. }, _) if newest && !ahead.was_moved(dir) => {
                refuse_absent(self.op.project, step)?;
                ahead.set_aside.extend(matches!(step, Step::Restore { .. }).then(|| dir.clone()));
                Ok(())
            }
            (Step::Restore { dir, .. }, _) => {
                ahead.set_aside.insert(dir.clone());
                Ok(())
            }
            (Step::Move { from, to }, _) => {
                if newest && !ahead.was_moved(to) && to.symlink_metadata().is_err() {
                    return Err(Error::Expired { path: to.clone() });
                }
                if newest && !ahead.was_moved(from) && from.symlink_metadata().is_ok() {
                    return Err(Error::PathTaken { path: from.clone() });
                }
                ahead.moved.extend([from.clone(), to.clone()]);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A lane that the operation made goes again, as by any removal.
    fn foresee_removal(&self, name: &str) -> Result<(), Error> {
        let project = self.op.project;
        let (lane, _lock) = self.hold_made(name)?;
        let mut found = gather_evidence(project, &lane, &WorktreeList::read(&project.repo)?)?;
        self.pass_over_known(&lane, &mut found)?;
        refuse(&lane, &found, self.force)
    }

    /// Where a ref would be, by its whole name.
    fn tip_ahead(&self, name: &str, ahead: &Ahead) -> Result<Option<Oid>, Error> {
        match ahead.refs.get(name) {
            Some(known) => Ok(*known),
            None => Ok(self.op.project.repo.ref_tip(name)?),
        }
    }

    fn foresee_branch(&self, branch: &str, old: Oid, new: Oid, ahead: &mut Ahead) -> Result<(), Error> {
        let repo = &self.op.project.repo;
        let branch = &branch_behind(self.op.project, branch);
        let name = format!("refs/heads/{branch}");
        let Some(tip) = self.tip_ahead(&name, ahead)? else {
            return Err(UndoError::BranchGone { branch: branch.to_owned(), tip: new }.into());
        };
        self.require_own(branch, tip, old, new)?;
        if tip != old {
            for worktree in WorktreeList::read(repo)?.on_branch(branch) {
                self.op.checkout(&worktree.path)?.require_free(tip, old)?;
            }
        }
        ahead.refs.insert(name, Some(old));
        Ok(())
    }

    fn foresee_ref(
        &self,
        name: &str,
        old: Option<Oid>,
        new: Option<Oid>,
        ahead: &mut Ahead,
    ) -> Result<(), Error> {
        let tip = self.tip_ahead(name, ahead)?;
        if tip != new && tip != old {
            let why = tip.map_or_else(|| "it is gone".to_owned(), |tip| format!("it is at {}", tip.short()));
            return Err(git::Error::RefMoved { name: name.to_owned(), why }.into());
        }
        ahead.refs.insert(name.to_owned(), old);
        Ok(())
    }
}
