//! The model's operation log, and the expected results of undo and redo.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Lane, Model, OpenPreview};
use super::oracle::{Expectation, ExpectedState};
use super::step::MAIN;
use super::worktree::{Snapshot, Worktree, differing_paths, is_ignored};

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperationKind {
    Original,
    /// Undo of the operation with this number.
    Undo(usize),
    /// Redo of the undo with this number.
    Redo(usize),
}

#[derive(Debug, Clone)]
struct LoggedOperation {
    kind: OperationKind,
    undone: bool,
    /// Lane that the operation spawned.
    spawned_lane: Option<String>,
    before: Model,
    after: Model,
}

/// Operations that git-proq logged since the history started.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    operations: Vec<LoggedOperation>,
    /// For each operation, the operation that last performed it.
    performed_by: BTreeMap<usize, usize>,
}

impl Log {
    /// Adds an operation.
    pub(super) fn record(&mut self, args: &[&str], before: Model, after: Model) {
        let number = self.operations.len();
        let kind = match (args, self.last_undoable(), self.last_redoable()) {
            (["undo", ..], Some(n), _) => OperationKind::Undo(n),
            (["op", "redo"], _, Some(n)) => OperationKind::Redo(n),
            _ => OperationKind::Original,
        };
        match kind {
            OperationKind::Undo(n) => self.operations[n].undone = true,
            OperationKind::Redo(undo) => {
                self.operations[undo].undone = true;
                if let OperationKind::Undo(n) = self.operations[undo].kind {
                    self.operations[n].undone = false;
                    self.performed_by.insert(n, number);
                }
            }
            OperationKind::Original => {}
        }
        let spawned_lane = match (kind, args) {
            (OperationKind::Original, ["spawn", .., lane]) => Some((*lane).to_owned()),
            _ => None,
        };
        self.operations.push(LoggedOperation { kind, undone: false, spawned_lane, before, after });
    }

    fn last_undoable(&self) -> Option<usize> {
        self.operations.iter().rposition(|l| l.kind == OperationKind::Original && !l.undone)
    }

    fn last_redoable(&self) -> Option<usize> {
        let since =
            self.operations.iter().rposition(|l| l.kind == OperationKind::Original).map_or(0, |n| n + 1);
        let is_undo = |l: &LoggedOperation| matches!(l.kind, OperationKind::Undo(_)) && !l.undone;
        self.operations[since..].iter().rposition(is_undo).map(|n| n + since)
    }

    fn undo_target(&self) -> Option<usize> {
        self.last_undoable().map(|n| self.performed_by.get(&n).copied().unwrap_or(n))
    }

    /// Returns the lane whose spawn an undo would revert, if the state has changed since.
    pub(super) fn changed_spawned_lane(&self, now: &Model) -> Option<&str> {
        let op = self.operations.get(self.undo_target()?)?;
        op.spawned_lane.as_deref().filter(|_| *now != op.after)
    }

    /// Predicts `git proq undo`.
    pub(super) fn undo(&self, now: &Model) -> Expectation {
        self.revert_operation(now, self.undo_target())
    }

    /// Predicts `git proq redo`.
    pub(super) fn redo(&self, now: &Model) -> Expectation {
        self.revert_operation(now, self.last_redoable())
    }

    fn revert_operation(&self, now: &Model, which: Option<usize>) -> Expectation {
        let Some(op) = which.and_then(|n| self.operations.get(n)) else { return Expectation::refused() };
        if *now == op.after {
            let model = op.before.clone();
            return Expectation::done(ExpectedState {
                model,
                unchecked_worktrees: BTreeSet::new(),
                may_refuse: false,
            });
        }
        match revert_state(now, &op.after, &op.before) {
            Some(then) => Expectation::done_or_refused(then),
            None => Expectation::refused(),
        }
    }
}

/// Reverts the change of one value; none if the value has changed otherwise since.
fn revert_value<T: PartialEq + Clone>(now: &T, after: &T, before: &T) -> Option<T> {
    if now == after {
        Some(before.clone())
    } else if before == after || now == before {
        Some(now.clone())
    } else {
        None
    }
}

fn revert_map<T: PartialEq + Clone>(
    now: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
    before: &BTreeMap<String, T>,
) -> Option<BTreeMap<String, T>> {
    let mut out = BTreeMap::new();
    for key in now.keys().chain(after.keys()).chain(before.keys()) {
        let value = revert_value(&now.get(key), &after.get(key), &before.get(key))?;
        if let Some(value) = value {
            out.insert(key.clone(), value.clone());
        }
    }
    Some(out)
}

/// Reverts the change from `before` to `after` in a state that has changed since. If both the operation and
/// later changes touched a worktree, git-proq decides its files.
fn revert_state(now: &Model, after: &Model, before: &Model) -> Option<ExpectedState> {
    let mut blind = BTreeSet::new();
    let mut trees = BTreeMap::new();
    for name in now.trees.keys().chain(after.trees.keys()).chain(before.trees.keys()) {
        match revert_worktree(now.trees.get(name), after.trees.get(name), before.trees.get(name)) {
            Ok(Some(tree)) => drop(trees.insert(name.clone(), tree)),
            Ok(None) => {}
            Err(ChangedTwice) => {
                blind.insert(name.clone());
                let head = match (now.trees.get(name), after.trees.get(name), before.trees.get(name)) {
                    (Some(now), Some(after), Some(before)) => {
                        revert_value(&now.head, &after.head, &before.head)?
                    }
                    (.., before) => before?.head.clone(),
                };
                trees.insert(
                    name.clone(),
                    Worktree { head, ..now.trees.get(name).cloned().unwrap_or_default() },
                );
            }
        }
    }
    let mut model = Model {
        trees,
        refs: revert_map(&now.refs, &after.refs, &before.refs)?,
        lanes: revert_lanes(now, after, before)?,
        preview: revert_preview(now, after, before).ok()?,
    };
    if has_uncertain_parked(now) && now.preview != model.preview {
        blind.insert(MAIN.to_owned());
    }
    for (name, tree) in &now.trees {
        let moved_there = after.trees.get(name).is_none_or(|t| t.head != tree.head);
        if moved_there && now.refs.get(&tree.head) != model.refs.get(&tree.head) {
            // A worktree moved to a branch that is reverted: its checkout moves along or blocks the undo.
            blind.insert(name.clone());
        }
    }
    let main = |model: &Model| model.trees.get(MAIN).cloned();
    // A commit of staged changes alters neither files nor index.
    let has_moved = main(now) != main(after) || now.head_commit(MAIN) != after.head_commit(MAIN);
    if has_moved && (main(before) != main(after) || before.preview != after.preview) {
        // Later changes may have become part of what is parked again.
        blind.insert(MAIN.to_owned());
        let (now_main, after_main) = (now.main(), after.main());
        let mark_uncertain = |snap: &mut Snapshot| {
            snap.is_uncertain = true;
            // The only copy of an ignored file was the one in the checkout, which its owner has changed.
            snap.files.retain(|path, _| {
                !is_ignored(path) || now_main.files.get(path) == after_main.files.get(path)
            });
        };
        model.preview.iter_mut().filter_map(|open| open.parked.as_mut()).for_each(mark_uncertain);
        model.lanes.values_mut().flat_map(|lane| &mut lane.preview_edits).for_each(mark_uncertain);
    }
    Some(ExpectedState { model, unchecked_worktrees: blind, may_refuse: true })
}

/// Returns whether only git-proq knows what is parked.
fn has_uncertain_parked(now: &Model) -> bool {
    now.preview.as_ref().and_then(|open| open.parked.as_ref()).is_some_and(|snap| snap.is_uncertain)
}

/// Reverts the change of the open preview. Parked changes may include later changes.
fn revert_preview(now: &Model, after: &Model, before: &Model) -> Result<Option<OpenPreview>, ChangedTwice> {
    let without_parked =
        |open: &Option<OpenPreview>| open.clone().map(|open| OpenPreview { parked: None, ..open });
    if has_uncertain_parked(now) && without_parked(&now.preview) == without_parked(&after.preview) {
        return Ok(before.preview.clone());
    }
    revert_value(&now.preview, &after.preview, &before.preview).ok_or(ChangedTwice)
}

/// Error: an operation and a later change touched the same value.
struct ChangedTwice;

/// Reverts the changes of a worktree, path by path.
fn revert_worktree(
    now: Option<&Worktree>,
    after: Option<&Worktree>,
    before: Option<&Worktree>,
) -> Result<Option<Worktree>, ChangedTwice> {
    let (Some(now), Some(after), Some(before)) = (now, after, before) else {
        let same = match (now, after) {
            // Removing a worktree removes its ignored files too; nothing else may have been added.
            (Some(now), Some(after)) => {
                let changed = differing_paths(&now.files, &after.files);
                now.head == after.head && now.index == after.index && changed.iter().all(|p| is_ignored(p))
            }
            (now, after) => now == after,
        };
        if same {
            return Ok(before.cloned());
        }
        return revert_value(&now, &after, &before).map(Option::<&Worktree>::cloned).ok_or(ChangedTwice);
    };
    Ok(Some(Worktree {
        head: revert_value(&now.head, &after.head, &before.head).ok_or(ChangedTwice)?,
        files: revert_map(&now.files, &after.files, &before.files).ok_or(ChangedTwice)?,
        index: revert_map(&now.index, &after.index, &before.index).ok_or(ChangedTwice)?,
    }))
}

fn revert_lanes(now: &Model, after: &Model, before: &Model) -> Option<BTreeMap<String, Lane>> {
    let mut out = BTreeMap::new();
    for name in now.lanes.keys().chain(after.lanes.keys()).chain(before.lanes.keys()) {
        let lane_in = |model: &Model| model.lanes.get(name).cloned();
        let (now, after, before) = (lane_in(now), lane_in(after), lane_in(before));
        let lane = match (&now, &after, &before) {
            (Some(now), Some(after), Some(before)) => Some(Lane {
                state: revert_value(&now.state, &after.state, &before.state)?,
                base: now.base.clone(),
                fork_point: now.fork_point.clone(),
                landed: revert_value(&now.landed, &after.landed, &before.landed)?,
                preview_edits: revert_value(&now.preview_edits, &after.preview_edits, &before.preview_edits)?,
                conflict: revert_value(&now.conflict, &after.conflict, &before.conflict)?,
            }),
            _ => revert_value(&now, &after, &before)?,
        };
        if let Some(lane) = lane {
            out.insert(name.clone(), lane);
        }
    }
    Some(out)
}
