//! Owns a run in the main checkout: what was there before it, and committing what it changed there and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::leftovers::unfit;
use super::operation::operate_as;
use super::{Checkout, Error, Name, Project, effective_state, snaps};
use crate::fault;
use crate::git::{self, Entry, Oid, RepoPath, Side, Snapshot, WorktreeList};
use crate::store::records::{AnyLane, PreviewRecord, Purpose, RunRecord, SnapRecord, Step};
use crate::store::{Header, LockName, Record, new_id, now, write_atomically};

/// What a run in the main checkout came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub(crate) struct InPlace {
    /// Whether there is anything to show.
    pub(crate) changed: bool,
    /// The branch that the checkout was brought to, which is not the one that the run was to commit to.
    pub(crate) astray: Option<String>,
    /// What the user has to know, a phrase each.
    pub(crate) remarks: Vec<String>,
}

/// The lane whose agent works in the main checkout now, if it is another one than `but`.
///
/// # Errors
/// When that cannot be found out.
pub(crate) fn at_work_in_place(project: &Project, but: Option<&str>) -> Result<Option<String>, Error> {
    let note = project.store.layout().in_place();
    let name = match std::fs::read_to_string(&note) {
        Ok(name) => name.trim().to_owned(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read", &note)(e)),
    };
    if Some(name.as_str()) == but || Name::parse(&name).is_err() {
        return Ok(None);
    }
    let Some(lane) = AnyLane::find(&project.store.layout().lane_record(&name))? else { return Ok(None) };
    let works_here = lane.purpose() == Some(Purpose::InPlace);
    // Its lock is held from before it is noted until its run is over; its agent may outlive that.
    let busy = project.store.locks().is_held(&LockName::Run(name.clone()))?
        || effective_state(project, &lane)?.0.is_busy();
    Ok((works_here && busy).then_some(name))
}

/// Refuses while an agent works in the main checkout: what is under its hands must stay there.
///
/// # Errors
/// [`Error::InPlace`].
pub(crate) fn refuse_beside_in_place(project: &Project) -> Result<(), Error> {
    match at_work_in_place(project, None)? {
        None => Ok(()),
        Some(lane) => Err(at_work(&lane)),
    }
}

fn at_work(lane: &str) -> Error {
    Error::InPlace {
        why: format!("the agent of lane '{lane}' works in the main checkout"),
        help: format!("wait for it: git proq wait {lane}"),
    }
}

/// Checks that a run of a lane can work in the main checkout, without changing anything.
///
/// # Errors
/// [`Error::InPlace`] with the reason.
pub(crate) fn refuse_in_place(project: &Project, lane: &str, branch: &str) -> Result<(), Error> {
    let main = project.repo.require_main()?;
    let refused = |why: String, help: &str| Err(Error::InPlace { why, help: help.to_owned() });
    if let Some(open) = PreviewRecord::find(&project.store.layout().preview())? {
        return refused(
            format!("the main checkout shows lane '{}'", open.lane),
            "go back first: git proq preview --back",
        );
    }
    if let Some(other) = at_work_in_place(project, Some(lane))? {
        return Err(at_work(&other));
    }
    if let Some(open) = git::open_operation(&project.repo.git_dir_of(main)?) {
        let why = format!("a {} is under way in the main checkout", open.what);
        return refused(why, "finish it, or give it up, with git; see: git status");
    }
    match branch_of(project, main)? {
        Some(now) if now == branch && !project.is_own_branch(&now) => Ok(()),
        Some(now) if project.is_own_branch(&now) => refused(
            format!("the main checkout is on '{now}', which is git-proq's own"),
            "git switch to a branch of yours",
        ),
        Some(now) => refused(
            format!("the main checkout is on '{now}', and lane '{lane}' works on '{branch}'"),
            &format!("git switch {branch}"),
        ),
        None => refused("the main checkout is on no branch".to_owned(), "git switch to a branch of yours"),
    }
}

fn branch_of(project: &Project, dir: &Path) -> Result<Option<String>, Error> {
    Ok(WorktreeList::read(&project.repo)?.at(dir).and_then(|worktree| worktree.branch.clone()))
}

/// Makes ready for a run of a lane in the main checkout, and returns the id of a snapshot of what is uncommitted there. The
/// caller holds the lane's run lock.
///
/// # Errors
/// [`Error::InPlace`], and [`Error::Git`] for what no snapshot can hold. Nothing was changed then.
pub(crate) fn begin_in_place(project: &Project, lane: &AnyLane) -> Result<Option<String>, Error> {
    let note = project.store.layout().in_place();
    // Whoever enters a preview, or begins another such run, holds it too when he looks.
    let checkout = Checkout::lock(project, &lane.path)?;
    refuse_in_place(project, &lane.name, &lane.base)?;
    write_atomically(&note, format!("{}\n", lane.name).as_bytes())?;
    let none = || Error::Unborn { branch: lane.base.clone() };
    let head = project.repo.head_of(&lane.path)?.ok_or_else(none)?;
    let why = format!("uncommitted when lane {} began to work in the main checkout", lane.name);
    let snap = checkout.describe(head, &why, &[], |snapshot, raw| {
        let (id, at) = (new_id(), now());
        let record =
            SnapRecord { id: id.clone(), why: why.clone(), at, restored: Some(at), copy: true, snapshot };
        snaps::put(project, &record, raw)?;
        Ok(id)
    })?;
    fault::point("in-place.begun");
    Ok(snap)
}

/// Whether a run has changed anything in the main checkout since it began, or somebody else has.
///
/// # Errors
/// When that cannot be looked at.
pub(crate) fn has_changed_in_place(
    project: &Project,
    lane: &AnyLane,
    run: &RunRecord,
) -> Result<bool, Error> {
    let checkout = Checkout::lock(project, &lane.path)?;
    let now = Now::look(project, &checkout, lane)?;
    Ok(now.head != run.tip_before || !differences(project, run, &now)?.is_empty())
}

/// Commits what a run changed in the main checkout, with this message, and writes down how its branch moved, for an undo. Files
/// that had uncommitted changes before stay as they are. Without a message nothing is committed.
///
/// # Errors
/// When it cannot be looked at, or git refuses the commit. What the run changed is there then, uncommitted.
pub(crate) fn end_in_place(
    project: &Project,
    lane: &AnyLane,
    run: &RunRecord,
    message: Option<&str>,
) -> Result<InPlace, Error> {
    let checkout = Checkout::lock(project, &lane.path)?;
    let branch = branch_of(project, &lane.path)?;
    let now = Now::look(project, &checkout, lane)?;
    let mut out = InPlace::default();
    let changed = differences(project, run, &now)?;
    out.changed = now.head != run.tip_before || !changed.is_empty();
    if branch.as_deref() != Some(lane.base.as_str()) {
        out.astray = Some(branch.unwrap_or_else(|| "no branch".to_owned()));
        return Ok(out);
    }
    let yours = dirty_before(project, run)?;
    let dirt = git::status(&project.repo, &lane.path, true)?;
    let entries: Vec<&Entry> = dirt
        .entries
        .iter()
        .filter(|entry| !entry.submodule && changed.contains(&entry.path) && !yours.contains(&entry.path))
        .collect();
    out.remarks.extend(mixed(run, &changed, &yours));
    if !entries.is_empty() {
        match message {
            Some(message) => commit(project, lane, &entries, message, &mut out)?,
            None => out.remarks.push(format!("it left uncommitted: {}", names_of(&entries))),
        }
    }
    let tip = project.repo.head_of(&lane.path)?.unwrap_or(now.head);
    if tip != run.tip_before {
        note_move(project, lane, run, tip)?;
    }
    Ok(out)
}

fn commit(
    project: &Project,
    lane: &AnyLane,
    entries: &[&Entry],
    message: &str,
    out: &mut InPlace,
) -> Result<(), Error> {
    let why = unfit(project, lane, entries);
    if !why.is_empty() {
        out.remarks.push(format!("what it changed is not committed: {}", why.join("; ")));
        return Ok(());
    }
    let paths: Vec<RepoPath> = entries.iter().map(|entry| entry.path.clone()).collect();
    let loose: Vec<RepoPath> = entries.iter().filter(|e| e.is_untracked()).map(|e| e.path.clone()).collect();
    if let Err(e) = git::commit_only(&project.repo, &lane.path, &paths, &loose, message) {
        out.remarks.push(format!("what it changed is not committed, git refused: {e}"));
    }
    fault::point("in-place.committed");
    Ok(())
}

fn names_of(entries: &[&Entry]) -> String {
    git::names(&entries.iter().map(|entry| entry.path.clone()).collect::<Vec<_>>())
}

/// What to say of files that the user had changed before, and the run as well.
fn mixed(run: &RunRecord, changed: &BTreeSet<RepoPath>, yours: &BTreeSet<RepoPath>) -> Option<String> {
    let both: Vec<RepoPath> = changed.intersection(yours).cloned().collect();
    let snap = run.before.as_ref().filter(|_| !both.is_empty())?;
    Some(format!(
        "it changed files that had changes of yours, which are not committed for you: {}; as they were: git proq snap show {snap}",
        git::names(&both)
    ))
}

/// Writes down how the branch moved. It has moved, so that there is nothing to be done, and no way back but an undo.
fn note_move(project: &Project, lane: &AnyLane, run: &RunRecord, to: Oid) -> Result<(), Error> {
    // Nobody has typed the command line of the process that writes this.
    let mut header = Header::new("in-place");
    header.command = format!("run {} of lane {}", run.attempt, lane.name);
    operate_as(project, header, |op| {
        op.keep(run.tip_before)?;
        let (dir, branch) = (lane.path.clone(), lane.base.clone());
        op.forward(vec![Step::Worked { dir, branch, from: run.tip_before, to }]).map(drop)
    })
}

/// What is in the main checkout now.
struct Now {
    head: Oid,
    /// What differs from HEAD; none when nothing does.
    snapshot: Option<Snapshot>,
}

impl Now {
    fn look(project: &Project, checkout: &Checkout<'_>, lane: &AnyLane) -> Result<Now, Error> {
        let none = || Error::Unborn { branch: lane.base.clone() };
        let head = project.repo.head_of(&lane.path)?.ok_or_else(none)?;
        let why = format!("what is in the main checkout after a run of lane {}", lane.name);
        Ok(Now { head, snapshot: checkout.describe(head, &why, &[], |snapshot, _| Ok(snapshot))? })
    }
}

/// Files whose content, or whether they are there at all, is not as it was before a run. Whether git knows them makes no difference.
fn differences(project: &Project, run: &RunRecord, now: &Now) -> Result<BTreeSet<RepoPath>, Error> {
    let repo = &project.repo;
    let before = snapshot_before(project, run)?;
    let tree = |snapshot: Option<&Snapshot>, head| match snapshot {
        Some(snapshot) => Ok(snapshot.work_tree),
        None => repo.tree_of(head),
    };
    let from = tree(before.as_ref(), run.tip_before)?;
    let to = tree(now.snapshot.as_ref(), now.head)?;
    let mut sides: BTreeMap<RepoPath, [Option<Side>; 2]> = BTreeMap::new();
    for change in git::tree_changes(repo, from, to)? {
        sides.insert(change.path, [change.old, change.new]);
    }
    let loose = |snapshot: Option<&Snapshot>| match snapshot.and_then(|s| s.untracked_tree) {
        Some(tree) => git::tree_files(repo, tree, &BTreeSet::new()),
        None => Ok(Vec::new()),
    };
    for (at, snapshot) in [before.as_ref(), now.snapshot.as_ref()].into_iter().enumerate() {
        for (path, side) in loose(snapshot)? {
            sides.entry(path).or_default()[at] = Some(side);
        }
    }
    Ok(sides.into_iter().filter(|(_, [old, new])| old != new).map(|(path, _)| path).collect())
}

/// The files that had uncommitted changes when a run began.
fn dirty_before(project: &Project, run: &RunRecord) -> Result<BTreeSet<RepoPath>, Error> {
    let Some(snapshot) = snapshot_before(project, run)? else { return Ok(BTreeSet::new()) };
    let repo = &project.repo;
    let base = repo.tree_of(snapshot.base)?;
    let mut out = BTreeSet::new();
    for tree in [snapshot.work_tree, snapshot.index_tree] {
        out.extend(git::tree_changes(repo, base, tree)?.into_iter().map(|change| change.path));
    }
    if let Some(tree) = snapshot.untracked_tree {
        out.extend(git::files_of(repo, tree)?);
    }
    out.extend(snapshot.intent_to_add);
    Ok(out)
}

fn snapshot_before(project: &Project, run: &RunRecord) -> Result<Option<Snapshot>, Error> {
    run.before.as_ref().map(|id| Ok(project.snap(id)?.snapshot)).transpose()
}
