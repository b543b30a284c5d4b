//! Owns judging whether operations could be taken back, step by step, without taking any.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::absent::refuse_absent;
use super::alias::branch_behind;
use super::evidence::unlanded;
use super::history::moved_branch;
use super::undo::{TakeBack, before_making};
use super::{Error, Evidence, Project, UndoError, find_snap, gather_evidence, refuse};
use crate::git::{self, Head, Oid, RefMove, RepoPath, WorktreeList};
use crate::store::Record;
use crate::store::records::{AnyLane, LaneRecord, Step};

/// What is no more as it is on disk once the steps that were judged so far are taken back.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Where refs would be, by their whole names.
    refs: BTreeMap<String, Option<Oid>>,
    /// Moves that would have been taken back, the first one first: where something was once, and where it is now.
    moved: Vec<(PathBuf, PathBuf)>,
    /// Folders of lanes that would be gone.
    gone: Vec<PathBuf>,
    /// Worktrees whose HEAD would have moved.
    switched: BTreeSet<PathBuf>,
    /// Worktrees whose changes would have been set aside, each with the snapshot that would be back in it by now.
    snapshots: BTreeMap<PathBuf, Option<String>>,
}

impl Ahead {
    fn was_moved(&self, path: &Path) -> bool {
        let moved = self.moved.iter().flat_map(|(from, to)| [from, to]);
        moved.chain(&self.gone).any(|changed| path.starts_with(changed))
    }

    /// Notes that a lane would be gone, with its records and with what git has of its worktree.
    fn goes(&mut self, project: &Project, lane: &LaneRecord) {
        self.refs.insert(format!("refs/heads/{}", lane.place.branch), None);
        self.gone.extend([lane.path.clone(), project.store.layout().lane(&lane.name)]);
        self.gone.extend(project.repo.admin_dir_of(&lane.path));
    }

    /// Notes that the changes in a worktree would be set aside, or that a snapshot would be back in it.
    fn set_aside_or_back(&mut self, step: &Step) {
        let (dir, back) = match step {
            Step::Restore { dir, .. } => (dir, None),
            Step::Clear { dir, snap } => (dir, Some(snap.clone())),
            _ => return,
        };
        self.snapshots.insert(dir.clone(), back);
    }

    /// Where what would be at `path` by then is now.
    fn now_at(&self, path: &Path) -> PathBuf {
        let moved = |(from, to): &(PathBuf, PathBuf)| path.strip_prefix(from).ok().map(|rest| to.join(rest));
        self.moved.iter().rev().find_map(moved).unwrap_or_else(|| path.to_owned())
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
                self.foresee_removal(lane, ahead)?;
            }
            if made.is_empty() {
                self.hold_lanes()?;
            }
            self.refuse_new_work()?;
        } else {
            for lane in made.iter().rev() {
                self.foresee_later_removal(lane, ahead)?;
            }
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
            (Step::Tree { dir, mv: RefMove::Switch { from, to }, .. }, _) => {
                match ahead.snapshots.get(dir) {
                    Some(back) => self.refuse_edits_ahead(dir, to, back.as_deref())?,
                    None => self.refuse_edits(dir)?,
                }
                if ahead.switched.insert(dir.clone()) {
                    self.foresee_switch(step, (from, to), ahead, newest)?;
                }
                Ok(())
            }
            (Step::Restore { dir, .. } | Step::Clear { dir, .. }, _) if newest && !ahead.was_moved(dir) => {
                refuse_absent(self.op.project, step)?;
                ahead.set_aside_or_back(step);
                Ok(())
            }
            (Step::Restore { .. } | Step::Clear { .. }, _) => {
                ahead.set_aside_or_back(step);
                Ok(())
            }
            (Step::Move { from, to }, _) => {
                if newest && !ahead.was_moved(to) && to.symlink_metadata().is_err() {
                    return Err(Error::Expired { path: to.clone() });
                }
                if newest && !ahead.was_moved(from) && from.symlink_metadata().is_ok() {
                    return Err(Error::PathTaken { path: from.clone() });
                }
                ahead.moved.push((from.clone(), to.clone()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The first switch of HEAD in a worktree. Where one of its branches moves by then, what is there now is not what would be met.
    fn foresee_switch(
        &self,
        step: &Step,
        (from, to): (&Head, &Head),
        ahead: &Ahead,
        newest: bool,
    ) -> Result<(), Error> {
        let branch_moves = |head: &Head| match head {
            Head::Branch(branch) => ahead.refs.contains_key(&format!("refs/heads/{branch}")),
            Head::Detached(_) => false,
        };
        if newest || !(branch_moves(from) || branch_moves(to)) {
            self.refuse_moved(step)?;
            self.refuse_closed_way(step)?;
        }
        self.refuse_gone(step, |branch| self.tip_ahead(&format!("refs/heads/{branch}"), ahead))?;
        match step.worktree() {
            Some(dir) if !self.is_on(dir, from)? && !dir.exists() => {
                Err(Error::Expired { path: dir.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Refuses to take back a switch of HEAD to `to` beside the snapshot that would be back in the worktree by then.
    fn refuse_edits_ahead(&self, dir: &Path, to: &Head, back: Option<&str>) -> Result<(), Error> {
        let project = self.op.project;
        let Some(snap) = back else { return Ok(()) };
        let files = find_snap(project, snap)?.files(project)?;
        let in_preview = matches!(to, Head::Branch(branch) if project.lane_of_preview(branch).is_some());
        let paths: Vec<RepoPath> = files.into_iter().map(|file| file.path).collect();
        if paths.is_empty() {
            return Ok(());
        }
        Err(UndoError::Edits { dir: dir.to_owned(), paths, in_preview, flagged: None }.into())
    }

    /// A lane that the operation made goes again, as by any removal.
    fn foresee_removal(&self, name: &str, ahead: &mut Ahead) -> Result<(), Error> {
        let project = self.op.project;
        let (lane, _lock) = self.hold_made(name)?;
        let mut found = gather_evidence(project, &lane, &WorktreeList::read(&project.repo)?)?;
        self.pass_over_known(&lane, &mut found)?;
        refuse(&lane, &found, self.force)?;
        ahead.goes(project, &lane);
        Ok(())
    }

    /// A lane that the operation made goes once what came after the operation is taken back. That may bring the lane back first, of which
    /// only the commits are judged, and may take what it landed off its base.
    fn foresee_later_removal(&self, name: &str, ahead: &mut Ahead) -> Result<(), Error> {
        let project = self.op.project;
        let record = project.store.layout().lane_record(name);
        let now_at = ahead.now_at(&record);
        let is_here = now_at == record;
        let known = if is_here { project.any_lane(name).ok() } else { AnyLane::find(&now_at)? };
        let Some(Ok(lane)) = known.map(AnyLane::with_tree) else { return Ok(()) };
        let mut found = match is_here {
            true => gather_evidence(project, &lane, &WorktreeList::read(&project.repo)?)?,
            false => Evidence::default(),
        };
        let tip = |branch: &str| self.tip_ahead(&format!("refs/heads/{branch}"), ahead);
        if let (Some(tip), Some(base)) = (tip(&lane.place.branch)?, tip(&lane.base)?) {
            (found.tip, found.unlanded) = (Some(tip), unlanded(project, tip, base)?);
        }
        self.pass_over_known(&lane, &mut found)?;
        refuse(&lane, &found, self.force)?;
        ahead.goes(project, &lane);
        Ok(())
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
                let brings = self.dropped(&worktree.path, new);
                self.op.checkout(&worktree.path)?.require_free_to_get(tip, old, &brings)?;
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
