//! Operation log as shown to users: the effects of each operation, which operations are in effect, and which
//! can be undone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proq_git::CommitId;
use proq_store::Store;
use proq_store::base::operation_number::OperationNumber;
use proq_store::operations::operation_entry::StepStatus;

use super::journaled_operation::step::effects::SummarizedSteps;
use super::journaled_operation::step::{BoxedStep, MovedBranch, OperationEntry};
use crate::errors::Error;
use crate::errors::undo_error::UndoError;
use crate::project::Project;

/// An operation in the log.
#[derive(Debug, Clone)]
pub struct LoggedOperation {
    /// Number of the operation.
    pub number: OperationNumber,
    /// Journal entry with the operation's steps.
    pub entry: OperationEntry,
    /// Whether the operation was undone and not redone since.
    pub is_undone: bool,
}

/// The operation log, oldest first.
#[derive(Debug, Clone, Default)]
pub struct OpLog {
    /// Every operation that can be read.
    pub operations: Vec<LoggedOperation>,
    /// For each operation that was undone and redone, the number of the redo whose steps are now in effect.
    redo_by_operation: BTreeMap<OperationNumber, OperationNumber>,
}

impl OpLog {
    /// Reads the log. An operation that cannot be read is named in a warning and left out.
    pub fn read(project: &Project) -> OpLog {
        let layout = project.store.layout();
        let mut log = OpLog::default();
        for number in layout.operation_numbers() {
            match OperationEntry::read(&layout.operation(number)) {
                Ok(Some(entry)) => log.add(number, entry),
                Ok(None) => {}
                Err(e) => project.listener.warn(format!("operation {number}: {e}")),
            }
        }
        log
    }

    /// Adds an operation, newer than all others, and updates which of them are undone.
    fn add(&mut self, number: OperationNumber, entry: OperationEntry) {
        let undone_numbers = entry.header.undoes.clone();
        if let Some(undo) = entry.header.reverted_undo {
            for n in self.find(undo).map(|l| l.entry.header.undoes.clone()).unwrap_or_default() {
                self.redo_by_operation.insert(n, number);
                self.set_undone(n, false);
            }
            self.set_undone(undo, true);
        }
        for n in undone_numbers {
            self.set_undone(n, true);
        }
        self.operations.push(LoggedOperation { number, entry, is_undone: false });
    }

    /// Sets whether the operation with this number is undone; ignored when the log does not have it.
    fn set_undone(&mut self, number: OperationNumber, undone: bool) {
        if let Some(logged) = self.operations.iter_mut().find(|l| l.number == number) {
            logged.is_undone = undone;
        }
    }

    /// Returns the operation with this number.
    pub fn find(&self, number: OperationNumber) -> Option<&LoggedOperation> {
        self.operations.iter().find(|l| l.number == number)
    }

    /// Lists the user's operations that are in effect, newest first. Undo and redo are not listed: they only
    /// switch between states.
    pub(crate) fn active_operations(&self) -> impl Iterator<Item = &LoggedOperation> {
        self.operations.iter().rev().filter(|l| !l.is_undone && l.is_original())
    }

    /// Returns the entry whose steps must be inverted to undo an operation: its own, or that of the redo that
    /// repeated it.
    pub(crate) fn effective_entry(&self, number: OperationNumber) -> Option<&OperationEntry> {
        self.find(self.effective_number(number)).map(|l| &l.entry)
    }

    /// Returns the number of the redo that repeated an operation, or the operation's own.
    fn effective_number(&self, number: OperationNumber) -> OperationNumber {
        self.redo_by_operation.get(&number).copied().unwrap_or(number)
    }

    /// Returns the entries whose steps must be inverted to undo operations, in the given order. Operations
    /// that one redo repeated count once.
    ///
    /// # Errors
    /// [`UndoError::NoOperation`].
    pub(crate) fn effective_entries(
        &self,
        numbers: &[OperationNumber],
    ) -> Result<Vec<(OperationNumber, &OperationEntry)>, Error> {
        let mut known = BTreeSet::new();
        let distinct = numbers.iter().filter(|number| known.insert(self.effective_number(**number)));
        distinct
            .map(|n| Ok((*n, self.effective_entry(*n).ok_or(UndoError::NoOperation { number: *n })?)))
            .collect()
    }

    /// Returns the last operation in effect and those before it that are undone together with it: the same
    /// command performed them, or one redo repeated them.
    pub(crate) fn last_command_numbers(&self) -> Vec<OperationNumber> {
        let Some(last) = self.active_operations().next() else { return Vec::new() };
        let together = last.entry.header.command_group.as_ref();
        let belongs_to_last = |l: &LoggedOperation| {
            let same_command = together.is_some() && l.entry.header.command_group.as_ref() == together;
            same_command || self.effective_number(l.number) == self.effective_number(last.number)
        };
        self.active_operations().take_while(|l| belongs_to_last(l)).map(|l| l.number).collect()
    }

    /// Returns the undo that can be redone: the last one, as long as no new operation followed.
    pub(crate) fn redoable_undo(&self) -> Option<&LoggedOperation> {
        for logged in self.operations.iter().rev() {
            if logged.is_original() {
                return None;
            }
            if !logged.entry.header.undoes.is_empty() && !logged.is_undone {
                return Some(logged);
            }
        }
        None
    }
}

impl LoggedOperation {
    /// Returns whether the operation is neither an undo nor a redo.
    fn is_original(&self) -> bool {
        self.entry.header.undoes.is_empty() && self.entry.header.reverted_undo.is_none()
    }
}

/// Returns the operation with the number that the user gave.
///
/// # Errors
/// [`UndoError::NoOperation`].
pub fn require_operation(log: &OpLog, number: OperationNumber) -> Result<&LoggedOperation, Error> {
    Ok(log.find(number).ok_or(UndoError::NoOperation { number })?)
}

/// Summarizes the effects of an operation in a few words.
pub fn summarize_entry(entry: &OperationEntry, prefix: &str) -> String {
    describe_steps(entry.applied_steps(), prefix).unwrap_or_else(|| "records only".to_owned())
}

/// Describes, in a few words, the effects of steps that a user notices; none if no step has such an effect.
pub(crate) fn describe_steps<'s>(steps: impl Iterator<Item = &'s BoxedStep>, prefix: &str) -> Option<String> {
    let steps: Vec<&BoxedStep> = steps.collect();
    SummarizedSteps { prefix, steps: &steps }.describe()
}

/// Returns the number of the last operation, or of the one before it when the last is still running; 0 for
/// none.
pub(crate) fn last_finished_operation(store: &Store) -> OperationNumber {
    let layout = store.layout();
    let last = layout.operation_numbers().last().copied().unwrap_or_default();
    let is_open = matches!(
        OperationEntry::read(&layout.operation(last)),
        Ok(Some(OperationEntry { end_and_recovered: None, .. }))
    );
    if is_open { last.previous() } else { last }
}

/// Effect of operations on one branch.
#[derive(Debug, Clone, Default)]
pub(crate) struct BranchMoves {
    /// Commits that the operations moved the branch away from.
    pub old_tips: BTreeSet<CommitId>,
    /// Commit where the last of them left the branch; none where it removed the branch.
    pub new_tip: Option<CommitId>,
    /// Whether one of their steps on the branch is pending.
    pub is_pending: bool,
}

/// Returns the branches that operations after number `last` created, moved or removed.
pub(crate) fn branches_moved_since(store: &Store, last: OperationNumber) -> BTreeMap<String, BranchMoves> {
    let layout = store.layout();
    let since = layout.operation_numbers().into_iter().filter(|number| *number > last);
    let entries = since.filter_map(|number| OperationEntry::read(&layout.operation(number)).ok().flatten());
    let mut moves_by_branch: BTreeMap<String, BranchMoves> = BTreeMap::new();
    for planned in entries.flat_map(|entry| entry.steps) {
        let Some(MovedBranch { name, old, new }) = planned.step.moved_branch() else { continue };
        if planned.status == StepStatus::Undone {
            continue;
        }
        let moves = moves_by_branch.entry(name.to_owned()).or_default();
        moves.old_tips.extend(old);
        moves.new_tip = new;
        moves.is_pending |= planned.status == StepStatus::Pending;
    }
    moves_by_branch
}

/// Returns the worktrees in which operations after number `last` parked or restored changes, or which they
/// moved away, and the number of the last finished operation.
pub(crate) fn worktrees_parked_since(
    store: &Store,
    last: OperationNumber,
) -> (BTreeSet<PathBuf>, OperationNumber) {
    let layout = store.layout();
    let (mut worktrees, mut last_finished) = (BTreeSet::new(), last);
    let mut all_finished = true;
    for number in layout.operation_numbers().into_iter().filter(|number| *number > last) {
        let Ok(Some(entry)) = OperationEntry::read(&layout.operation(number)) else { continue };
        all_finished &= entry.end_and_recovered.is_some();
        if all_finished {
            last_finished = number;
        }
        worktrees.extend(entry.steps.iter().filter_map(|planned| {
            let moved_from = || planned.step.moved_path().map(|path| path.from);
            planned.step.parked_worktree().or_else(moved_from).map(Path::to_owned)
        }));
    }
    (worktrees, last_finished)
}
