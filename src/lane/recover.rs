//! Owns putting right what a dead process left: its operation ends as if it had been done, or as if it had not been begun.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::operation::{Operation, no_way_back};
use super::take_back::{forget_repeats, mark_taken_back};
use super::{Error, Project, absent, apart, checks_dir, history, steps};
use crate::git::{self, Tree, Wrote};
use crate::store::records::Step;
use crate::store::{self, Entry, Guard, Header, Journal, Line, LockName, Planned, Scratch, Status};
use crate::{fault, process};

/// Puts right whatever dead processes left. Costs a look into two folders when there is nothing.
pub(crate) fn recover(project: &Project) -> Result<(), Error> {
    project.store.note_clock();
    // A dead process's place in the landing queue holds nobody up; whoever cannot remove it leaves it to the next.
    drop(store::sweep_queue(project.store.locks()));
    // So does one that was killed while it handed out events.
    project.hand_out();
    apart::sweep(project);
    put_right(project, dead(project)?)
}

/// What dead processes left open, held by this process. What they only had in hand is removed.
pub(super) fn dead(project: &Project) -> Result<Vec<Scratch>, Error> {
    let mut orphans = project.store.layout().orphans()?;
    if !orphans.is_empty() {
        checks_dir::sweep(project);
    }
    for orphan in &mut orphans {
        if Journal::file_in(orphan.path()).exists() {
            // Until its journal is read, nothing may remove it.
            orphan.keep();
        } else {
            // What it only had in hand goes with its folder; a git that was killed with it may have left a lock.
            git::settle_deletions(&project.repo, orphan.path())?;
        }
    }
    orphans.retain(|orphan| Journal::file_in(orphan.path()).exists());
    Ok(orphans)
}

/// An operation that no command could put right so far.
pub(crate) struct Stuck {
    /// The folder of the process that is dead.
    pub(crate) dir: PathBuf,
    /// What its journal says.
    pub(crate) journal: Result<Entry, store::Error>,
}

/// What is left of dead processes after everything that could be put right was.
pub(crate) fn stuck(project: &Project) -> Result<Vec<Stuck>, Error> {
    let mut out = Vec::new();
    for mut orphan in project.store.layout().orphans()? {
        orphan.keep();
        let dir = orphan.path().to_owned();
        if let Some(journal) = Entry::read(&Journal::file_in(&dir)).transpose() {
            out.push(Stuck { dir, journal });
        }
    }
    Ok(out)
}

/// Ends the operations of dead processes.
pub(super) fn put_right(project: &Project, dead: Vec<Scratch>) -> Result<(), Error> {
    if !dead.is_empty() {
        fault::point("recover.claimed");
    }
    let mut each = dead.into_iter();
    // Whoever does this may be in an operation of its own.
    project.repo.carrying_on(|| {
        each.try_for_each(|scratch| match Journal::adopt(scratch)? {
            Some(mut journal) => {
                absent::follow_moved(project, &mut journal);
                end(project, journal)
            }
            None => Ok(()),
        })
    })
}

/// Takes a lock that whoever held it before may have died with: what that left half-done is put right first, also where another process
/// is about that. `concerns` names the steps which change what the lock protects.
pub(super) fn take_lock(
    project: &Project,
    name: &LockName,
    concerns: impl Fn(&Step) -> bool,
) -> Result<Guard, Error> {
    let locks = project.store.locks();
    loop {
        let lock = locks.take(name)?;
        // Now is the time to look, and without the lock, to act.
        let dead = dead(project)?;
        if !dead.is_empty() {
            drop(lock);
            put_right(project, dead)?;
            continue;
        }
        let Some((dir, header)) = put_right_elsewhere(project, &concerns) else { return Ok(lock) };
        drop(lock);
        let holder = format!("whoever puts `{}` right (process {} has died)", header.command, header.pid);
        locks.wait_until_left(&dir, &name.what(), &holder)?;
    }
}

/// Takes the run lock of the lane `name` as [`take_lock`] takes a lock. `path` is the lane's worktree; none for that on record.
pub(super) fn take_run_lock(project: &Project, name: &str, path: Option<&Path>) -> Result<Guard, Error> {
    let records = project.store.layout().lane(name);
    let path = path.map(Path::to_owned).or_else(|| project.any_lane(name).ok().map(|lane| lane.path));
    let is_in = |moved: &Path| moved == records || path.as_ref().is_some_and(|path| moved == path);
    take_lock(project, &LockName::Run(name.to_owned()), |step| match step {
        Step::Worktree { lane: made, .. } => made == name,
        Step::Move { from, to } => is_in(from) || is_in(to),
        _ => false,
    })
}

/// The folder of an operation of a dead process that another one puts right just now.
fn put_right_elsewhere(project: &Project, concerns: &impl Fn(&Step) -> bool) -> Option<(PathBuf, Header)> {
    // One that lives would hold the lock itself.
    let has_died = |header: &Header| header.is_of_this_host() && process::has_ended(header.pid);
    under_way(project, concerns).find(|(_, header)| has_died(header))
}

/// Whether another process has an operation under way with such a step.
pub(super) fn is_under_way(project: &Project, concerns: impl Fn(&Step) -> bool) -> bool {
    under_way(project, &concerns).next().is_some()
}

fn under_way(
    project: &Project,
    concerns: &impl Fn(&Step) -> bool,
) -> impl Iterator<Item = (PathBuf, Header)> {
    project.store.layout().at_work_elsewhere().into_iter().filter_map(move |dir| {
        let entry = Entry::read(&Journal::file_in(&dir)).ok().flatten()?;
        let is_about = entry.end.is_none() && entry.steps.iter().any(|planned| concerns(&planned.step));
        is_about.then_some((dir, entry.header))
    })
}

fn end(project: &Project, journal: Journal) -> Result<(), Error> {
    let header = journal.entry().header.clone();
    let ended = journal.entry().end.is_some();
    let op = Operation::new(project, header, Some(journal));
    let mut unmoved = Vec::new();
    // It had come to its end and only was not filed yet.
    if !ended && let Err(e) = decide(&op, &mut unmoved) {
        let command = shown(&op);
        op.leave();
        return Err(Error::Unfinished { command, source: Box::new(e) });
    }
    let entry = op.entry();
    let number = op.finish(true)?;
    if let Some(entry) = entry.filter(|_| !ended) {
        report(project, &entry, number, &unmoved);
    }
    Ok(())
}

/// Judges what was left open, takes back what can be and finishes what there is no way back from. `unmoved` becomes the steps that were
/// to move a branch and had not.
fn decide(op: &Operation<'_>, unmoved: &mut Vec<usize>) -> Result<(), Error> {
    let count = op.entry().map_or(0, |e| e.steps.len());
    for n in (0..count).rev() {
        if op.status(n) != Some(Status::Open) {
            continue;
        }
        let Some((step, scratch)) = op.at(n) else { continue };
        let happened = steps::settle(op, &step, &scratch)?;
        if !happened && matches!(step, Step::Tree { .. } | Step::Ref { .. }) {
            unmoved.push(n);
        }
        let _ = op.note(if happened { Line::Done(n) } else { Line::Back(n) });
    }
    // Whoever takes steps back would take beginnings of what they had written for changes of somebody's.
    mend_files(op, git::complete)?;
    mark_taken_back(op)?;
    finish_forward(op);
    match take_back(op) {
        Err(e) if e.is_refusal() => {
            op.project.listener.warn(format!(
                "`{}` was cut short and cannot be taken back as a whole: {e}; what is left of it stands",
                shown(op)
            ));
            Ok(())
        }
        other => other,
    }
}

/// Takes everything back. What the way back wrote is on disk before the snapshots go that would tell of another power cut what is
/// somebody's own.
fn take_back(op: &Operation<'_>) -> Result<(), Error> {
    op.take_back(0, |step| !matches!(step, Step::Snap { .. }))?;
    mend_files(op, git::sync_written)?;
    forget_repeats(op)?;
    op.take_back(0, |_| true)
}

/// A function that mends one worktree, given what the steps of an operation have written to it, newest first.
type Mend = fn(&Tree<'_>, &[Wrote]) -> Result<(), git::Error>;

/// Does something about what the steps that have happened wrote to each worktree. One where that fails is left to whoever takes its
/// steps back.
///
/// # Errors
/// Where the disk is full: once there is room, the next command does it.
fn mend_files(op: &Operation<'_>, mend: Mend) -> Result<(), Error> {
    let Some(entry) = op.entry() else { return Ok(()) };
    let mut worktrees: Vec<(&Path, usize, Vec<Option<Wrote>>)> = Vec::new();
    let stands = |p: &Planned| p.status == Status::Done && !p.is_gone;
    for (n, planned) in entry.steps.iter().enumerate().rev().filter(|(_, p)| stands(p)) {
        let (dir, wrote) = match &planned.step {
            Step::Tree { dir, from, to, .. } => (dir, Some(Wrote::Commit { from: *from, to: *to })),
            Step::Clear { dir, snap } => (dir, op.snapshot_of(snap).ok().map(Wrote::Cleared)),
            Step::Restore { dir, snap, head, .. } => {
                let restored = |snapshot| Wrote::Restored { snapshot, onto: *head };
                (dir, op.snapshot_of(snap).ok().map(restored))
            }
            _ => continue,
        };
        match worktrees.iter_mut().find(|(known, ..)| known == dir) {
            Some((_, _, all)) => all.push(wrote),
            None => worktrees.push((dir, n, vec![wrote])),
        }
    }
    for (dir, n, wrote) in worktrees.into_iter().filter(|(dir, ..)| dir.exists()) {
        let (Some((_, scratch)), Ok(checkout)) = (op.at(n), op.checkout(dir)) else { continue };
        // Of a snapshot that is gone, as it is at the end of a way back, nobody knows which files are somebody's own.
        let wrote: Vec<Wrote> = wrote.into_iter().map_while(|wrote| wrote).collect();
        match checkout.with_tree(&scratch, |tree| Ok(mend(tree, &wrote)?)) {
            Err(e) if is_full(&e) => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Whether the disk had no room.
fn is_full(e: &Error) -> bool {
    let Error::Git(git::Error::Io { source, .. }) = e else { return false };
    matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The steps that follow from one there is no way back from.
fn finish_forward(op: &Operation<'_>) {
    let Some(entry) = op.entry() else { return };
    for (n, planned) in entry.steps.iter().enumerate().take(no_way_back(&entry)) {
        let happened = |first: usize| entry.steps[first].status == Status::Done;
        if planned.status != Status::Done && planned.forward.is_some_and(happened) {
            op.follow(n, true);
        }
    }
}

fn shown(op: &Operation<'_>) -> String {
    op.entry().map_or_else(String::new, |e| typed(&e.header.command).into_owned())
}

/// A command as a person types it to have the same done: a lane that lands by itself is landed by one that is none of theirs.
fn typed(command: &str) -> Cow<'_, str> {
    let lanes = ["run-ended", "retry"]
        .iter()
        .find_map(|why| command.strip_prefix("git proq merge --auto ")?.strip_prefix(why));
    lanes.map_or(Cow::Borrowed(command), |lanes| format!("git proq merge{lanes}").into())
}

/// What became of it, for the person whose command came next, in three lines: what was cut short, what came of it, and what
/// to do now.
fn report(project: &Project, entry: &Entry, number: Option<u64>, unmoved: &[usize]) {
    let prefix = &project.settings.prefix;
    // A process of git-proq's own is no command that anybody could type.
    let again = |what: &str| match entry.header.command.starts_with("git proq ") {
        true => format!("run it again{what}"),
        false => "there is nothing to do".to_owned(),
    };
    let back = entry.steps.iter().enumerate();
    let back = back.filter(|(n, p)| p.status == Status::Back && p.of.is_none() && !unmoved.contains(n));
    let back = back.map(|(_, planned)| &planned.step);
    let (became, now) = if entry.standing().next().is_none() {
        let what = history::in_words(back, prefix).unwrap_or_else(|| "what it had begun".to_owned());
        // In the files of a worktree that is gone nothing was.
        let all = if entry.steps.iter().any(|p| p.is_gone) { "the rest" } else { "everything" };
        (format!("taken back: {what}"), format!("{all} is as it was before; {}", again("")))
    } else {
        let what = format!("done: {}", history::summary(entry, prefix));
        let undo = number.map_or_else(String::new, |n| format!("take it back: git proq undo {n}"));
        let now = match no_way_back(entry) {
            0 => "the rest was taken back".to_owned(),
            _ => again(" for the rest"),
        };
        (what, if undo.is_empty() { now } else { format!("{now}, or {undo}") })
    };
    let Header { command, pid, at, .. } = &entry.header;
    let command = typed(command);
    project
        .listener
        .warn(format!("`{command}` was cut short (process {pid}, begun {at})\n  {became}\n  {now}"));
}
