//! Owns where a run may work in the main checkout, and what is kept of the checkout before it does.

use std::path::Path;

use super::{Checkout, Error, Name, Project, effective_state, snaps};
use crate::fault;
use crate::git::{self, RepoPath, WorktreeList};
use crate::store::records::{AnyLane, BeforeRecord, PreviewRecord, Purpose, SnapRecord};
use crate::store::{LockName, Record, new_id, now, write_atomically};

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
    let finish = "finish it, or give it up, with git; see: git status";
    if let Some(open) = git::open_operation(&project.repo.git_dir_of(main)?) {
        return refused(format!("a {} is under way in the main checkout", open.what), finish);
    }
    let unmerged = git::status(&project.repo, main, false)?.unmerged();
    if !unmerged.is_empty() {
        return refused(
            format!("the main checkout has conflicts that are open: {}", git::names(&unmerged)),
            finish,
        );
    }
    let own = "git switch to a branch of yours";
    match branch_of(project, main)? {
        Some(now) if project.is_own_branch(&now) => {
            refused(format!("the main checkout is on '{now}', which is git-proq's own"), own)
        }
        Some(now) if now == branch => Ok(()),
        Some(now) => refused(
            format!("the main checkout is on '{now}', and lane '{lane}' works on '{branch}'"),
            &format!("git switch {branch}"),
        ),
        None => refused("the main checkout is on no branch".to_owned(), own),
    }
}

/// The branch that is checked out somewhere.
pub(super) fn branch_of(project: &Project, dir: &Path) -> Result<Option<String>, Error> {
    Ok(WorktreeList::read(&project.repo)?.at(dir).and_then(|worktree| worktree.branch.clone()))
}

/// Makes ready for the run of a lane in the main checkout that gets this number: keeps the commit it is at and a snapshot of what is
/// uncommitted, and writes down what git ignores there. The caller holds the lane's run lock.
///
/// # Errors
/// [`Error::InPlace`], and [`Error::Git`] for what no snapshot can hold. Nothing was changed then.
pub(crate) fn begin_in_place(project: &Project, lane: &AnyLane, attempt: u32) -> Result<(), Error> {
    let layout = project.store.layout();
    // Whoever enters a preview, or begins another such run, holds it too when he looks.
    let checkout = Checkout::lock(project, &lane.path)?;
    refuse_in_place(project, &lane.name, &lane.base)?;
    write_atomically(&layout.in_place(), format!("{}\n", lane.name).as_bytes())?;
    let none = || Error::Unborn { branch: lane.base.clone() };
    let head = project.repo.head_of(&lane.path)?.ok_or_else(none)?;
    // What nobody names any more, git throws away, and an agent may move the branch anywhere.
    let keeper = format!("refs/proq/saved/{}-{}", lane.name, new_id());
    project.repo.create_ref(&keeper, head, &format!("git-proq: before lane {} works here", lane.name))?;
    fault::point("in-place.kept");
    let why = format!("uncommitted when lane {} began to work in the main checkout", lane.name);
    let snap = checkout.describe(head, &why, &[], |snapshot, raw| {
        let (id, at) = (new_id(), now());
        let why = why.clone();
        let record = SnapRecord { id: id.clone(), why, at, restored: Some(at), copy: true, snapshot };
        snaps::put(project, &record, raw)?;
        Ok(id)
    })?;
    let before = BeforeRecord { keeper, snap, ignored: checkout.ignored()?, apart: apart(project, lane)? };
    before.save(&layout.run_before(&lane.name, attempt))?;
    fault::point("in-place.begun");
    Ok(())
}

/// Submodules and nested repositories that are not as HEAD has them: no snapshot holds what is in them.
pub(super) fn apart(project: &Project, lane: &AnyLane) -> Result<Vec<RepoPath>, Error> {
    let dirt = git::status(&project.repo, &lane.path, true)?;
    Ok(dirt.entries.into_iter().filter(|entry| entry.submodule || entry.nested).map(|e| e.path).collect())
}
