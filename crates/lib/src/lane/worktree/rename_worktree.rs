//! The step that renames the worktree of a lane, and the refusals of a rename.

use std::path::{Path, PathBuf};

use proq_base::explain::describe_with_causes;
use proq_base::lane_name::LaneName;
use proq_git::repository::open_operation::find_open_git_operation;
use proq_git::worktrees::rename_worktree::{Immovable, WorktreeRename, immovable_reason};
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::base::atomic::sync_dir;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::locks::merge_queue::queued_landings;
use proq_store::records::lane::LaneRecord;
use proq_store::records::preview::PreviewRecord;
use serde::{Deserialize, Serialize};

use crate::errors::rename_error::RenameError;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::effects::{Effect, SummarizedSteps};
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast};
use crate::operation::journaled_operation::step::{Step, StepOutcome};

/// Rename of the worktree of a lane: its folder, git's record of it, and the branch that its HEAD names.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "rename")]
pub struct RenameWorktree {
    /// Old name of the lane.
    pub lane: LaneName,
    /// New name of the lane.
    pub new_lane: LaneName,
    /// Name of git's admin folder for the worktree.
    pub worktree_id: String,
    /// Old top folder.
    #[serde(with = "proq_store::paths::path_form")]
    pub from: PathBuf,
    /// New top folder, which may be the old one.
    #[serde(with = "proq_store::paths::path_form")]
    pub to: PathBuf,
    /// Old branch, without `refs/heads/`.
    pub old_branch: String,
    /// New branch, at the same commit.
    pub new_branch: String,
    /// Whether the settings of the old branch are those of the new one afterwards. Not if the new one had some
    /// before: an undo could not separate them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moves_settings: bool,
}

impl RenameWorktree {
    /// Returns the rename for git.
    fn rename(&self) -> WorktreeRename<'_> {
        WorktreeRename {
            id: &self.worktree_id,
            from: &self.from,
            to: &self.to,
            old_branch: &self.old_branch,
            new_branch: &self.new_branch,
        }
    }

    /// Moves the settings of the branch `from` to the branch `to`, if the step moves settings. They stay where they
    /// are if git cannot write them, with a warning.
    fn move_settings(&self, project: &Project, from: &str, to: &str) {
        if self.moves_settings
            && let Err(e) = project.repo.rename_branch_settings(from, to)
        {
            let reason = describe_with_causes(&e);
            project.listener.warn(format!("cannot move the settings branch.{from} to branch.{to}: {reason}"));
        }
    }

    /// Syncs the folder of the worktree's folder: a power cut must not undo one side of the rename.
    fn sync(&self) -> Result<(), Error> {
        Ok(self.to.parent().map_or(Ok(()), sync_dir)?)
    }
}

impl Step for RenameWorktree {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.from, &mut self.to]
    }

    fn held_lock(&self) -> Option<LockName> {
        Some(LockName::Run(self.lane.clone()))
    }

    fn effect(&self, _summarized: &SummarizedSteps<'_>) -> Option<Effect> {
        Some(Effect::Clause(format!("lane {} renamed to {}", self.lane, self.new_lane)))
    }

    fn log_line(&self) -> Option<String> {
        Some(format!("{} -> {}", self.from.display(), self.to.display()))
    }

    fn apply(&self, op: &Operation<'_>, scratch: &Path) -> Result<StepOutcome, Error> {
        let RenameWorktree { from, to, .. } = self;
        if from != to && to.symlink_metadata().is_ok() {
            return Err(Error::PathTaken { path: to.clone() });
        }
        op.with_locked_worktree(from, |_| {
            let _list = op.project.store.locks().acquire(&LockName::WorktreeList)?;
            Ok(op.project.repo.rename_worktree(&self.rename(), scratch)?)
        })?;
        self.sync()?;
        self.move_settings(op.project, &self.old_branch, &self.new_branch);
        Ok(StepOutcome::done())
    }

    fn invert(&self, op: &Operation<'_>) -> Result<(), Error> {
        let step = self.clone();
        let inverse = RenameWorktree {
            lane: step.new_lane,
            new_lane: step.lane,
            from: step.to,
            to: step.from,
            old_branch: step.new_branch,
            new_branch: step.old_branch,
            ..step
        };
        op.perform(inverse).map(drop)
    }

    fn prepare_undo(undo: &StepUndo<'_, '_>) -> Result<(), Error> {
        let project = undo.op.project;
        let renames = undo.entry.applied_steps().filter_map(|step| step.downcast_ref::<RenameWorktree>());
        for rename in renames {
            // Newer steps of the operation may first restore the lane.
            let lane = match project.lane(&rename.new_lane) {
                Err(Error::UnknownLane { .. }) => continue,
                found => found?,
            };
            project.require_idle(&lane)?;
            require_renamable(project, &lane)?;
            let tip = project.repo.branch_tip(&rename.new_branch)?;
            let created = undo.entry.applied_steps().filter_map(|step| step.moved_branch());
            let mut created = created.filter(|moved| moved.name == rename.new_branch && moved.old.is_none());
            if created.next().is_some_and(|moved| moved.new != tip) {
                let (lane, old_name) = (rename.new_lane.clone(), rename.lane.clone());
                return Err(RenameError::NewCommits { lane, old_name }.into());
            }
        }
        Ok(())
    }

    fn check_undo(&self, _undo: &StepUndo<'_, '_>, forecast: &mut UndoForecast) -> Result<(), Error> {
        let RenameWorktree { from, to, .. } = self;
        let is_as_left = |path: &PathBuf| forecast.is_newest && !forecast.moves_or_removes(path);
        if is_as_left(to) && to.symlink_metadata().is_err() {
            return Err(Error::PathMissing { path: to.clone() });
        }
        if is_as_left(from) && from != to && from.symlink_metadata().is_ok() {
            return Err(Error::PathTaken { path: from.clone() });
        }
        forecast.add_move(from, to);
        Ok(())
    }

    fn recover(&self, op: &Operation<'_>, scratch: &Path) -> Result<bool, Error> {
        let is_renamed = op.project.repo.recover_worktree_rename(&self.rename(), scratch)?;
        self.sync()?;
        let (from, to) = match is_renamed {
            true => (&self.old_branch, &self.new_branch),
            false => (&self.new_branch, &self.old_branch),
        };
        self.move_settings(op.project, from, to);
        Ok(is_renamed)
    }
}

impl Operation<'_> {
    /// Renames the worktree of a lane to the folder `to`, and its HEAD to the branch `branch`, which is at the same
    /// commit. `name` is the new name of the lane.
    pub(crate) fn rename_worktree(
        &self,
        lane: &LaneRecord,
        name: &LaneName,
        branch: &str,
        to: &Path,
    ) -> Result<(), Error> {
        let (repo, old_branch) = (&self.project.repo, &lane.kind.branch);
        let step = RenameWorktree {
            lane: lane.name.clone(),
            new_lane: name.clone(),
            worktree_id: lane.kind.worktree_id.clone(),
            from: lane.path.clone(),
            to: to.to_owned(),
            old_branch: old_branch.clone(),
            new_branch: branch.to_owned(),
            moves_settings: repo.has_branch_settings(old_branch) && !repo.has_branch_settings(branch),
        };
        self.perform(step).map(drop)
    }
}

/// Refuses to rename a lane that something knows by its name and would not find again: a batch, a preview, a
/// landing, a resolution, or an act of git in the worktree.
///
/// # Errors
/// [`RenameError`].
pub(crate) fn require_renamable(project: &Project, lane: &LaneRecord) -> Result<(), Error> {
    let (name, locks) = (lane.name.clone(), project.store.locks());
    if let Some(owner) = &lane.batch {
        return Err(RenameError::InBatch { lane: name, batch: owner.batch.clone() }.into());
    }
    let preview = PreviewRecord::load_if_exists(&project.store.layout().preview_record())?;
    if preview.is_some_and(|open| open.lane == name) {
        return Err(RenameError::Previewed { lane: name }.into());
    }
    let is_queued = queued_landings(locks)?.into_iter().any(|entry| {
        entry.is_none_or(|entry| {
            let lanes = entry.request.lanes;
            lanes.is_empty() || lanes.iter().any(|queued| queued == name.as_str())
        })
    });
    if is_queued || locks.is_held(&LockName::AutoMerge(name.clone()))? {
        return Err(RenameError::Landing { lane: name }.into());
    }
    if project.find_resolution(&name)?.is_some() {
        return Err(RenameError::Resolving { lane: name }.into());
    }
    require_plain_worktree(project, lane)
}

/// Refuses a worktree that git would not move, or whose HEAD is not on the lane's branch.
fn require_plain_worktree(project: &Project, lane: &LaneRecord) -> Result<(), Error> {
    let (name, path) = (lane.name.clone(), lane.path.clone());
    let git_dir = project.repo.worktree_git_dir(&path)?;
    let branch = lane.kind.branch.clone();
    let is_on_branch = project.repo.head_branch(&path, &git_dir)?.as_ref() == Some(&branch);
    if !is_on_branch || find_open_git_operation(&git_dir).is_some() {
        return Err(RenameError::NotOnBranch { lane: name, branch, path }.into());
    }
    let worktrees = WorktreeList::read(&project.repo)?;
    if let Some(nested) = worktrees.iter().find(|other| other.path != path && other.path.starts_with(&path)) {
        let own_name = nested.path.file_name().unwrap_or_default();
        let elsewhere = project.repo.command_dir().with_file_name(own_name);
        return Err(RenameError::Nested { lane: name, nested: nested.path.clone(), elsewhere }.into());
    }
    match immovable_reason(&git_dir) {
        Some(Immovable::Submodules) => Err(RenameError::Submodules { lane: name }.into()),
        Some(Immovable::Locked) => Err(RenameError::Locked { lane: name, path }.into()),
        None => Ok(()),
    }
}
