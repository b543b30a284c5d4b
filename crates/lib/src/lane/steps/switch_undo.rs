//! Undo of a checkout that switched HEAD of a worktree: refusals where it would lose edits or mix them up.

use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_git::base::head::Head;
use proq_git::base::local_changes_remedy::LocalChangesRemedy;
use proq_git::status::local_state::LocalState;
use proq_git::status::status_query;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, RepoPath};
use proq_store::base::record::Record;
use proq_store::records::preview::PreviewRecord;

use super::preview_return::origin_branch_elsewhere;
use crate::errors::undo_error::UndoError;
use crate::lane::Error;
use crate::lane::parking::restore_snapshot::is_restore_to;
use crate::lane::parking::snap_view::find_snap;
use crate::lane::parking::undo_forecast::RestoredSnapshots;
use crate::operation::journaled_operation::step::WrittenRecord;
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast, UndoProgress};

/// Switch of a worktree's HEAD, which an undo reverts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SwitchUndo<'a> {
    /// Top folder of the worktree.
    pub dir: &'a Path,
    /// HEAD to return to.
    pub from: &'a Head,
    /// HEAD that the step switched to.
    pub to: &'a Head,
    /// Commit to return to.
    pub old: CommitId,
    /// Commit that the step checked out.
    pub new: CommitId,
}

impl SwitchUndo<'_> {
    /// Checks whether the switch can be reverted, and records the effect in `forecast`. If reverting newer steps
    /// moves one of the switch's branches, the present branch tips are not checked.
    ///
    /// # Errors
    /// Fails as [`SwitchUndo::run`] would.
    pub(crate) fn check(self, undo: &StepUndo<'_, '_>, forecast: &mut UndoForecast) -> Result<(), Error> {
        match undo.op.with_memory(|snapshots: &mut RestoredSnapshots| snapshots.0.get(self.dir).cloned()) {
            Some(restored_snap) => self.refuse_restored_edits(undo, restored_snap.as_deref())?,
            None => self.refuse_edits(undo)?,
        }
        if !forecast.switched_worktrees.insert(self.dir.to_owned()) {
            return Ok(());
        }
        let branch_moves = |head: &Head| match head {
            Head::Branch(branch) => forecast.ref_tips.contains_key(&format!("refs/heads/{branch}")),
            Head::Detached(_) => false,
        };
        if forecast.is_newest || !(branch_moves(self.from) || branch_moves(self.to)) {
            self.refuse_moved_branches(undo)?;
            self.require_preview_return(undo)?;
        }
        self.refuse_missing_branch(|branch| forecast.tip_of(undo, &format!("refs/heads/{branch}")))?;
        if !self.has_head(undo, self.from)? && !self.dir.exists() {
            return Err(Error::PathMissing { path: self.dir.to_owned() });
        }
        Ok(())
    }

    /// Refuses to revert the switch where that would lose edits or mix them up; locks the worktree until the
    /// operation finishes, so that nothing lands on the branch concurrently. The user may have switched back by
    /// hand; nothing is left to do then.
    ///
    /// # Errors
    /// The refusals of an undo.
    pub(crate) fn run(self, undo: &StepUndo<'_, '_>) -> Result<UndoProgress, Error> {
        let _checkout = undo.op.lock_worktree(self.dir)?;
        self.refuse_edits(undo)?;
        self.refuse_moved_branches(undo)?;
        self.require_preview_return(undo)?;
        self.refuse_missing_branch(|branch| Ok(undo.op.project.repo.branch_tip(branch)?))?;
        let has_returned = self.has_head(undo, self.from)?;
        Ok(if has_returned { UndoProgress::Finished } else { UndoProgress::Invert })
    }

    /// Returns whether HEAD of the worktree is `head`, the same branch or detached commit.
    fn has_head(&self, undo: &StepUndo<'_, '_>, head: &Head) -> Result<bool, Error> {
        Ok(undo.op.project.repo.worktree_head(self.dir)?.as_ref() == Some(head))
    }

    /// Refuses if reverting newer steps restores the snapshot `restored_snap` to the worktree, and it has
    /// changes.
    fn refuse_restored_edits(
        &self,
        undo: &StepUndo<'_, '_>,
        restored_snap: Option<&str>,
    ) -> Result<(), Error> {
        let project = undo.op.project;
        let Some(snap) = restored_snap else { return Ok(()) };
        let files = find_snap(project, snap)?.files(&project.repo)?;
        let in_preview = matches!(self.to, Head::Branch(branch) if project.previewed_lane(branch).is_some());
        let paths: Vec<RepoPath> = files.into_iter().map(|file| file.path).collect();
        if paths.is_empty() {
            return Ok(());
        }
        let dir = self.dir.to_owned();
        Err(UndoError::WorktreeEdits { dir, paths, in_preview, flag_remedy: None }.into())
    }

    /// Refuses if there are edits in the worktree. They would move along to another branch and mix with the
    /// restored changes.
    fn refuse_edits(&self, undo: &StepUndo<'_, '_>) -> Result<(), Error> {
        let (dir, project) = (self.dir, undo.op.project);
        let ignored_files = project.preview_ignored_files(dir)?;
        let is_ignored = |path: &RepoPath| {
            ignored_files.contains(path) || path.parents().any(|up| ignored_files.contains(&up))
        };
        let mut dirty_state = status_query::status(&project.repo, dir, true)?;
        // Changes inside a submodule stay there, whichever branch is checked out.
        dirty_state.entries.retain(|entry| !entry.is_only_inside_submodule() && !is_ignored(&entry.path));
        let mut paths = dirty_state.paths();
        let checkout = undo.op.lock_worktree(dir)?;
        let hidden = checkout.hidden_changes()?;
        paths.extend(hidden.into_iter().filter(|path| !is_ignored(path)));
        // The preview's record may already be restored; HEAD is switched last.
        let worktrees = WorktreeList::read(&project.repo)?;
        let branch = worktrees.with_top_folder(dir).and_then(|worktree| worktree.branch.as_deref());
        let in_preview = branch.is_some_and(|branch| project.previewed_lane(branch).is_some());
        let mut steps = undo.entry.applied_steps();
        if paths.is_empty() && !in_preview && !steps.any(|step| is_restore_to(&**step, dir)) {
            // These files were not parked, and do not belong to the preview.
            let LocalState { assume_unchanged: assumed, skip_worktree: skipped, .. } =
                checkout.user_flags(None)?;
            paths.extend(assumed.into_iter().chain(skipped));
        }
        if paths.is_empty() {
            return Ok(());
        }
        let remedy = LocalChangesRemedy::detect(&project.repo, dir, &paths);
        let flag_remedy = (!in_preview && remedy.has_flag_hidden_files()).then_some(remedy);
        Err(UndoError::WorktreeEdits { dir: dir.to_owned(), paths, in_preview, flag_remedy }.into())
    }

    /// Refuses to revert a switch of HEAD if one of its branches has moved since. The restored files would
    /// belong to a commit that their branch has left, so later changes would show as deleted.
    fn refuse_moved_branches(&self, undo: &StepUndo<'_, '_>) -> Result<(), Error> {
        let SwitchUndo { dir, from, to, old, new } = *self;
        let project = undo.op.project;
        if let Some((branch, tip)) = moved_branch_tip(undo, from, old)? {
            return Err(UndoError::PreviousBranchMoved { branch, tip }.into());
        }
        if self.has_head(undo, from)? {
            return Ok(());
        }
        if let Head::Branch(branch) = to
            && !self.has_head(undo, to)?
        {
            let gone_tip = project.repo.branch_tip(branch)?.is_none().then_some(new);
            return Err(
                UndoError::NotOnBranch { dir: dir.to_owned(), branch: branch.clone(), gone_tip }.into()
            );
        }
        let Some((branch, tip)) = moved_branch_tip(undo, to, new)? else { return Ok(()) };
        let preview_of = |head: &Head| match head {
            Head::Branch(name) => project.previewed_lane(name).map(str::to_owned),
            Head::Detached(_) => None,
        };
        let has_record = |lane: &str| {
            LaneName::parse(lane).is_ok_and(|name| project.store.layout().has_lane_record(&name))
        };
        let preview_argument = match (preview_of(to), preview_of(from)) {
            (Some(_), _) => Some("--back".to_owned()),
            (None, Some(lane)) if has_record(&lane) => Some(lane),
            (None, _) => None,
        };
        Err(UndoError::CurrentBranchMoved { branch, tip, preview_argument }.into())
    }

    /// Refuses to revert a switch of HEAD from a branch that is missing, because HEAD would be on a branch
    /// without a commit. `tip_of` returns the tip that a branch will have at that moment.
    fn refuse_missing_branch(
        &self,
        tip_of: impl FnOnce(&str) -> Result<Option<CommitId>, Error>,
    ) -> Result<(), Error> {
        match self.from {
            Head::Branch(branch) if tip_of(branch)?.is_none() => {
                Err(UndoError::BranchGone { branch: branch.clone(), last_tip: self.old }.into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses to undo the operation that entered a preview if the undo would not restore the earlier state.
    /// Either the branch is checked out elsewhere by now, or the preview holds other changes than the
    /// operation parked, because the user edited them since.
    fn require_preview_return(&self, undo: &StepUndo<'_, '_>) -> Result<(), Error> {
        let project = undo.op.project;
        let path = project.store.layout().preview_record();
        let Some(open) = PreviewRecord::load_if_exists(&path)? else { return Ok(()) };
        if *self.from != open.previous_head {
            return Ok(());
        }
        if let Some(id) = &open.parked_snapshot
            && project.orphaned_snap_commit(id)?.is_some()
        {
            return Err(UndoError::PreviewRecordMissing.into());
        }
        if self.has_head(undo, self.from)? {
            return Ok(());
        }
        if let (Head::Branch(branch), Some(dir)) = (self.from, origin_branch_elsewhere(&project.repo, &open)?)
        {
            return Err(UndoError::CheckedOutElsewhere { branch: branch.clone(), dir }.into());
        }
        let mut entered_preview = None;
        for record in undo.entry.applied_steps().filter_map(|step| step.written_record()) {
            // An operation may rename the changes that it set aside.
            if let WrittenRecord { path: record_path, old, new: Some(text) } = record
                && *record_path == *undo.op.store_relative_path(&path)
                && (old.is_none() || entered_preview.is_some())
            {
                entered_preview = toml::from_str::<PreviewRecord>(text).ok();
            }
        }
        match entered_preview {
            Some(entered) if entered.parked_snapshot != open.parked_snapshot => {
                Err(UndoError::PreviewChangesReplaced.into())
            }
            _ => Ok(()),
        }
    }
}

/// Returns the branch that `head` names and its tip, if that tip is not `commit`.
fn moved_branch_tip(
    undo: &StepUndo<'_, '_>,
    head: &Head,
    commit: CommitId,
) -> Result<Option<(String, CommitId)>, Error> {
    let Head::Branch(branch) = head else { return Ok(None) };
    let tip = undo.op.project.repo.branch_tip(branch)?;
    Ok(tip.filter(|tip| *tip != commit).map(|tip| (branch.clone(), tip)))
}
