//! Owns the operation log as people read it: what each operation did, which of them still stand, what can be undone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Error, Project, UndoError};
use crate::git::{Head, Oid, RefMove};
use crate::store::records::Step;
use crate::store::{Entry, Status};

/// An operation of the log.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    /// Its number.
    pub(crate) number: u64,
    /// What it did.
    pub(crate) entry: Entry,
    /// Whether what it did was taken back since.
    pub(crate) undone: bool,
}

/// The operation log, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpLog {
    /// Every operation that can be read.
    pub(crate) all: Vec<Logged>,
    /// The operation whose steps are what a number last stood for: it was undone and done again by that one.
    performer: BTreeMap<u64, u64>,
}

impl OpLog {
    /// Reads the log. One that cannot be read is named in a warning and left out.
    pub(crate) fn read(project: &Project) -> OpLog {
        let layout = project.store.layout();
        let mut log = OpLog::default();
        for number in layout.operation_numbers() {
            match Entry::read(&layout.operation(number)) {
                Ok(Some(entry)) => log.add(number, entry),
                Ok(None) => {}
                Err(e) => project.listener.warn(format!("operation {number}: {e}")),
            }
        }
        log
    }

    fn add(&mut self, number: u64, entry: Entry) {
        let undone = entry.header.undoes.clone();
        if let Some(undo) = entry.header.redoes {
            for n in self.find(undo).map(|l| l.entry.header.undoes.clone()).unwrap_or_default() {
                self.performer.insert(n, number);
                self.mark(n, false);
            }
            self.mark(undo, true);
        }
        for n in undone {
            self.mark(n, true);
        }
        self.all.push(Logged { number, entry, undone: false });
    }

    fn mark(&mut self, number: u64, undone: bool) {
        if let Some(logged) = self.all.iter_mut().find(|l| l.number == number) {
            logged.undone = undone;
        }
    }

    /// An operation by its number.
    pub(crate) fn find(&self, number: u64) -> Option<&Logged> {
        self.all.iter().find(|l| l.number == number)
    }

    /// Operations of a person's that stand, newest first. Undo and redo are ways between them.
    pub(crate) fn standing(&self) -> impl Iterator<Item = &Logged> {
        self.all.iter().rev().filter(|l| !l.undone && l.is_original())
    }

    /// What has to be inverted to take an operation back: its own steps, or those that did it again.
    pub(crate) fn steps_of(&self, number: u64) -> Option<&Entry> {
        self.find(self.performer_of(number)).map(|l| &l.entry)
    }

    fn performer_of(&self, number: u64) -> u64 {
        self.performer.get(&number).copied().unwrap_or(number)
    }

    /// What has to be inverted to take operations back, in their order. Those that one redo did again count once.
    ///
    /// # Errors
    /// [`UndoError::NoOperation`].
    pub(super) fn steps_of_all(&self, numbers: &[u64]) -> Result<Vec<(u64, &Entry)>, Error> {
        let mut known = BTreeSet::new();
        let once = numbers.iter().filter(|number| known.insert(self.performer_of(**number)));
        once.map(|n| Ok((*n, self.steps_of(*n).ok_or(UndoError::NoOperation { number: *n })?))).collect()
    }

    /// The last operation that stands, and those before it that are taken back together with it: the same command made them, or one
    /// redo did them again.
    pub(super) fn last_with_its_command(&self) -> Vec<u64> {
        let Some(last) = self.standing().next() else { return Vec::new() };
        let together = last.entry.header.together.as_ref();
        let is_part = |l: &Logged| {
            let same_command = together.is_some() && l.entry.header.together.as_ref() == together;
            same_command || self.performer_of(l.number) == self.performer_of(last.number)
        };
        self.standing().take_while(|l| is_part(l)).map(|l| l.number).collect()
    }

    /// The undo that can be taken back: the last one, as long as nothing new was done since.
    pub(crate) fn redoable(&self) -> Option<&Logged> {
        for logged in self.all.iter().rev() {
            if logged.is_original() {
                return None;
            }
            if !logged.entry.header.undoes.is_empty() && !logged.undone {
                return Some(logged);
            }
        }
        None
    }
}

impl Logged {
    fn is_original(&self) -> bool {
        self.entry.header.undoes.is_empty() && self.entry.header.redoes.is_none()
    }
}

/// An operation by what a person typed.
pub(crate) fn require(log: &OpLog, number: u64) -> Result<&Logged, Error> {
    Ok(log.find(number).ok_or(UndoError::NoOperation { number })?)
}

/// What an operation did, in a few words.
pub(crate) fn summary(entry: &Entry, prefix: &str) -> String {
    in_words(entry.standing(), prefix).unwrap_or_else(|| "records only".to_owned())
}

/// What steps do that a person would notice, in a few words; none when that is nothing.
pub(super) fn in_words<'s>(steps: impl Iterator<Item = &'s Step>, prefix: &str) -> Option<String> {
    let is_own = |branch: &str| branch.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'));
    let mut made = Vec::new();
    let mut gone = Vec::new();
    let mut back = Vec::new();
    let mut rest = Vec::new();
    // What a person sees of a lane that was brought back to where it had been, when nothing else happened.
    let mut quiet = Vec::new();
    let (mut laid_out, mut closed, mut taken) = (None, None, false);
    for step in steps {
        taken = taken || matches!(moved_branch(step), Some((branch, Some(_), Some(_))) if is_own(branch));
        match step {
            Step::Worktree { lane, .. } => made.push(lane.clone()),
            Step::Resolve { lane, .. } => laid_out = Some(lane.clone()),
            Step::File { path, new: None, .. } if path.ends_with("resolve.toml") => {
                closed = path.parent().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
            }
            Step::Move { from, to } => {
                gone.extend(lane_moved((from, "proq/lanes"), (to, "proq/history")));
                back.extend(lane_moved((to, "proq/lanes"), (from, "proq/history")));
                quiet.extend(is_given(from).then(|| "files given to a lane".to_owned()));
            }
            Step::Tree { mv: RefMove::Switch { from, to }, .. } => {
                rest.push(switched(from, to, prefix));
            }
            Step::Restore { .. } => rest.push("changes back".to_owned()),
            Step::Clear { .. } => quiet.push("changes set aside".to_owned()),
            step => {
                if let Some((branch, moved)) = branch_in_words(step) {
                    if is_own(branch) { quiet.push(moved) } else { rest.push(moved) }
                }
            }
        }
    }
    rest.extend(match (laid_out, closed, taken) {
        (Some(lane), ..) => Some(format!("conflict of {lane} laid out")),
        (_, Some(lane), true) => Some(format!("conflict of {lane} resolved")),
        (_, Some(lane), false) => Some(format!("resolving of {lane} given up")),
        _ => None,
    });
    let lanes = |what: &str, names: Vec<String>| {
        let many = if names.len() == 1 { "lane" } else { "lanes" };
        (!names.is_empty()).then(|| format!("{many} {} {what}", names.join(", ")))
    };
    let mut parts = rest;
    parts.extend(lanes("made", made));
    parts.extend(lanes("removed", gone));
    parts.extend(lanes("back", back));
    if parts.is_empty() {
        parts = quiet;
    }
    parts.dedup();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The branch that a step moves or removes, and what becomes of it.
fn branch_in_words(step: &Step) -> Option<(&str, String)> {
    match moved_branch(step)? {
        (branch, Some(old), Some(new)) => {
            Some((branch, format!("{branch} {} -> {}", old.short(), new.short())))
        }
        (branch, Some(_), None) => Some((branch, format!("branch {branch} removed"))),
        (_, None, _) => None,
    }
}

/// The lane whose records these are, where they lie in these folders: those that it has, and those that it had.
fn lane_moved(here: (&Path, &str), past: (&Path, &str)) -> Option<String> {
    let below = |(path, folder): (&Path, &str)| path.parent().is_some_and(|parent| parent.ends_with(folder));
    let name = here.0.file_name().filter(|_| below(here) && below(past))?;
    Some(name.to_string_lossy().split('@').next().unwrap_or_default().to_owned())
}

/// Whether this is where files lie that a lane is about to be given once more.
fn is_given(from: &Path) -> bool {
    let parts: Vec<_> = from.iter().collect();
    parts.windows(4).any(|part| (part[0] == "trash") && (part[2] == "worktree") && (part[3] == "new"))
}

fn switched(from: &Head, to: &Head, prefix: &str) -> String {
    let lane = |head: &Head| match head {
        Head::Branch(name) => {
            let lane = name.strip_prefix(prefix)?.strip_prefix('/')?.strip_suffix("-preview")?;
            Some(lane.to_owned())
        }
        Head::Detached(_) => None,
    };
    match (lane(from), lane(to)) {
        (_, Some(lane)) => format!("preview of {lane}"),
        (Some(_), None) => format!("back on {to}"),
        (None, None) => format!("{from} -> {to}"),
    }
}

/// The branch that a step moves, as a plain ref or with a worktree, and where from and to.
pub(super) fn moved_branch(step: &Step) -> Option<(&str, Option<Oid>, Option<Oid>)> {
    match step {
        Step::Ref { name, old, new } => Some((name.strip_prefix("refs/heads/")?, *old, *new)),
        Step::Tree { from, to, mv: RefMove::Branch(branch), .. } | Step::Worked { branch, from, to, .. } => {
            Some((branch, Some(*from), Some(*to)))
        }
        _ => None,
    }
}

/// The number of the last operation that has ended, or of the one before an operation that is under way; 0 for none.
pub(crate) fn last_ended(project: &Project) -> u64 {
    let layout = project.store.layout();
    let last = layout.operation_numbers().last().copied().unwrap_or(0);
    let is_open = matches!(Entry::read(&layout.operation(last)), Ok(Some(Entry { end: None, .. })));
    if is_open { last.saturating_sub(1) } else { last }
}

/// How operations moved a branch.
#[derive(Debug, Clone, Default)]
pub(crate) struct BranchMoves {
    /// What they moved it away from.
    pub(crate) from: BTreeSet<Oid>,
    /// Where the last of them left it; none where that removed it.
    pub(crate) to: Option<Oid>,
    /// Whether one of them is under way.
    pub(crate) is_open: bool,
}

/// The branches that operations after number `last` made, moved or removed.
pub(crate) fn moved_since(project: &Project, last: u64) -> BTreeMap<String, BranchMoves> {
    let layout = project.store.layout();
    let since = layout.operation_numbers().into_iter().filter(|number| *number > last);
    let entries = since.filter_map(|number| Entry::read(&layout.operation(number)).ok().flatten());
    let mut all: BTreeMap<String, BranchMoves> = BTreeMap::new();
    for planned in entries.flat_map(|entry| entry.steps) {
        let Some((branch, old, new)) = moved_branch(&planned.step) else { continue };
        if planned.status == Status::Back {
            continue;
        }
        let moves = all.entry(branch.to_owned()).or_default();
        moves.from.extend(old);
        moves.to = new;
        moves.is_open |= planned.status == Status::Open;
    }
    all
}

/// The worktrees in which operations after number `last` set changes aside or brought changes back, or which they moved away, and the
/// number of the last operation that has ended.
pub(crate) fn set_aside_since(project: &Project, last: u64) -> (BTreeSet<PathBuf>, u64) {
    let layout = project.store.layout();
    let (mut worktrees, mut ended) = (BTreeSet::new(), last);
    let mut is_whole = true;
    for number in layout.operation_numbers().into_iter().filter(|number| *number > last) {
        let Ok(Some(entry)) = Entry::read(&layout.operation(number)) else { continue };
        is_whole &= entry.end.is_some();
        if is_whole {
            ended = number;
        }
        worktrees.extend(entry.steps.into_iter().filter_map(|planned| match planned.step {
            Step::Clear { dir, .. } | Step::Restore { dir, .. } => Some(dir),
            Step::Move { from, .. } => Some(from),
            _ => None,
        }));
    }
    (worktrees, ended)
}
