//! Dry run of an undo: checks step by step whether operations can be undone, without undoing any.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_git as git;
use proq_git::base::head::{Head, RefMove};
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, RepoPath};
use proq_store::base::record::Record;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::step::Step;

use super::entry_revert::{EntryRevert, count_steps_before_creation};
use crate::lane::context::symbolic_branch::branch_to_move;
use crate::lane::errors::undo_error::UndoError;
use crate::lane::execution::missing_worktree::refuse_missing_worktree;
use crate::lane::inspection::evidence::{RemovalEvidence, count_unlanded, gather as gather_evidence};
use crate::lane::operation::op_log_view::moved_branch;
use crate::lane::removal::remove_lane::refuse_removal;
use crate::lane::{Error, Project};
use crate::snapshot::snap_view::find_snap;

/// How git and the files would differ from now once the steps checked so far were reverted.
#[derive(Debug, Default)]
pub(crate) struct UndoForecast {
    /// Future tips of refs, by full ref name.
    ref_tips: BTreeMap<String, Option<CommitId>>,
    /// Moves that would be reverted, in order: the old path, and the current path.
    moves: Vec<(PathBuf, PathBuf)>,
    /// Folders of lanes that would be removed.
    removed_paths: Vec<PathBuf>,
    /// Worktrees whose HEAD would have been switched.
    switched_worktrees: BTreeSet<PathBuf>,
    /// Worktrees with a snapshot step that would have been reverted. The value is the snapshot that would
    /// then be restored to the worktree; none if its changes would be parked.
    restored_snapshots: BTreeMap<PathBuf, Option<String>>,
}

impl UndoForecast {
    /// Returns whether the revert would have moved or removed `path` or a folder above it.
    fn moves_or_removes(&self, path: &Path) -> bool {
        let ends = self.moves.iter().flat_map(|(from, to)| [from, to]);
        ends.chain(&self.removed_paths).any(|changed| path.starts_with(changed))
    }

    /// Records that a lane would be removed, with its records and git's registration of its worktree.
    fn record_lane_removal(&mut self, project: &Project, lane: &LaneRecord) {
        self.ref_tips.insert(format!("refs/heads/{}", lane.kind.branch), None);
        self.removed_paths.extend([lane.path.clone(), project.store.layout().lane(&lane.name)]);
        self.removed_paths.extend(project.repo.worktree_admin_dir(&lane.path));
    }

    /// Records that the changes in a worktree would be parked, or that a snapshot would be restored to it.
    fn record_snapshot_step(&mut self, step: &Step) {
        let (dir, restored_snap) = match step {
            Step::RestoreSnapshot { dir, .. } => (dir, None),
            Step::ClearWorktree { dir, snapshot_id: snap } => (dir, Some(snap.clone())),
            _ => return,
        };
        self.restored_snapshots.insert(dir.clone(), restored_snap);
    }

    /// Returns the current path of the file that would be at `path` once the steps checked so far were
    /// reverted.
    fn current_path(&self, path: &Path) -> PathBuf {
        let relocate =
            |(from, to): &(PathBuf, PathBuf)| path.strip_prefix(from).ok().map(|suffix| to.join(suffix));
        self.moves.iter().rev().find_map(relocate).unwrap_or_else(|| path.to_owned())
    }
}

impl EntryRevert<'_, '_> {
    /// Checks whether the operation can be reverted, with the refusals of the real undo, and records the
    /// effects in `forecast`. With `is_newest`, the disk is as the operation left it, apart from later
    /// changes by the user.
    pub(crate) fn check_revert(&self, forecast: &mut UndoForecast, is_newest: bool) -> Result<(), Error> {
        let mut steps: Vec<&Step> = self.entry.applied_steps().collect();
        let created = self.created_lanes();
        if is_newest {
            for lane in created.iter().rev() {
                self.check_removal(lane, forecast)?;
            }
            if created.is_empty() {
                self.lock_moved_lanes()?;
            }
            self.refuse_new_work()?;
        } else {
            for lane in created.iter().rev() {
                self.check_later_removal(lane, forecast)?;
            }
        }
        if !created.is_empty() {
            steps.truncate(count_steps_before_creation(&steps));
        }
        steps.into_iter().rev().try_for_each(|step| self.check_step(step, forecast, is_newest))
    }

    /// Checks whether one step can be reverted, and records the effect in `forecast`.
    fn check_step(&self, step: &Step, forecast: &mut UndoForecast, is_newest: bool) -> Result<(), Error> {
        match (step, moved_branch(step)) {
            (_, Some((branch, Some(old), Some(new)))) => self.check_branch(branch, old, new, forecast),
            (Step::MoveRef { name, old, new }, _) => self.check_ref(name, *old, *new, forecast),
            (Step::Checkout { dir, ref_move: RefMove::Switch { from, to }, .. }, _) => {
                match forecast.restored_snapshots.get(dir) {
                    Some(restored_snap) => self.refuse_restored_edits(dir, to, restored_snap.as_deref())?,
                    None => self.refuse_edits(dir)?,
                }
                if forecast.switched_worktrees.insert(dir.clone()) {
                    self.check_switch(step, (from, to), forecast, is_newest)?;
                }
                Ok(())
            }
            (Step::RestoreSnapshot { dir, .. } | Step::ClearWorktree { dir, .. }, _)
                if is_newest && !forecast.moves_or_removes(dir) =>
            {
                refuse_missing_worktree(&self.op.project.repo, step)?;
                forecast.record_snapshot_step(step);
                Ok(())
            }
            (Step::RestoreSnapshot { .. } | Step::ClearWorktree { .. }, _) => {
                forecast.record_snapshot_step(step);
                Ok(())
            }
            (Step::MovePath { from, to }, _) => {
                if is_newest && !forecast.moves_or_removes(to) && to.symlink_metadata().is_err() {
                    return Err(Error::PathMissing { path: to.clone() });
                }
                if is_newest && !forecast.moves_or_removes(from) && from.symlink_metadata().is_ok() {
                    return Err(Error::PathTaken { path: from.clone() });
                }
                forecast.moves.push((from.clone(), to.clone()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks the first switch of HEAD that would be reverted in a worktree. If reverting newer steps moves
    /// one of the switch's branches, the present branch tips are not checked.
    fn check_switch(
        &self,
        step: &Step,
        (from, to): (&Head, &Head),
        forecast: &UndoForecast,
        is_newest: bool,
    ) -> Result<(), Error> {
        let branch_moves = |head: &Head| match head {
            Head::Branch(branch) => forecast.ref_tips.contains_key(&format!("refs/heads/{branch}")),
            Head::Detached(_) => false,
        };
        if is_newest || !(branch_moves(from) || branch_moves(to)) {
            self.refuse_moved_branches(step)?;
            self.require_preview_return(step)?;
        }
        self.refuse_missing_branch(step, |branch| {
            self.forecast_tip(&format!("refs/heads/{branch}"), forecast)
        })?;
        match step.changed_worktree() {
            Some(dir) if !self.has_head(dir, from)? && !dir.exists() => {
                Err(Error::PathMissing { path: dir.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Refuses to revert a switch of HEAD to `to` if reverting newer steps restores the snapshot
    /// `restored_snap` to the worktree, and it has changes.
    fn refuse_restored_edits(&self, dir: &Path, to: &Head, restored_snap: Option<&str>) -> Result<(), Error> {
        let project = self.op.project;
        let Some(snap) = restored_snap else { return Ok(()) };
        let files = find_snap(project, snap)?.files(&project.repo)?;
        let in_preview = matches!(to, Head::Branch(branch) if project.previewed_lane(branch).is_some());
        let paths: Vec<RepoPath> = files.into_iter().map(|file| file.path).collect();
        if paths.is_empty() {
            return Ok(());
        }
        Err(UndoError::WorktreeEdits { dir: dir.to_owned(), paths, in_preview, flag_remedy: None }.into())
    }

    /// Checks the removal of a lane that the newest operation created.
    fn check_removal(&self, name: &LaneName, forecast: &mut UndoForecast) -> Result<(), Error> {
        let project = self.op.project;
        let (lane, _lock) = self.lock_created_lane(name)?;
        let mut evidence = gather_evidence(project, &lane, &WorktreeList::read(&project.repo)?)?;
        self.discount_initial_commits(&lane, &mut evidence)?;
        refuse_removal(&lane, &evidence, self.force)?;
        forecast.record_lane_removal(project, &lane);
        Ok(())
    }

    /// Checks the removal of a lane that an older operation created, as it will be once newer operations are
    /// undone. That may first restore the lane; then only its commits are checked. It may also remove the
    /// lane's landed commits from its base.
    fn check_later_removal(&self, name: &LaneName, forecast: &mut UndoForecast) -> Result<(), Error> {
        let project = self.op.project;
        let record_path = project.store.layout().lane_record(name);
        let current_record = forecast.current_path(&record_path);
        let is_unmoved = current_record == record_path;
        let loaded =
            if is_unmoved { project.any_lane(name).ok() } else { AnyLane::load_if_exists(&current_record)? };
        let Some(Ok(lane)) = loaded.map(AnyLane::into_owned_lane) else { return Ok(()) };
        let mut evidence = match is_unmoved {
            true => gather_evidence(project, &lane, &WorktreeList::read(&project.repo)?)?,
            false => RemovalEvidence::default(),
        };
        let tip_of = |branch: &str| self.forecast_tip(&format!("refs/heads/{branch}"), forecast);
        if let (Some(tip), Some(base)) = (tip_of(&lane.kind.branch)?, tip_of(&lane.base)?) {
            (evidence.tip, evidence.unlanded_commits) = (Some(tip), count_unlanded(project, tip, base)?);
        }
        self.discount_initial_commits(&lane, &mut evidence)?;
        refuse_removal(&lane, &evidence, self.force)?;
        forecast.record_lane_removal(project, &lane);
        Ok(())
    }

    /// Returns the tip that a ref would have once the steps checked so far were reverted, by its full name.
    fn forecast_tip(&self, name: &str, forecast: &UndoForecast) -> Result<Option<CommitId>, Error> {
        match forecast.ref_tips.get(name) {
            Some(tip) => Ok(*tip),
            None => Ok(self.op.project.repo.ref_tip(name)?),
        }
    }

    /// Checks whether `branch`, which an operation moved from `old` to `new`, can be moved back, with the
    /// worktrees that are on it, and records the effect in `forecast`.
    fn check_branch(
        &self,
        branch: &str,
        old: CommitId,
        new: CommitId,
        forecast: &mut UndoForecast,
    ) -> Result<(), Error> {
        let repo = &self.op.project.repo;
        let branch = &branch_to_move(self.op.project, branch);
        let name = format!("refs/heads/{branch}");
        let Some(tip) = self.forecast_tip(&name, forecast)? else {
            return Err(UndoError::BranchGone { branch: branch.to_owned(), last_tip: new }.into());
        };
        self.require_unshared(branch, tip, old, new)?;
        if tip != old {
            for worktree in WorktreeList::read(repo)?.on_branch(branch) {
                let local_state = self.dropped_state(&worktree.path, new);
                self.op.lock_worktree(&worktree.path)?.check_undo_transition(tip, old, &local_state)?;
            }
        }
        forecast.ref_tips.insert(name, Some(old));
        Ok(())
    }

    /// Checks whether the ref `name` can be moved back from `new` to `old`, and records the effect in
    /// `forecast`. None stands for a missing ref.
    fn check_ref(
        &self,
        name: &str,
        old: Option<CommitId>,
        new: Option<CommitId>,
        forecast: &mut UndoForecast,
    ) -> Result<(), Error> {
        let tip = self.forecast_tip(name, forecast)?;
        if tip != new && tip != old {
            let reason =
                tip.map_or_else(|| "it is gone".to_owned(), |tip| format!("it is at {}", tip.short()));
            return Err(git::Error::RefNotMoved { ref_name: name.to_owned(), reason }.into());
        }
        forecast.ref_tips.insert(name.to_owned(), old);
        Ok(())
    }
}
