//! Owns the model's own operation log, and what taking an operation back must bring.

use std::collections::{BTreeMap, BTreeSet};

use super::expect::{Forecast, Fork};
use super::model::{Lane, Model, Open};
use super::parts::{Snap, Tree, differing, is_ignored};
use super::step::MAIN;

/// What an operation was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Original,
    /// It took this one back.
    Undo(usize),
    /// It took this undo back.
    Redo(usize),
}

#[derive(Debug, Clone)]
struct Logged {
    kind: Kind,
    undone: bool,
    /// The lane that it made.
    made: Option<String>,
    before: Model,
    after: Model,
}

/// Everything that git-proq logged since the history began.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    all: Vec<Logged>,
    /// By which operation another one was last done.
    performer: BTreeMap<usize, usize>,
}

impl Log {
    /// Notes an operation.
    pub(super) fn add(&mut self, args: &[&str], before: Model, after: Model) {
        let number = self.all.len();
        let kind = match (args, self.last(), self.redoable()) {
            (["undo", ..], Some(n), _) => Kind::Undo(n),
            (["op", "redo"], _, Some(n)) => Kind::Redo(n),
            _ => Kind::Original,
        };
        match kind {
            Kind::Undo(n) => self.all[n].undone = true,
            Kind::Redo(undo) => {
                self.all[undo].undone = true;
                if let Kind::Undo(n) = self.all[undo].kind {
                    self.all[n].undone = false;
                    self.performer.insert(n, number);
                }
            }
            Kind::Original => {}
        }
        let made = match (kind, args) {
            (Kind::Original, ["spawn", .., lane]) => Some((*lane).to_owned()),
            _ => None,
        };
        self.all.push(Logged { kind, undone: false, made, before, after });
    }

    fn last(&self) -> Option<usize> {
        self.all.iter().rposition(|l| l.kind == Kind::Original && !l.undone)
    }

    fn redoable(&self) -> Option<usize> {
        let since = self.all.iter().rposition(|l| l.kind == Kind::Original).map_or(0, |n| n + 1);
        let is_undo = |l: &Logged| matches!(l.kind, Kind::Undo(_)) && !l.undone;
        self.all[since..].iter().rposition(is_undo).map(|n| n + since)
    }

    fn target(&self) -> Option<usize> {
        self.last().map(|n| self.performer.get(&n).copied().unwrap_or(n))
    }

    /// The lane whose making an undo would take back, when things have changed since.
    pub(super) fn made(&self, now: &Model) -> Option<&str> {
        let op = self.all.get(self.target()?)?;
        op.made.as_deref().filter(|_| *now != op.after)
    }

    /// `git proq undo`.
    pub(super) fn undo(&self, now: &Model) -> Forecast {
        self.back(now, self.target())
    }

    /// `git proq op redo`.
    pub(super) fn redo(&self, now: &Model) -> Forecast {
        self.back(now, self.redoable())
    }

    fn back(&self, now: &Model, which: Option<usize>) -> Forecast {
        let Some(op) = which.and_then(|n| self.all.get(n)) else { return Forecast::refused() };
        if *now == op.after {
            let model = op.before.clone();
            return Forecast::done(Fork { model, blind: BTreeSet::new(), may_refuse: false });
        }
        match revert(now, &op.after, &op.before) {
            Some(then) => Forecast::perhaps(then),
            None => Forecast::refused(),
        }
    }
}

/// One value with a change taken back; none when it has changed otherwise since.
fn three<T: PartialEq + Clone>(now: &T, after: &T, before: &T) -> Option<T> {
    if now == after {
        Some(before.clone())
    } else if before == after || now == before {
        Some(now.clone())
    } else {
        None
    }
}

fn three_maps<T: PartialEq + Clone>(
    now: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
    before: &BTreeMap<String, T>,
) -> Option<BTreeMap<String, T>> {
    let mut out = BTreeMap::new();
    for key in now.keys().chain(after.keys()).chain(before.keys()) {
        let value = three(&now.get(key), &after.get(key), &before.get(key))?;
        if let Some(value) = value {
            out.insert(key.clone(), value.clone());
        }
    }
    Some(out)
}

/// The moment with what led from `before` to `after` taken back, where things have changed since. Where a worktree was
/// changed both by the operation and since, its files are git-proq's to decide.
fn revert(now: &Model, after: &Model, before: &Model) -> Option<Fork> {
    let mut blind = BTreeSet::new();
    let mut trees = BTreeMap::new();
    for name in now.trees.keys().chain(after.trees.keys()).chain(before.trees.keys()) {
        match three_trees(now.trees.get(name), after.trees.get(name), before.trees.get(name)) {
            Ok(Some(tree)) => drop(trees.insert(name.clone(), tree)),
            Ok(None) => {}
            Err(Unclear) => {
                blind.insert(name.clone());
                let head = match (now.trees.get(name), after.trees.get(name), before.trees.get(name)) {
                    (Some(now), Some(after), Some(before)) => three(&now.head, &after.head, &before.head)?,
                    (.., before) => before?.head.clone(),
                };
                trees.insert(name.clone(), Tree { head, ..now.trees.get(name).cloned().unwrap_or_default() });
            }
        }
    }
    let mut model = Model {
        trees,
        refs: three_maps(&now.refs, &after.refs, &before.refs)?,
        lanes: three_lanes(now, after, before)?,
        open: three_previews(now, after, before).ok()?,
    };
    if waits_unsure(now) && now.open != model.open {
        blind.insert(MAIN.to_owned());
    }
    for (name, tree) in &now.trees {
        let came = after.trees.get(name).is_none_or(|t| t.head != tree.head);
        if came && now.refs.get(&tree.head) != model.refs.get(&tree.head) {
            // Somebody came to a branch that goes back: its checkout goes along, or is in the way.
            blind.insert(name.clone());
        }
    }
    let main = |model: &Model| model.trees.get(MAIN).cloned();
    // A commit of what is staged changes neither files nor index.
    let has_moved = main(now) != main(after) || now.commit_of(MAIN) != after.commit_of(MAIN);
    if has_moved && (main(before) != main(after) || before.open != after.open) {
        // What was changed since may have gone along into what is set aside again.
        blind.insert(MAIN.to_owned());
        let unsure = |snap: &mut Snap| snap.unsure = true;
        model.open.iter_mut().filter_map(|open| open.waiting.as_mut()).for_each(unsure);
        model.lanes.values_mut().flat_map(|lane| &mut lane.edits).for_each(unsure);
    }
    Some(Fork { model, blind, may_refuse: true })
}

/// Whether nobody but git-proq knows what waits.
fn waits_unsure(now: &Model) -> bool {
    now.open.as_ref().and_then(|open| open.waiting.as_ref()).is_some_and(|snap| snap.unsure)
}

/// The open preview with a change taken back. What waits may have taken in what was changed since.
fn three_previews(now: &Model, after: &Model, before: &Model) -> Result<Option<Open>, Unclear> {
    let rest = |open: &Option<Open>| open.clone().map(|open| Open { waiting: None, ..open });
    if waits_unsure(now) && rest(&now.open) == rest(&after.open) {
        return Ok(before.open.clone());
    }
    three(&now.open, &after.open, &before.open).ok_or(Unclear)
}

/// The same was changed by an operation and since.
struct Unclear;

/// A worktree with a change taken back, path by path.
fn three_trees(
    now: Option<&Tree>,
    after: Option<&Tree>,
    before: Option<&Tree>,
) -> Result<Option<Tree>, Unclear> {
    let (Some(now), Some(after), Some(before)) = (now, after, before) else {
        let same = match (now, after) {
            // A worktree that goes takes ignored files along; nothing else may have come to it.
            (Some(now), Some(after)) => {
                let changed = differing(&now.files, &after.files);
                now.head == after.head && now.index == after.index && changed.iter().all(|p| is_ignored(p))
            }
            (now, after) => now == after,
        };
        if same {
            return Ok(before.cloned());
        }
        return three(&now, &after, &before).map(Option::<&Tree>::cloned).ok_or(Unclear);
    };
    Ok(Some(Tree {
        head: three(&now.head, &after.head, &before.head).ok_or(Unclear)?,
        files: three_maps(&now.files, &after.files, &before.files).ok_or(Unclear)?,
        index: three_maps(&now.index, &after.index, &before.index).ok_or(Unclear)?,
    }))
}

fn three_lanes(now: &Model, after: &Model, before: &Model) -> Option<BTreeMap<String, Lane>> {
    let mut out = BTreeMap::new();
    for name in now.lanes.keys().chain(after.lanes.keys()).chain(before.lanes.keys()) {
        let of = |model: &Model| model.lanes.get(name).cloned();
        let (now, after, before) = (of(now), of(after), of(before));
        let lane = match (&now, &after, &before) {
            (Some(now), Some(after), Some(before)) => Some(Lane {
                state: three(&now.state, &after.state, &before.state)?,
                base: now.base.clone(),
                start: now.start.clone(),
                landed: three(&now.landed, &after.landed, &before.landed)?,
                edits: three(&now.edits, &after.edits, &before.edits)?,
                conflict: three(&now.conflict, &after.conflict, &before.conflict)?,
            }),
            _ => three(&now, &after, &before)?,
        };
        if let Some(lane) = lane {
            out.insert(name.clone(), lane);
        }
    }
    Some(out)
}
