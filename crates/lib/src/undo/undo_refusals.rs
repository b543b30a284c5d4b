//! Refusals of an undo: new work, edits and moved branches that it would lose or mix up.

use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_git::base::head::{Head, RefMove};
use proq_git::base::local_changes_remedy;
use proq_git::status::local_state::LocalState;
use proq_git::status::status_query;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, RepoPath};
use proq_store::records::lane::LaneRecord;
use proq_store::records::step::Step;

use super::entry_revert::EntryRevert;
use crate::lane::Error;
use crate::lane::errors::undo_error::UndoError;
use crate::lane::parking::park_changes::preview_ignored_files;

impl EntryRevert<'_, '_> {
    /// Refuses to move a lane to the trash again if it has uncommitted work that it did not have the first
    /// time.
    pub(crate) fn refuse_new_work(&self) -> Result<(), Error> {
        let project = self.op.project;
        let removes_lane =
            |lane: &LaneRecord, step: &Step| matches!(step, Step::MovePath { to, .. } if *to == lane.path);
        for lane in project.owned_lanes()? {
            if !self.entry.applied_steps().any(|step| removes_lane(&lane, step)) || !lane.path.exists() {
                continue;
            }
            let paths = status_query::status(&project.repo, &lane.path, true)?.paths();
            if !paths.is_empty() && !self.is_in_snapshot(&lane.path)? {
                return Err(UndoError::LaneUncommitted { name: lane.name, paths }.into());
            }
        }
        Ok(())
    }

    /// Returns whether an existing snapshot already holds all uncommitted changes of a worktree.
    fn is_in_snapshot(&self, dir: &Path) -> Result<bool, Error> {
        let project = self.op.project;
        let Some(head) = project.repo.head_commit(dir)? else { return Ok(false) };
        let is_held =
            self.op.lock_worktree(dir)?.write_snapshot(head, "uncommitted work", &[], |contents, _| {
                let ids = project.snap_ids()?;
                Ok(ids
                    .iter()
                    .filter_map(|id| project.load_snap(id).ok())
                    .any(|snap| snap.snapshot.has_same_content(&contents)))
            })?;
        Ok(is_held.unwrap_or(true))
    }

    /// Refuses if there are edits in the worktree. They would move along to another branch and mix with the
    /// restored changes.
    pub(crate) fn refuse_edits(&self, dir: &Path) -> Result<(), Error> {
        let project = self.op.project;
        let ignored_files = preview_ignored_files(project, dir)?;
        let is_ignored = |path: &RepoPath| {
            ignored_files.contains(path) || path.parents().any(|up| ignored_files.contains(&up))
        };
        let mut dirty_state = status_query::status(&project.repo, dir, true)?;
        // Changes inside a submodule stay there, whichever branch is checked out.
        dirty_state.entries.retain(|entry| !entry.is_only_inside_submodule() && !is_ignored(&entry.path));
        let mut paths = dirty_state.paths();
        let checkout = self.op.lock_worktree(dir)?;
        let hidden = checkout.hidden_changes()?;
        paths.extend(hidden.into_iter().filter(|path| !is_ignored(path)));
        // The preview's record may already be restored; HEAD is switched last.
        let worktrees = WorktreeList::read(&project.repo)?;
        let branch = worktrees.with_top_folder(dir).and_then(|worktree| worktree.branch.as_deref());
        let in_preview = branch.is_some_and(|branch| project.previewed_lane(branch).is_some());
        let is_restored = |step: &Step| matches!(step, Step::RestoreSnapshot { dir: restored_dir, .. } if restored_dir == dir);
        if paths.is_empty() && !in_preview && !self.entry.applied_steps().any(is_restored) {
            // These files were not parked, and do not belong to the preview.
            let LocalState { assume_unchanged: assumed, skip_worktree: skipped, .. } =
                checkout.user_flags(None)?;
            paths.extend(assumed.into_iter().chain(skipped));
        }
        if paths.is_empty() {
            return Ok(());
        }
        let remedy = local_changes_remedy::LocalChangesRemedy::detect(&project.repo, dir, &paths);
        let flag_remedy = (!in_preview && remedy.has_flag_hidden_files()).then_some(remedy);
        Err(UndoError::WorktreeEdits { dir: dir.to_owned(), paths, in_preview, flag_remedy }.into())
    }

    /// Refuses to revert a switch of HEAD if one of its branches has moved since. The restored files would
    /// belong to a commit that their branch has left, so later changes would show as deleted.
    pub(crate) fn refuse_moved_branches(&self, step: &Step) -> Result<(), Error> {
        let Step::Checkout { dir, from: old, to: new, ref_move: RefMove::Switch { from, to }, .. } = step
        else {
            return Ok(());
        };
        if let Some((branch, tip)) = self.moved_branch_tip(from, *old)? {
            return Err(UndoError::PreviousBranchMoved { branch, tip }.into());
        }
        if self.has_head(dir, from)? {
            return Ok(());
        }
        if let Head::Branch(branch) = to
            && !self.has_head(dir, to)?
        {
            let gone_tip = self.op.project.repo.branch_tip(branch)?.is_none().then_some(*new);
            return Err(UndoError::NotOnBranch { dir: dir.clone(), branch: branch.clone(), gone_tip }.into());
        }
        let Some((branch, tip)) = self.moved_branch_tip(to, *new)? else { return Ok(()) };
        let project = self.op.project;
        let preview_of = |head: &Head| match head {
            Head::Branch(name) => project.previewed_lane(name).map(str::to_owned),
            Head::Detached(_) => None,
        };
        let has_record = |lane: &str| {
            LaneName::parse(lane).is_ok_and(|name| project.store.layout().has_lane_record(&name))
        };
        let alternative = match (preview_of(to), preview_of(from)) {
            (Some(_), _) => Some("git proq preview --back".to_owned()),
            (None, Some(lane)) if has_record(&lane) => Some(format!("git proq preview {lane}")),
            (None, _) => None,
        };
        Err(UndoError::CurrentBranchMoved { branch, tip, alternative_command: alternative }.into())
    }

    /// Refuses to revert a switch of HEAD from a branch that is missing, because HEAD would be on a branch
    /// without a commit. `tip_of` returns the tip that a branch will have at that moment.
    pub(crate) fn refuse_missing_branch(
        &self,
        step: &Step,
        tip_of: impl FnOnce(&str) -> Result<Option<CommitId>, Error>,
    ) -> Result<(), Error> {
        match step {
            Step::Checkout {
                from: tip,
                ref_move: RefMove::Switch { from: Head::Branch(branch), .. },
                ..
            } if tip_of(branch)?.is_none() => {
                Err(UndoError::BranchGone { branch: branch.clone(), last_tip: *tip }.into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the branch that `head` names and its tip, if that tip is not `commit`.
    fn moved_branch_tip(&self, head: &Head, commit: CommitId) -> Result<Option<(String, CommitId)>, Error> {
        let Head::Branch(branch) = head else { return Ok(None) };
        let tip = self.op.project.repo.branch_tip(branch)?;
        Ok(tip.filter(|tip| *tip != commit).map(|tip| (branch.clone(), tip)))
    }

    /// Refuses to move a branch from `new` back to `old` if other users or branches would miss its commits.
    /// `tip` is the branch's current commit. A fast-forward loses nothing.
    pub(crate) fn require_unshared(
        &self,
        branch: &str,
        tip: CommitId,
        old: CommitId,
        new: CommitId,
    ) -> Result<(), Error> {
        let repo = &self.op.project.repo;
        if self.force || tip == old {
            return Ok(());
        }
        if tip != new {
            return Err(UndoError::BuiltOn { branch: branch.to_owned(), tip }.into());
        }
        if repo.is_ancestor(new, old)? {
            return Ok(());
        }
        match repo.remote_branch_with(new)? {
            Some(remote) => {
                Err(UndoError::Pushed { branch: branch.to_owned(), remote_branch: remote }.into())
            }
            None => Ok(()),
        }
    }
}
