//! The step that creates the worktree for a lane's conflict.

use std::path::{Path, PathBuf};

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::base::head::Head;
use proq_store::locks::lock::LockName;
use serde::{Deserialize, Serialize};

use super::undo_open_resolution;
use crate::lane::worktree::populate::populate_worktrees;
use crate::lane::worktree::rollback_create;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::effects::{Effect, SummarizedSteps};
use crate::operation::journaled_operation::step::{Step, StepOutcome};

/// Creation of a worktree for resolving the conflict of a lane.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "resolve")]
pub struct CreateResolveWorktree {
    /// Top folder of the worktree.
    #[serde(with = "proq_store::paths::path_form")]
    pub dir: PathBuf,
    /// Name of the lane.
    pub lane: LaneName,
    /// Commit that is checked out in the worktree.
    pub start: CommitId,
    /// Side that git merges into the worktree; only the process that creates the worktree has it.
    #[serde(skip)]
    pub(super) merged: Option<MergedSide>,
}

/// Side of a conflict that git merges into the lane's side.
#[derive(Debug, Clone)]
pub(super) struct MergedSide {
    /// Branch of the side.
    pub(super) branch: String,
    /// Tip of the branch.
    pub(super) tip: CommitId,
}

impl Step for CreateResolveWorktree {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.dir]
    }

    fn effect(&self, _summarized: &SummarizedSteps<'_>) -> Option<Effect> {
        Some(Effect::Exclusive { rank: 1, clause: format!("conflict of {} opened", self.lane) })
    }

    fn log_line(&self) -> Option<String> {
        Some(format!("{}: created", self.dir.display()))
    }

    /// Returns git's messages about the merge as the result, a `Vec<String>`.
    fn apply(&self, op: &Operation<'_>, scratch: &Path) -> Result<StepOutcome, Error> {
        let Some(merged) = &self.merged else { return Ok(StepOutcome::done()) };
        rollback_create::create_folder(&self.dir, scratch)?;
        let outcome = self.create_merging_worktree(op.project, merged);
        if outcome.is_err() {
            drop(rollback_create::roll_back_worktree(op.project, &self.dir, &self.lane, self.start));
        }
        Ok(StepOutcome::with_result(true, outcome?))
    }

    fn invert(&self, op: &Operation<'_>) -> Result<(), Error> {
        let CreateResolveWorktree { dir, lane, start, .. } = self;
        match op.is_reverting() {
            true => rollback_create::roll_back_worktree(op.project, dir, lane, *start),
            // Work may have been done in it since.
            false => undo_open_resolution(op, lane, dir, *start),
        }
    }

    fn recover(&self, op: &Operation<'_>, scratch: &Path) -> Result<bool, Error> {
        let CreateResolveWorktree { dir, lane, start, .. } = self;
        rollback_create::roll_back_killed_creation(op.project, dir, lane, *start, scratch)?;
        Ok(false)
    }
}

impl CreateResolveWorktree {
    /// Adds the worktree, writes its files, and starts git's merge there. Returns git's messages about the
    /// merge.
    fn create_merging_worktree(&self, project: &Project, merged: &MergedSide) -> Result<Vec<String>, Error> {
        let (dir, tip) = (&self.dir, self.start);
        {
            let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
            project.repo.add_worktree(dir, &Head::Detached(tip))?;
        }
        fail_points::hit("resolve.added");
        proq_base::interrupt::require_no_signal()?;
        populate_worktrees(project, &[dir], tip)?;
        proq_base::interrupt::require_no_signal()?;
        let messages = project.repo.start_merge(dir, &merged.branch, merged.tip)?;
        fail_points::hit("resolve.merged");
        Ok(messages)
    }
}
