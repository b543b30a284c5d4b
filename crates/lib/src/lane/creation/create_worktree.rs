//! The step that creates the worktree of a lane.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::base::head::Head;
use proq_store::base::atomic::write_without_dir_sync;
use proq_store::base::file_tree::remove_tree;
use proq_store::locks::lock::LockName;
use serde::{Deserialize, Serialize};

use crate::lane::worktree::{checkout_mode, rollback_create};
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::effects::{Change, Effect, SummarizedSteps};
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast, UndoProgress};
use crate::operation::journaled_operation::step::{BoxedStep, MovedBranch, Step, StepOutcome};

/// Creation of the worktree of a lane, without files.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "worktree")]
pub struct CreateWorktree {
    /// Top folder of the worktree.
    #[serde(with = "proq_store::paths::path_form")]
    pub dir: PathBuf,
    /// Name of the lane.
    pub lane: LaneName,
    /// Commit that is checked out in the worktree.
    pub start: CommitId,
    /// The lane's data; only the process that creates the worktree has it.
    #[serde(skip)]
    pub(super) request: Option<Arc<WorktreeRequest>>,
}

/// Data of the lane whose worktree is about to be created.
#[derive(Debug)]
pub(super) struct WorktreeRequest {
    /// Branch of the lane.
    pub(super) branch: String,
    /// Globs of the files whose folders are checked out; all folders where none is given.
    pub(super) sparse_scope: Option<Vec<String>>,
    /// Prompt of the lane; empty without one.
    pub(super) prompt: String,
}

impl Step for CreateWorktree {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.dir]
    }

    fn held_lock(&self) -> Option<LockName> {
        Some(LockName::Run(self.lane.clone()))
    }

    fn effect(&self, _summarized: &SummarizedSteps<'_>) -> Option<Effect> {
        Some(Effect::Named { change: Change::Created, noun: "lane", name: self.lane.to_string() })
    }

    fn log_line(&self) -> Option<String> {
        Some(format!("{}: created", self.dir.display()))
    }

    /// Fails if another process has created the folder first; a later failure removes the worktree again.
    fn apply(&self, op: &Operation<'_>, scratch: &Path) -> Result<StepOutcome, Error> {
        let Some(request) = &self.request else { return Ok(StepOutcome::done()) };
        rollback_create::create_folder(&self.dir, scratch)?;
        let added = self.add_worktree(op.project, request);
        if added.is_err() {
            remove_created(op.project, &self.lane, &self.dir);
        }
        added.map(|()| StepOutcome::done())
    }

    fn invert(&self, op: &Operation<'_>) -> Result<(), Error> {
        rollback_create::roll_back_worktree(op.project, &self.dir, &self.lane, self.start)
    }

    /// The creation begins with the lane's branch. The steps before that concern an older lane of this name,
    /// which was removed for the new one.
    fn first_covered_step(&self, earlier: &[&BoxedStep]) -> Option<usize> {
        let is_own_branch = |step: &&BoxedStep| {
            matches!(step.moved_branch(), Some(MovedBranch { name, old: None, new })
                if new == Some(self.start)
                    && name.strip_suffix(self.lane.as_str()).is_some_and(|prefix| prefix.ends_with('/')))
        };
        Some(earlier.iter().rposition(is_own_branch).unwrap_or_default())
    }

    fn check_undo(&self, undo: &StepUndo<'_, '_>, forecast: &mut UndoForecast) -> Result<(), Error> {
        self.check_removal(undo, forecast)
    }

    fn undo(&self, undo: &StepUndo<'_, '_>) -> Result<UndoProgress, Error> {
        self.remove_lane(undo).map(|()| UndoProgress::Finished)
    }

    fn recover(&self, op: &Operation<'_>, scratch: &Path) -> Result<bool, Error> {
        let CreateWorktree { dir, lane, start, .. } = self;
        rollback_create::roll_back_killed_creation(op.project, dir, lane, *start, scratch)?;
        Ok(false)
    }
}

impl CreateWorktree {
    /// Adds the worktree to git without files, sets up its sparse checkout, and writes the prompt to the
    /// store.
    fn add_worktree(&self, project: &Project, request: &WorktreeRequest) -> Result<(), Error> {
        {
            let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
            project.repo.add_worktree(&self.dir, &Head::Branch(request.branch.clone()))?;
            let cone = request.sparse_scope.as_deref();
            checkout_mode::configure_checkout(project, &self.dir, self.start, cone)?;
        }
        fail_points::hit("worktree.added");
        // The lane's record follows, in the same folder.
        let path = project.store.layout().task_prompt(&self.lane);
        Ok(write_without_dir_sync(&path, request.prompt.as_bytes())?)
    }
}

/// Removes the parts of a lane that were created before a failure: its records and its worktree. The name is
/// locked, so no other process uses it.
pub(super) fn remove_created(project: &Project, lane: &LaneName, dir: &Path) {
    let _lock = project.store.locks().acquire(&LockName::WorktreeList);
    drop(std::fs::remove_dir_all(project.store.layout().lane(lane)));
    // Copies and set-up commands may have left read-only folders.
    drop(remove_tree(dir));
    drop(project.repo.forget_worktree(dir));
}
