//! Undo of the steps of a logged operation: what each step gets to know, and the forecast of an undo.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proq_git::CommitId;
use proq_store::base::operation_number::OperationNumber;

use super::{BoxedStep, OperationEntry};
use crate::errors::Error;
use crate::operation::journaled_operation::Operation;

/// Undo of one logged operation, as part of an operation.
#[derive(Clone, Copy)]
pub struct StepUndo<'a, 'p> {
    /// Operation that undoes the other one.
    pub op: &'a Operation<'p>,
    /// Operation that is undone.
    pub entry: &'a OperationEntry,
    /// Number of the operation that is undone.
    pub number: OperationNumber,
    /// Whether later commits on a branch are no reason to refuse.
    pub force: bool,
}

impl<'a> StepUndo<'a, '_> {
    /// Returns the steps whose undo takes back other steps too, each with the number of the first of them.
    pub(crate) fn covering_steps(&self) -> Vec<(usize, &'a BoxedStep)> {
        let steps: Vec<&BoxedStep> = self.entry.applied_steps().collect();
        let covering = |n: usize| Some((steps[n].first_covered_step(&steps[..n])?, steps[n]));
        (0..steps.len()).filter_map(covering).collect()
    }
}

/// Part of the undo of a step that is left to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum UndoProgress {
    /// The engine inverts the step.
    Invert,
    /// Nothing is left to undo.
    Finished,
}

/// How git and the files would differ from now once the steps checked so far were reverted.
#[derive(Debug, Default)]
pub struct UndoForecast {
    /// Whether the checked operation is the newest one: the disk is as it left it, apart from later changes by
    /// the user.
    pub is_newest: bool,
    /// Future tips of refs, by full ref name.
    pub ref_tips: BTreeMap<String, Option<CommitId>>,
    /// Moves that would be reverted, in order.
    moves: Vec<RevertedMove>,
    /// Folders that would be removed.
    pub removed_paths: Vec<PathBuf>,
    /// Worktrees whose HEAD would have been switched.
    pub switched_worktrees: BTreeSet<PathBuf>,
}

/// Move that would be reverted.
#[derive(Debug)]
struct RevertedMove {
    /// Path to which the file would return.
    from: PathBuf,
    /// Current path of the file.
    to: PathBuf,
}

impl UndoForecast {
    /// Records that the move of a file would be reverted, from its current path `to` to the path `from`.
    pub(crate) fn add_move(&mut self, from: &Path, to: &Path) {
        self.moves.push(RevertedMove { from: from.to_owned(), to: to.to_owned() });
    }

    /// Returns whether the revert would have moved or removed `path` or a folder above it.
    pub(crate) fn moves_or_removes(&self, path: &Path) -> bool {
        let ends = self.moves.iter().flat_map(|moved| [&moved.from, &moved.to]);
        ends.chain(&self.removed_paths).any(|changed| path.starts_with(changed))
    }

    /// Returns the current path of the file that would be at `path` once the steps checked so far were
    /// reverted.
    pub(crate) fn current_path(&self, path: &Path) -> PathBuf {
        let relocate =
            |moved: &RevertedMove| path.strip_prefix(&moved.from).ok().map(|suffix| moved.to.join(suffix));
        self.moves.iter().rev().find_map(relocate).unwrap_or_else(|| path.to_owned())
    }

    /// Returns the tip that a ref would have once the steps checked so far were reverted, by its full name.
    ///
    /// # Errors
    /// Fails when the ref cannot be read.
    pub(crate) fn tip_of(&self, undo: &StepUndo<'_, '_>, name: &str) -> Result<Option<CommitId>, Error> {
        match self.ref_tips.get(name) {
            Some(tip) => Ok(*tip),
            None => Ok(undo.op.project.repo.ref_tip(name)?),
        }
    }
}
