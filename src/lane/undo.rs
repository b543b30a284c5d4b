//! Owns taking operations of the log back, newest first, as one operation of its own: all of it, or nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::auto_merge;
use super::history::{self, OpLog, moved_branch};
use super::operation::{Operation, operate_as};
use super::{Error, Project, UndoError, Why, remove, steps};
use crate::git::{self, Head, Oid, RefMove, RepoPath, WorktreeList};
use crate::store::records::{AnyLane, LaneRecord, PreviewRecord, Step};
use crate::store::{Entry, Guard, Header, LockName, Record, new_id};

/// What is to be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The last operation that stands, or this one if it is that.
    Last(Option<u64>),
    /// Everything after this operation.
    After(u64),
    /// The last undo.
    Undo,
}

/// What will be, or was, taken back.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Undo {
    /// The operations, newest first.
    pub(crate) numbers: Vec<u64>,
    /// What was typed for the newest of them.
    pub(crate) command: String,
    /// Whether all of them were begun in this terminal session.
    pub(crate) own: bool,
    which: Which,
}

/// Finds out what would be taken back.
///
/// # Errors
/// [`UndoError::NothingToUndo`], [`UndoError::NotLast`], [`UndoError::NoOperation`].
pub(crate) fn plan(project: &Project, which: Which) -> Result<Undo, Error> {
    let log = OpLog::read(project);
    let numbers: Vec<u64> = match which {
        Which::Last(asked) => {
            let last = log.standing().next().map(|l| l.number);
            if let Some(asked) = asked {
                history::require(&log, asked)?;
                if last != Some(asked) {
                    return Err(UndoError::NotLast { asked, last }.into());
                }
            }
            last.into_iter().collect()
        }
        Which::After(number) => {
            if number > 0 {
                history::require(&log, number)?;
            }
            log.standing().map(|l| l.number).filter(|n| *n > number).collect()
        }
        Which::Undo => log.redoable().map(|l| l.number).into_iter().collect(),
    };
    let newest = numbers.first().and_then(|n| log.find(*n));
    let command = newest
        .map(|l| l.entry.header.command.clone())
        .ok_or(UndoError::NothingToUndo { redo: which == Which::Undo })?;
    let own = numbers.iter().filter_map(|n| log.find(*n)).all(|l| l.entry.header.is_of_this_session());
    Ok(Undo { numbers, command, own, which })
}

/// Takes the planned operations back. With `force` also where somebody built on what is taken back, which is kept under a
/// ref then; uncommitted changes that are in the way refuse it always.
///
/// # Errors
/// [`UndoError::CannotUndo`] with the reason; then nothing was changed.
pub(crate) fn undo(project: &Project, planned: &Undo, force: bool) -> Result<(), Error> {
    let log = OpLog::read(project);
    let mut header = Header::new(match planned.which {
        Which::Last(_) => "undo",
        Which::After(_) => "op restore",
        Which::Undo => "op redo",
    });
    match planned.which {
        Which::Undo => header.redoes = planned.numbers.first().copied(),
        _ => header.undoes.clone_from(&planned.numbers),
    }
    operate_as(project, header, |op| {
        let held = RefCell::new(BTreeMap::new());
        let done = planned.numbers.iter().try_for_each(|number| {
            let entry = log.steps_of(*number).ok_or(UndoError::NoOperation { number: *number })?;
            let back = TakeBack { op, entry, number: *number, force, held: &held };
            back.run()
                .and_then(|()| auto_merge::take_off(op, entry.standing()))
                .map_err(|e| Error::from(UndoError::CannotUndo { number: *number, source: Box::new(e) }))
        });
        held.into_inner().into_values().for_each(|lock| op.hold(lock));
        done
    })
}

/// The records that the planned operations wrote, each from `proq/` on.
pub(crate) fn records(project: &Project, planned: &Undo) -> Vec<PathBuf> {
    let log = OpLog::read(project);
    let steps = planned.numbers.iter().filter_map(|number| log.steps_of(*number)).flat_map(Entry::standing);
    let path = |step: &Step| match step {
        Step::File { path, .. } => Some(path.clone()),
        _ => None,
    };
    steps.filter_map(path).collect()
}

/// How many steps come before those that make lanes: the branch of the first one is the first of them.
fn before_making(steps: &[&Step]) -> usize {
    let made = steps.iter().position(|step| matches!(step, Step::Worktree { .. })).unwrap_or_default();
    let is_branch = |step: &&Step| matches!(moved_branch(step), Some((_, None, Some(_))));
    steps[..made].iter().rposition(is_branch).unwrap_or_default()
}

struct TakeBack<'a, 'p> {
    op: &'a Operation<'p>,
    entry: &'a Entry,
    number: u64,
    force: bool,
    /// The run locks of lanes: several operations may be about one.
    held: &'a RefCell<BTreeMap<String, Guard>>,
}

impl TakeBack<'_, '_> {
    fn run(&self) -> Result<(), Error> {
        let mut steps: Vec<&Step> = self.entry.standing().collect();
        let made = steps.iter().filter_map(|step| match step {
            Step::Worktree { lane, .. } => Some(lane),
            _ => None,
        });
        let made: Vec<&String> = made.collect();
        for lane in made.iter().rev() {
            // Whatever happened in it since is looked at as for any removal.
            self.remove_lane(lane)?;
        }
        if made.is_empty() {
            for name in self.lanes_that_move() {
                if !self.held.borrow().contains_key(&name) {
                    let lock = self.op.project.store.locks().take(&LockName::Run(name.clone()))?;
                    self.held.borrow_mut().insert(name, lock);
                }
            }
        } else {
            // What the making came after: an older lane of that name, which went for it.
            steps.truncate(before_making(&steps));
        }
        self.refuse_new_work()?;
        for step in steps.into_iter().rev() {
            match (step, moved_branch(step)) {
                (_, Some((branch, Some(old), Some(new)))) => self.move_back(branch, old, new)?,
                // They follow their branch.
                (Step::Tree { mv: RefMove::Nothing, .. }, _) => {}
                (Step::Tree { dir, mv: RefMove::Switch { from, .. }, .. }, _) => {
                    self.refuse_edits(dir)?;
                    // Somebody may have gone back there by hand.
                    if !self.is_on(dir, from)? {
                        steps::invert(self.op, step)?;
                    }
                }
                _ => steps::invert(self.op, step)?,
            }
        }
        Ok(())
    }

    /// The names of lanes whose records come back or go: neither a run nor the emptying of the trash may meet that.
    fn lanes_that_move(&self) -> BTreeSet<String> {
        let lanes = self.op.project.store.layout().lanes();
        let name = |path: &Path| {
            let lane = path.parent() == Some(&lanes);
            path.file_name().filter(|_| lane).map(|name| name.to_string_lossy().into_owned())
        };
        let trees = self.op.project.lanes().unwrap_or_default();
        // Files of a lane that stays.
        let within = |path: &Path| {
            let lane = trees.iter().find(|lane| path.starts_with(&lane.path) && *path != *lane.path);
            lane.map(|lane| lane.name.clone())
        };
        let of_step = |step: &Step| match step {
            Step::Move { from, to } => {
                name(from).or_else(|| name(to)).or_else(|| within(from)).or_else(|| within(to))
            }
            _ => None,
        };
        self.entry.standing().filter_map(of_step).collect()
    }

    fn is_on(&self, dir: &Path, head: &Head) -> Result<bool, Error> {
        let repo = &self.op.project.repo;
        let worktrees = WorktreeList::read(repo)?;
        let Some(worktree) = worktrees.at(dir) else { return Ok(false) };
        Ok(match head {
            Head::Branch(name) => worktree.branch.as_ref() == Some(name),
            Head::Detached(id) => worktree.branch.is_none() && worktree.head(repo)? == Some(*id),
        })
    }

    /// A lane that goes once more may hold what was not in it when it went before.
    fn refuse_new_work(&self) -> Result<(), Error> {
        let project = self.op.project;
        let goes = |lane: &LaneRecord, step: &Step| matches!(step, Step::Move { to, .. } if *to == lane.path);
        for lane in project.lanes()? {
            if !self.entry.standing().any(|step| goes(&lane, step)) || !lane.path.exists() {
                continue;
            }
            let paths = git::status(&project.repo, &lane.path, true)?.paths();
            if !paths.is_empty() && !self.is_kept(&lane.path)? {
                return Err(UndoError::Uncommitted { name: lane.name, paths }.into());
            }
        }
        Ok(())
    }

    /// Whether a snapshot that is there already holds everything uncommitted in a worktree.
    fn is_kept(&self, dir: &Path) -> Result<bool, Error> {
        let project = self.op.project;
        let Some(head) = project.repo.head_of(dir)? else { return Ok(false) };
        let kept = self.op.checkout(dir)?.describe(head, "uncommitted work", &[], |there, _| {
            let all = project.snap_ids()?;
            Ok(all.iter().filter_map(|id| project.snap(id).ok()).any(|snap| snap.snapshot.holds_what(&there)))
        })?;
        Ok(kept.unwrap_or(true))
    }

    /// Edits that were made since would go along to another branch and be mixed with what is there.
    fn refuse_edits(&self, dir: &Path) -> Result<(), Error> {
        let project = self.op.project;
        let spared = steps::spared(project, dir)?;
        let is_spared =
            |path: &RepoPath| spared.contains(path) || path.parents().any(|up| spared.contains(&up));
        let mut paths = git::status(&project.repo, dir, true)?.paths();
        paths.retain(|path| !is_spared(path));
        if paths.is_empty() {
            return Ok(());
        }
        Err(UndoError::Edits { dir: dir.to_owned(), paths }.into())
    }

    fn remove_lane(&self, name: &str) -> Result<(), Error> {
        let project = self.op.project;
        let path = project.store.layout().lane_record(name);
        if AnyLane::find(&path)?.is_none() {
            return Err(Error::Unknown { name: name.to_owned(), similar: None });
        }
        let open = PreviewRecord::find(&project.store.layout().preview())?;
        if open.is_some_and(|open| open.lane == name) {
            return Err(UndoError::Shown { name: name.to_owned() }.into());
        }
        // A later operation may have been about it, and its removal wants the lock for itself.
        drop(self.held.borrow_mut().remove(name));
        let (lane, lock) = project.hold_idle(name)?;
        drop(remove(self.op, &lane, lock, Why::Discard, self.force)?);
        Ok(())
    }

    /// Moves a branch back, with every worktree that is on it now, wherever it was when the branch moved.
    fn move_back(&self, branch: &str, old: Oid, new: Oid) -> Result<(), Error> {
        let repo = &self.op.project.repo;
        let Some(tip) = repo.branch_tip(branch)? else {
            return Err(Error::NoBranch { branch: branch.to_owned() });
        };
        if tip == old {
            return Ok(());
        }
        if !self.force {
            if tip != new {
                return Err(UndoError::BuiltOn { branch: branch.to_owned(), tip }.into());
            }
            if let Some(remote) = repo.remote_with(new)? {
                return Err(UndoError::Pushed { branch: branch.to_owned(), remote }.into());
            }
        }
        if !repo.is_ancestor(tip, new)? {
            // Somebody's own commits, not only a landing that can be redone.
            self.op.anchor(&format!("refs/proq/saved/{}-{}", branch.replace('/', "-"), new_id()), tip)?;
        }
        self.op.keep(new)?;
        self.op.set_why(format!("git-proq: operation {} undone", self.number));
        let worktrees = WorktreeList::read(repo)?;
        let on_it: Vec<PathBuf> = worktrees.on_branch(branch).map(|w| w.path.clone()).collect();
        let Some((first, others)) = on_it.split_first() else {
            let name = format!("refs/heads/{branch}");
            return self.op.perform(Step::Ref { name, old: Some(tip), new: Some(old) }).map(drop);
        };
        for dir in others {
            self.op.checkout(dir)?.require_free(tip, old)?;
        }
        self.op.transition(first, tip, old, RefMove::Branch(branch.to_owned()))?;
        for dir in others {
            self.op.transition(dir, tip, old, RefMove::Nothing)?;
        }
        Ok(())
    }
}
