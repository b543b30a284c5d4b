//! The step that checks out another commit in a worktree.

use std::path::{Path, PathBuf};

use proq_git::base::head::{Head, RefMove};
use proq_git::checkout::transition;
use proq_git::snapshots::recovery;
use proq_git::snapshots::truncated_files::WorktreeStep;
use proq_git::status::local_state::LocalState;
use proq_git::{CommitId, RepoPath};
use serde::{Deserialize, Serialize};

use super::branch_undo::BranchUndo;
use super::switch_undo::SwitchUndo;
use crate::lane::Error;
use crate::lane::context::symbolic_branch::refuse_symbolic_branch;
use crate::lane::parking::snapshot_store::anchor_recovered_files;
use crate::lane::state::in_place_guard::require_free_checkout;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::effects::{Effect, SummarizedSteps};
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast, UndoProgress};
use crate::operation::journaled_operation::step::{MovedBranch, RefChange, Step, StepOutcome};
use crate::operation::locked_worktree::LockedWorktree;

/// Checkout of another commit in a worktree.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "tree")]
pub struct Checkout {
    /// Top folder of the worktree.
    #[serde(with = "proq_store::paths::path_form")]
    pub dir: PathBuf,
    /// Old commit.
    pub from: CommitId,
    /// New commit.
    pub to: CommitId,
    /// Ref that moves together with the worktree.
    #[serde(rename = "move")]
    pub ref_move: RefMove,
    /// Empty folders, index flags and permission bits that git drops during the checkout. Undoing the step
    /// restores them.
    #[serde(default, skip_serializing_if = "LocalState::is_empty")]
    #[serde(rename = "drops")]
    pub dropped_state: LocalState,
    /// Empty folders, index flags and permission bits that are restored in addition to the files of `to`, when
    /// this step undoes another one.
    #[serde(default, skip_serializing_if = "LocalState::is_empty")]
    #[serde(rename = "brings")]
    pub restored_state: LocalState,
}

impl Checkout {
    /// Returns the undo of the switch of HEAD; none where HEAD stays on its branch.
    fn switch_undo(&self) -> Option<SwitchUndo<'_>> {
        let RefMove::Switch { from, to } = &self.ref_move else { return None };
        Some(SwitchUndo { dir: &self.dir, from, to, old: self.from, new: self.to })
    }

    /// Restores the empty folders of a worktree after a transition: those of its new commit if the step has
    /// happened, otherwise the previous ones. A switch of HEAD removes the empty folders of the branch that it
    /// leaves. A moving branch only drops those that files have replaced.
    fn restore_empty_folders(&self, checkout: &LockedWorktree<'_>, has_happened: bool) {
        let (dropped, restored) = (&self.dropped_state.empty_dirs, &self.restored_state.empty_dirs);
        if !has_happened {
            return checkout.create_folders(dropped);
        }
        if matches!(self.ref_move, RefMove::Switch { .. }) {
            checkout.remove_empty_folders(dropped, restored);
        }
        checkout.create_folders(restored);
    }
}

impl Step for Checkout {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.dir]
    }

    fn changed_worktree(&self) -> Option<&Path> {
        Some(&self.dir)
    }

    fn moved_branch(&self) -> Option<MovedBranch<'_>> {
        let RefMove::Branch(name) = &self.ref_move else { return None };
        Some(MovedBranch { name, old: Some(self.from), new: Some(self.to) })
    }

    fn moved_ref(&self) -> Option<RefChange> {
        let name = match &self.ref_move {
            RefMove::Nothing => return None,
            RefMove::Branch(branch) => format!("refs/heads/{branch}"),
            RefMove::Switch { .. } => "HEAD".to_owned(),
        };
        Some(RefChange { name, before: Some(self.from), after: Some(self.to) })
    }

    fn dropped_state(&self, dir: &Path, commit: CommitId) -> Option<&LocalState> {
        (self.dir == dir && self.to == commit).then_some(&self.dropped_state)
    }

    fn effect(&self, summarized: &SummarizedSteps<'_>) -> Option<Effect> {
        match &self.ref_move {
            RefMove::Switch { from, to } => {
                Some(Effect::Clause(describe_switch(from, to, summarized.prefix)))
            }
            _ => summarized.branch_effect(self.moved_branch()?),
        }
    }

    fn log_line(&self) -> Option<String> {
        let ref_text = match &self.ref_move {
            RefMove::Nothing => String::new(),
            RefMove::Branch(name) => format!("{name} "),
            RefMove::Switch { from, to } => format!("{from} -> {to}, "),
        };
        Some(format!("{}: {ref_text}{} -> {}", self.dir.display(), self.from.short(), self.to.short()))
    }

    fn require_startable(&self, op: &Operation<'_>) -> Result<(), Error> {
        require_free_checkout(op, &self.dir)
    }

    fn apply(&self, op: &Operation<'_>, scratch: &Path) -> Result<StepOutcome, Error> {
        let Checkout { dir, from, to, ref_move, dropped_state, restored_state } = self;
        // A checked-out branch of the user may be a symbolic ref: its target moves, as with git. A lane's branch
        // belongs to git-proq, and another program made it symbolic.
        if let RefMove::Branch(branch) = ref_move
            && op.project.is_managed_branch(branch)
        {
            refuse_symbolic_branch(&op.project.repo, branch)?;
        }
        let message = match ref_move {
            // `git switch -` reads this message.
            RefMove::Switch { from, to } => format!("checkout: moving from {from} to {to}"),
            _ => op.reflog_message(),
        };
        let checkout = op.lock_worktree(dir)?;
        let local_state = restored_state.with_modes(dropped_state);
        checkout
            .with_context(scratch, |tree| {
                Ok(transition::transition(tree, (*from, *to), ref_move, &message, &local_state)?)
            })
            .inspect_err(|_| checkout.create_folders(&dropped_state.empty_dirs))?;
        self.restore_empty_folders(&checkout, true);
        Ok(StepOutcome::done())
    }

    fn invert(&self, op: &Operation<'_>) -> Result<(), Error> {
        let Checkout { dir, from, to, ref_move, dropped_state, restored_state } = self;
        op.revert_transition(dir, (*to, *from), ref_move.inverse(), dropped_state, &restored_state.empty_dirs)
    }

    fn check_undo(&self, undo: &StepUndo<'_, '_>, forecast: &mut UndoForecast) -> Result<(), Error> {
        match (BranchUndo::new(self.moved_branch()), self.switch_undo()) {
            (Some(branch), _) => branch.check(undo, forecast),
            (None, Some(switch)) => switch.check(undo, forecast),
            (None, None) => Ok(()),
        }
    }

    fn undo(&self, undo: &StepUndo<'_, '_>) -> Result<UndoProgress, Error> {
        match (BranchUndo::new(self.moved_branch()), self.switch_undo()) {
            (Some(branch), _) => branch.run(undo).map(|()| UndoProgress::Finished),
            (None, Some(switch)) => switch.run(undo),
            // The worktree follows its branch.
            (None, None) => Ok(UndoProgress::Finished),
        }
    }

    fn recover(&self, op: &Operation<'_>, scratch: &Path) -> Result<bool, Error> {
        let checkout = op.lock_worktree(&self.dir)?;
        let recovered = checkout.with_context(scratch, |tree| {
            Ok(recovery::recover_transition(tree, self.from, self.to, &self.ref_move)?)
        })?;
        self.restore_empty_folders(&checkout, recovered.is_done);
        Ok(anchor_recovered_files(op.project, recovered)?)
    }

    fn recover_without_worktree(
        &self,
        op: &Operation<'_>,
        admin: Option<PathBuf>,
        scratch: &Path,
    ) -> Result<bool, Error> {
        let Checkout { dir, from, to, ref_move, .. } = self;
        let repo = &op.project.repo;
        Ok(recovery::recover_without_worktree(repo, dir, admin, (*from, *to), ref_move, scratch)?)
    }

    fn is_unnoticed_until_done(&self) -> bool {
        true
    }

    fn follow_command(&self) -> Option<String> {
        matches!(self.ref_move, RefMove::Nothing).then(|| {
            format!("git read-tree -m -u {} {}", self.from.short_in_command(), self.to.short_in_command())
        })
    }

    fn written_files(&self, _op: &Operation<'_>) -> Option<WorktreeStep> {
        Some(WorktreeStep::Transition { from: self.from, to: self.to })
    }
}

fn describe_switch(from: &Head, to: &Head, prefix: &str) -> String {
    let previewed_lane = |head: &Head| match head {
        Head::Branch(name) => {
            let lane = name.strip_prefix(prefix)?.strip_prefix('/')?.strip_suffix("-preview")?;
            Some(lane.to_owned())
        }
        Head::Detached(_) => None,
    };
    match (previewed_lane(from), previewed_lane(to)) {
        (_, Some(lane)) => format!("preview of {lane}"),
        (Some(_), None) => format!("back on {to}"),
        (None, None) => format!("{from} -> {to}"),
    }
}

impl Operation<'_> {
    /// Switches a worktree from one commit to another, and moves the ref.
    pub fn transition(&self, dir: &Path, from: CommitId, to: CommitId, mv: RefMove) -> Result<(), Error> {
        self.perform(self.transition_step(dir, from, to, mv)).map(drop)
    }

    /// Creates the step that moves a worktree from one commit to another. It includes the local state that
    /// reverting the step must restore.
    pub(crate) fn transition_step(&self, dir: &Path, from: CommitId, to: CommitId, mv: RefMove) -> Checkout {
        // If the local state cannot be read now, the step will fail.
        let repo = &self.project.repo;
        let mut drops = LocalState::lost_on_switch(repo, dir, from, to).unwrap_or_default();
        if matches!(mv, RefMove::Switch { .. }) {
            drops = drops.with_flags(LocalState::read_manual_flags(repo, dir, None).unwrap_or_default());
        }
        Checkout {
            dir: dir.to_owned(),
            from,
            to,
            ref_move: mv,
            dropped_state: drops,
            restored_state: LocalState::default(),
        }
    }

    /// Moves a worktree back to a commit, where it had the local state `local_state`. `dropped_dirs` are empty
    /// folders that disappear with the current contents; reverting the step restores them.
    pub(crate) fn revert_transition(
        &self,
        dir: &Path,
        (from, to): (CommitId, CommitId),
        ref_move: RefMove,
        local_state: &LocalState,
        dropped_dirs: &[RepoPath],
    ) -> Result<(), Error> {
        let mut step = self.transition_step(dir, from, to, ref_move);
        step.restored_state.clone_from(local_state);
        step.dropped_state.empty_dirs.extend_from_slice(dropped_dirs);
        self.perform(step).map(drop)
    }
}
