//! Rename of a lane: its branch, its worktree and its records.

use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_store::Store;
use proq_store::base::record::Record;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::records::check::FailedCheckRecord;
use proq_store::records::conflict::ConflictRecord;
use proq_store::records::lane::{LaneKind, LaneRecord, LaneWorktree};
use serde::Serialize;

use crate::errors::rename_error::RenameError;
use crate::event::log::EventName;
use crate::lane;
use crate::lane::Project;
use crate::lane::creation::free_name::require_free_name;
use crate::lane::removal::remove_lane::{add_unreachable, anchor_tips};
use crate::lane::worktree::rename_worktree::require_renamable;
use crate::merge::stack::conflict;
use crate::operation::journaled_operation::Operation;
use crate::operation::run_operation::operate;
use crate::ops::error::Error;
use crate::ops::refusal::refuse_changed_lane;

/// Rename of a lane.
#[derive(Debug, Clone)]
pub struct RenameRequest {
    /// The lane, which must have a branch.
    pub lane: LaneRecord,
    /// New name.
    pub name: LaneName,
}

/// Rename that is possible, not yet made.
#[derive(Debug, Clone)]
pub struct RenamePlan {
    lane: LaneRecord,
    renamed: LaneRename,
}

/// Names that a lane got or would get.
#[derive(Debug, Clone, Serialize)]
pub struct LaneRename {
    /// New name of the lane.
    pub lane: LaneName,
    /// Old name of the lane.
    #[serde(rename = "before")]
    pub old_name: LaneName,
    /// New branch of the lane.
    pub branch: String,
    /// New top folder of the lane's worktree.
    pub path: PathBuf,
    /// Branches of remotes that have the old name, which stay: such as `origin/proq/old`.
    pub remote_branches: Vec<String>,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

/// Checks whether a lane can be renamed.
///
/// # Errors
/// The new name is taken, or [`RenameError`], or the lane's agent runs.
pub fn plan(project: &Project, request: RenameRequest) -> Result<RenamePlan, Error> {
    let RenameRequest { lane, name } = request;
    project.require_idle(&lane)?;
    require_renamable(project, &lane)?;
    require_free(project, &lane, &name)?;
    let (location, old_path) = (project.location()?, &lane.path);
    // A worktree that the user moved keeps its place, and its name unless that is the lane's.
    let path = if location.worktree_path(&lane.name) == *old_path {
        location.worktree_path(&name)
    } else if old_path.file_name().is_some_and(|folder| folder == lane.name.as_str()) {
        old_path.with_file_name(name.as_str())
    } else {
        old_path.clone()
    };
    if path != *old_path && path.symlink_metadata().is_ok() {
        return Err(lane::Error::PathTaken { path }.into());
    }
    let remotes = project.repo.refs_with_prefix("refs/remotes/")?;
    let remote_branch = |(full_name, _): (String, _)| {
        let remote = full_name.strip_prefix("refs/remotes/")?.strip_suffix(&lane.kind.branch)?;
        remote.strip_suffix('/').map(|remote| format!("{remote}/{}", lane.kind.branch))
    };
    let renamed = LaneRename {
        branch: project.lane_branch(&name),
        path,
        remote_branches: remotes.into_iter().filter_map(remote_branch).collect(),
        old_name: lane.name.clone(),
        lane: name,
        dry_run: true,
    };
    Ok(RenamePlan { lane, renamed })
}

/// Refuses the name of another lane, a branch or a folder.
fn require_free(project: &Project, lane: &LaneRecord, name: &LaneName) -> Result<(), Error> {
    match require_free_name(project, name) {
        Err(lane::Error::NameTaken { name }) => {
            Err(lane::Error::from(RenameError::NameTaken { lane: lane.name.clone(), name }).into())
        }
        checked => Ok(checked?),
    }
}

impl RenamePlan {
    /// Returns the names that the lane would get.
    #[must_use]
    pub fn forecast(self) -> LaneRename {
        self.renamed
    }

    /// Renames the lane.
    ///
    /// # Errors
    /// As [`plan`]; then nothing was changed.
    pub fn execute(self, project: &Project) -> Result<LaneRename, Error> {
        let RenamePlan { lane, renamed } = self;
        let (current, _run) = project.lock_idle_record(&lane)?;
        refuse_changed_lane(&lane, &current)?;
        let _new_run = lock_new_name(project, &lane, &renamed.lane)?;
        // No landing reaches its last moments while this lock is held.
        let landing = || lane::Error::from(RenameError::Landing { lane: lane.name.clone() });
        let locks = project.store.locks();
        let _merge = locks.try_acquire(&LockName::Merge).map_err(lane::Error::from)?.ok_or_else(landing)?;
        require_renamable(project, &current)?;
        if lane.auto_merge {
            // A landing finds the lanes that wait for it by the files of these locks.
            drop(locks.try_acquire(&LockName::AutoMerge(renamed.lane.clone())).map_err(lane::Error::from)?);
        }
        operate(project, "rename", |op| rename(op, &current, &renamed))?;
        drop(std::fs::remove_file(project.store.layout().worktree_scan_cache(&lane.name)));
        Ok(LaneRename { dry_run: false, ..renamed })
    }
}

/// Takes the run lock of the new name, which must be free.
fn lock_new_name(project: &Project, lane: &LaneRecord, name: &LaneName) -> Result<LockGuard, Error> {
    let taken = || RenameError::NameTaken { lane: lane.name.clone(), name: name.clone() };
    let lock = project.store.locks().try_acquire(&LockName::Run(name.clone())).map_err(lane::Error::from)?;
    let lock = lock.ok_or_else(|| lane::Error::from(taken()))?;
    require_free(project, lane, name)?;
    Ok(lock)
}

/// Renames the lane as part of an operation: branch and worktree first, then the records.
fn rename(op: &Operation<'_>, lane: &LaneRecord, renamed: &LaneRename) -> Result<(), lane::Error> {
    let project = op.project;
    let (old, new) = (lane.name.clone(), renamed.lane.clone());
    let old_branch = lane.kind.branch.clone();
    let tip = project.repo.branch_tip(&old_branch)?.ok_or_else(|| RenameError::NotOnBranch {
        lane: old.clone(),
        branch: old_branch.clone(),
        path: lane.path.clone(),
    })?;
    save_logged_commits(op, lane, tip)?;
    op.create_lane_branch(&new, &renamed.branch, tip)?;
    op.rename_worktree(lane, &new, &renamed.branch, &renamed.path)?;
    op.delete_ref(&format!("refs/heads/{old_branch}"), tip)?;
    if let Some(kept) = project.repo.ref_tip(&conflict::ref_name(&old))? {
        op.create_ref(&conflict::ref_name(&new), kept)?;
        op.delete_ref(&conflict::ref_name(&old), kept)?;
    }
    let layout = project.store.layout();
    let _store = op.lock_store()?;
    op.move_path(&layout.lane(&old), &layout.lane(&new))?;
    let record = op.update_lane(&new, |record| {
        if record.title == old.as_str() {
            record.title = new.to_string();
        }
        record.name = new.clone();
        record.path.clone_from(&renamed.path);
        let worktree_id = lane.kind.worktree_id.clone();
        record.kind = LaneKind::Owned(LaneWorktree { branch: renamed.branch.clone(), worktree_id });
    })?;
    rename_in_records(op, &project.store, &new)?;
    op.emit(EventName::LaneEdited, Some(&record), format!("lane '{old}' was renamed to '{new}'"));
    Ok(())
}

/// Saves the commits that only the log of the lane's branch has, which git deletes with the branch. The log of the
/// worktree's HEAD stays.
fn save_logged_commits(op: &Operation<'_>, lane: &LaneRecord, tip: CommitId) -> Result<(), lane::Error> {
    let repo = &op.project.repo;
    let stay = repo.worktree_referenced_commits(&lane.path, &repo.worktree_git_dir(&lane.path)?);
    let mut only_logged = repo.logged_branch_commits(&lane.path, &lane.kind.branch);
    only_logged.retain(|id| !stay.contains(id));
    let mut tips = vec![tip];
    add_unreachable(repo, &mut tips, only_logged)?;
    anchor_tips(op, lane, &tips[1..]).map(drop)
}

/// Changes the name in the records of the lane's conflict and failed check.
fn rename_in_records(op: &Operation<'_>, store: &Store, name: &LaneName) -> Result<(), lane::Error> {
    let path = store.layout().conflict_record(name);
    if let Some(record) = ConflictRecord::load_if_exists(&path)? {
        op.save_record(&ConflictRecord { lane: name.clone(), ..record }, &path)?;
    }
    let path = store.layout().failed_check_record(name);
    if let Some(mut record) = FailedCheckRecord::load_if_exists(&path)? {
        record.command_lane = record.command_lane.map(|of| if of == record.lane { name.clone() } else { of });
        op.save_record(&FailedCheckRecord { lane: name.clone(), ..record }, &path)?;
    }
    Ok(())
}
