//! Owns taking operations of the log back, newest first, as one operation of its own: all of it, or nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::alias::branch_behind;
use super::auto_merge;
use super::history::{self, OpLog, moved_branch};
use super::operation::{Operation, operate, operate_as};
use super::remove::remove_held;
use super::undo_ahead::Ahead;
use super::{Error, Evidence, Project, UndoError, Why, gather_evidence, recover, refuse, steps};
use crate::fault;
use crate::git::{self, Head, LocalState, Oid, RefMove, RepoPath, WorktreeList};
use crate::store::records::{AnyLane, LaneRecord, PreviewRecord, Step};
use crate::store::{Entry, Guard, Header, Record, new_id};

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
    plan_by(&OpLog::read(project), which)
}

fn plan_by(log: &OpLog, which: Which) -> Result<Undo, Error> {
    let numbers: Vec<u64> = match which {
        Which::Last(asked) => {
            let last = log.standing().next().map(|l| l.number);
            if let Some(asked) = asked {
                history::require(log, asked)?;
                if last != Some(asked) {
                    return Err(UndoError::NotLast { asked, last }.into());
                }
            }
            log.last_with_its_command()
        }
        Which::After(number) => {
            if number > 0 {
                history::require(log, number)?;
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

impl Undo {
    /// The command that takes exactly these operations back with force; none for a redo, which has no such way.
    pub(crate) fn forced(&self) -> Option<String> {
        match self.which {
            Which::Last(_) => self.numbers.first().map(|number| format!("git proq undo {number} --force")),
            Which::After(number) => Some(format!("git proq op restore {number} --force")),
            Which::Undo => None,
        }
    }

    /// Refuses where somebody else did something while this one was thought about, or was waited for.
    fn require_newest(&self, log: &OpLog) -> Result<(), Error> {
        if plan_by(log, self.which)?.numbers == self.numbers {
            return Ok(());
        }
        let asked = self.numbers.first().copied().unwrap_or_default();
        let last = log.standing().next().map(|last| last.number);
        Err(UndoError::NotLast { asked, last }.into())
    }

    /// Why one of the operations stays as it is, with the way on.
    fn refused(&self, number: u64, source: Error) -> Error {
        let (source, redo) = (Box::new(source), self.which == Which::Undo);
        UndoError::CannotUndo { number, redo, forced: self.forced(), source }.into()
    }
}

/// Refuses what [`undo`] would refuse, as far as that can be told without taking the newer operations back, and changes nothing.
///
/// # Errors
/// As those of [`undo`].
pub(crate) fn foresee(project: &Project, planned: &Undo, force: bool) -> Result<(), Error> {
    let log = OpLog::read(project);
    operate(project, "undo", |op| {
        let held = RefCell::new(BTreeMap::new());
        let mut ahead = Ahead::default();
        log.steps_of_all(&planned.numbers)?.into_iter().enumerate().try_for_each(|(at, (number, entry))| {
            let back = TakeBack { op, entry, number, force, held: &held };
            back.foresee(&mut ahead, at == 0).map_err(|e| planned.refused(number, e))
        })
    })
}

/// Takes the planned operations back. With `force` also where somebody built on what is taken back, which is kept under a
/// ref then; uncommitted changes that are in the way refuse it always.
///
/// # Errors
/// [`UndoError::CannotUndo`] with the reason; then nothing was changed.
pub(crate) fn undo(project: &Project, planned: &Undo, force: bool) -> Result<(), Error> {
    let mut header = Header::new(match planned.which {
        Which::Last(_) => "undo",
        Which::After(_) => "op restore",
        Which::Undo => "op redo",
    });
    match planned.which {
        Which::Undo => header.redoes = planned.numbers.first().copied(),
        _ => header.undoes.clone_from(&planned.numbers),
    }
    fault::point("undo.chosen");
    operate_as(project, header, |op| {
        hold_worktrees(op, &OpLog::read(project), &planned.numbers)?;
        let log = OpLog::read(project);
        planned.require_newest(&log)?;
        let held = RefCell::new(BTreeMap::new());
        let done = log.steps_of_all(&planned.numbers)?.into_iter().try_for_each(|(number, entry)| {
            let back = TakeBack { op, entry, number, force, held: &held };
            back.run()
                .and_then(|()| auto_merge::take_off(op, entry.standing()))
                .map_err(|e| planned.refused(number, e))
        });
        held.into_inner().into_values().for_each(|lock| op.hold(lock));
        done
    })
}

/// Holds the worktrees that operations changed until the end of this one: nothing lands on their branches meanwhile.
fn hold_worktrees(op: &Operation<'_>, log: &OpLog, numbers: &[u64]) -> Result<(), Error> {
    for (_, entry) in log.steps_of_all(numbers)? {
        for dir in entry.standing().filter_map(Step::worktree).filter(|dir| dir.join(".git").exists()) {
            op.checkout(dir)?;
        }
    }
    Ok(())
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
pub(super) fn before_making(steps: &[&Step]) -> usize {
    let made = steps.iter().position(|step| matches!(step, Step::Worktree { .. })).unwrap_or_default();
    let is_branch = |step: &&Step| matches!(moved_branch(step), Some((_, None, Some(_))));
    steps[..made].iter().rposition(is_branch).unwrap_or_default()
}

pub(super) struct TakeBack<'a, 'p> {
    pub(super) op: &'a Operation<'p>,
    pub(super) entry: &'a Entry,
    number: u64,
    pub(super) force: bool,
    /// The run locks of lanes: several operations may be about one.
    held: &'a RefCell<BTreeMap<String, Guard>>,
}

impl TakeBack<'_, '_> {
    /// The lanes that the operation made.
    pub(super) fn made(&self) -> Vec<&String> {
        let made = self.entry.standing().filter_map(|step| match step {
            Step::Worktree { lane, .. } => Some(lane),
            _ => None,
        });
        made.collect()
    }

    /// Holds the lanes whose records come back or go.
    pub(super) fn hold_lanes(&self) -> Result<(), Error> {
        for name in self.lanes_that_move() {
            if !self.held.borrow().contains_key(&name) {
                let lock = recover::take_run_lock(self.op.project, &name, None)?;
                self.held.borrow_mut().insert(name, lock);
            }
        }
        Ok(())
    }

    fn run(&self) -> Result<(), Error> {
        let mut steps: Vec<&Step> = self.entry.standing().collect();
        let made = self.made();
        for lane in made.iter().rev() {
            // Whatever happened in it since is looked at as for any removal.
            self.remove_lane(lane)?;
        }
        if made.is_empty() {
            self.hold_lanes()?;
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
                    // Held until the end: nothing lands on the branch meanwhile.
                    let _checkout = self.op.checkout(dir)?;
                    self.refuse_edits(dir)?;
                    self.refuse_moved(step)?;
                    self.refuse_closed_way(step)?;
                    self.refuse_gone(step, |branch| Ok(self.op.project.repo.branch_tip(branch)?))?;
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

    pub(super) fn is_on(&self, dir: &Path, head: &Head) -> Result<bool, Error> {
        Ok(self.op.project.repo.head_at(dir)?.as_ref() == Some(head))
    }

    /// A lane that goes once more may hold what was not in it when it went before.
    pub(super) fn refuse_new_work(&self) -> Result<(), Error> {
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
    pub(super) fn refuse_edits(&self, dir: &Path) -> Result<(), Error> {
        let project = self.op.project;
        let spared = steps::spared(project, dir)?;
        let is_spared =
            |path: &RepoPath| spared.contains(path) || path.parents().any(|up| spared.contains(&up));
        let mut dirt = git::status(&project.repo, dir, true)?;
        // What differs inside a submodule stays there, whatever is shown.
        dirt.entries.retain(|entry| !entry.is_inside_submodule() && !is_spared(&entry.path));
        let mut paths = dirt.paths();
        let checkout = self.op.checkout(dir)?;
        let hidden = checkout.hidden_changes()?;
        paths.extend(hidden.into_iter().filter(|path| !is_spared(path)));
        // The record of the preview may have been put back already; where HEAD is comes last.
        let worktrees = WorktreeList::read(&project.repo)?;
        let branch = worktrees.at(dir).and_then(|worktree| worktree.branch.as_deref());
        let in_preview = branch.is_some_and(|branch| project.lane_of_preview(branch).is_some());
        let is_restored = |step: &Step| matches!(step, Step::Restore { dir: of, .. } if of == dir);
        if paths.is_empty() && !in_preview && !self.entry.standing().any(is_restored) {
            // Nothing set them aside, and they are none of the preview's.
            let LocalState { assumed, skipped, .. } = checkout.flags(None)?;
            paths.extend(assumed.into_iter().chain(skipped));
        }
        if paths.is_empty() {
            return Ok(());
        }
        let remedy = git::Remedy::of(&project.repo, dir, &paths);
        let flagged = (!in_preview && remedy.is_flagged()).then_some(remedy);
        Err(UndoError::Edits { dir: dir.to_owned(), paths, in_preview, flagged }.into())
    }

    /// Refuses to take back a switch of HEAD when one of its branches has moved since. Files that are brought back to a commit which
    /// their branch has left would show what came since as deleted.
    pub(super) fn refuse_moved(&self, step: &Step) -> Result<(), Error> {
        let Step::Tree { dir, from: old, to: new, mv: RefMove::Switch { from, to }, .. } = step else {
            return Ok(());
        };
        if let Some((branch, tip)) = self.moved_from(from, *old)? {
            return Err(UndoError::HomeMoved { branch, tip }.into());
        }
        if self.is_on(dir, from)? {
            return Ok(());
        }
        if let Head::Branch(branch) = to
            && !self.is_on(dir, to)?
        {
            let gone = self.op.project.repo.branch_tip(branch)?.is_none().then_some(*new);
            return Err(UndoError::Elsewhere { dir: dir.clone(), branch: branch.clone(), gone }.into());
        }
        let Some((branch, tip)) = self.moved_from(to, *new)? else { return Ok(()) };
        let project = self.op.project;
        let preview_of = |head: &Head| match head {
            Head::Branch(name) => project.lane_of_preview(name).map(str::to_owned),
            Head::Detached(_) => None,
        };
        let instead = match (preview_of(to), preview_of(from)) {
            (Some(_), _) => Some("git proq preview --back".to_owned()),
            (None, Some(lane)) if project.store.layout().has_lane_record(&lane) => {
                Some(format!("git proq preview {lane}"))
            }
            (None, _) => None,
        };
        Err(UndoError::MovedOn { branch, tip, instead }.into())
    }

    /// Refuses to take back a switch of HEAD from a branch that is gone: HEAD would be on one without a commit. `tip_of` says where
    /// a branch is by then.
    pub(super) fn refuse_gone(
        &self,
        step: &Step,
        tip_of: impl FnOnce(&str) -> Result<Option<Oid>, Error>,
    ) -> Result<(), Error> {
        match step {
            Step::Tree { from: tip, mv: RefMove::Switch { from: Head::Branch(branch), .. }, .. }
                if tip_of(branch)?.is_none() =>
            {
                Err(UndoError::BranchGone { branch: branch.clone(), tip: *tip }.into())
            }
            _ => Ok(()),
        }
    }

    /// The branch that `head` names, and its tip, when that is not `commit`.
    fn moved_from(&self, head: &Head, commit: Oid) -> Result<Option<(String, Oid)>, Error> {
        let Head::Branch(branch) = head else { return Ok(None) };
        let tip = self.op.project.repo.branch_tip(branch)?;
        Ok(tip.filter(|tip| *tip != commit).map(|tip| (branch.clone(), tip)))
    }

    /// The lane that the operation made, idle, with its lock; or why it may not go.
    pub(super) fn hold_made(&self, name: &str) -> Result<(LaneRecord, Guard), Error> {
        let project = self.op.project;
        let path = project.store.layout().lane_record(name);
        if AnyLane::find(&path)?.is_none() {
            return Err(Error::Unknown { name: name.to_owned(), similar: None });
        }
        let open = PreviewRecord::find(&project.store.layout().preview())?;
        if open.is_some_and(|open| open.lane == name) {
            return Err(UndoError::Shown { name: name.to_owned() }.into());
        }
        // A later operation may have been about it: a lock of this process's own is in its way too.
        drop(self.held.borrow_mut().remove(name));
        project.hold_idle(name)
    }

    fn remove_lane(&self, name: &str) -> Result<(), Error> {
        let (lane, lock) = self.hold_made(name)?;
        self.held.borrow_mut().insert(name.to_owned(), lock);
        let mut found = gather_evidence(self.op.project, &lane, &WorktreeList::read(&self.op.project.repo)?)?;
        self.pass_over_known(&lane, &mut found)?;
        refuse(&lane, &found, self.force)?;
        remove_held(self.op, &lane, Why::Discard, true).map(drop)
    }

    /// Takes commits off the evidence that the lane was made with and that are on another branch too: they stay.
    pub(super) fn pass_over_known(&self, lane: &LaneRecord, found: &mut Evidence) -> Result<(), Error> {
        let branch = format!("refs/heads/{}", lane.place.branch);
        let made_at = self.entry.standing().find_map(|step| match step {
            Step::Ref { name, old: None, new } if *name == branch => *new,
            _ => None,
        });
        if let Some(tip) = found.tip
            && made_at == Some(tip)
            && self.op.project.repo.is_reached_by_others(tip, &branch)?
        {
            found.unlanded = 0;
        }
        Ok(())
    }

    /// Refuses to move a branch that is at `tip` from `new` to `old` where others would miss what it leaves. A way that only
    /// goes forward leaves nothing.
    pub(super) fn require_own(&self, branch: &str, tip: Oid, old: Oid, new: Oid) -> Result<(), Error> {
        let repo = &self.op.project.repo;
        if self.force || tip == old {
            return Ok(());
        }
        if tip != new {
            return Err(UndoError::BuiltOn { branch: branch.to_owned(), tip }.into());
        }
        if repo.is_ancestor(new, old)? {
            return Ok(());
        }
        match repo.remote_with(new)? {
            Some(remote) => Err(UndoError::Pushed { branch: branch.to_owned(), remote }.into()),
            None => Ok(()),
        }
    }

    /// Moves a branch back, with every worktree that is on it now, wherever it was when the branch moved.
    fn move_back(&self, branch: &str, old: Oid, new: Oid) -> Result<(), Error> {
        let repo = &self.op.project.repo;
        let branch = &branch_behind(self.op.project, branch);
        let Some(tip) = repo.branch_tip(branch)? else {
            return Err(UndoError::BranchGone { branch: branch.to_owned(), tip: new }.into());
        };
        if tip == old {
            // Somebody has brought all back with git, but for folders.
            for worktree in WorktreeList::read(repo)?.on_branch(branch) {
                let dropped = self.dropped(&worktree.path, new);
                self.op.checkout(&worktree.path)?.make_folders(&dropped.empty_dirs);
            }
            return Ok(());
        }
        self.require_own(branch, tip, old, new)?;
        if !repo.is_ancestor(tip, new)? {
            // Somebody's own commits, not only a landing that can be redone.
            self.op.anchor(&format!("refs/proq/saved/{}-{}", branch.replace('/', "-"), new_id()), tip)?;
        }
        self.op.keep(new)?;
        self.op.set_why(format!("git-proq: operation {} undone", self.number));
        // Nobody may open or leave a preview between the look at who is on the branch and the end of this operation, the way
        // back from a failure included: the checkout would be where the branch is not.
        let _main = repo.main_worktree().map(|dir| self.op.checkout(dir)).transpose()?;
        let worktrees = WorktreeList::read(repo)?;
        let on_it: Vec<PathBuf> = worktrees.on_branch(branch).map(|w| w.path.clone()).collect();
        let Some((first, others)) = on_it.split_first() else {
            let name = format!("refs/heads/{branch}");
            return self.op.perform(Step::Ref { name, old: Some(tip), new: Some(old) }).map(drop);
        };
        for dir in others {
            self.op.checkout(dir)?.require_free_to_get(tip, old, &self.dropped(dir, new))?;
        }
        let bring =
            |dir: &Path, mv| self.op.transition_back(dir, (tip, old), mv, &self.dropped(dir, new), &[]);
        bring(first, RefMove::Branch(branch.to_owned()))?;
        others.iter().try_for_each(|dir| bring(dir, RefMove::Nothing))
    }

    /// The empty folders and index flags that the worktree at `dir` lost when this operation brought it to `commit`; none where no
    /// step did.
    pub(super) fn dropped(&self, dir: &Path, commit: Oid) -> LocalState {
        let of_step = |step: &Step| match step {
            Step::Tree { dir: of, to, drops, .. } if of == dir && *to == commit => Some(drops.clone()),
            _ => None,
        };
        self.entry.standing().find_map(of_step).unwrap_or_default()
    }
}
