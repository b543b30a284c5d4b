//! Owns where a run may work in the main checkout, what is kept of the checkout before it does, and that nobody else of git-proq
//! changes it meanwhile.

use std::path::Path;

use super::in_place_before::look_before;
use super::{Checkout, Error, Name, Operation, Project, effective_state, snaps};
use crate::fault;
use crate::git::{self, WorktreeList};
use crate::store::records::{AnyLane, BeforeRecord, PreviewRecord, SnapRecord, Step};
use crate::store::{Record, new_id, write_atomically};

/// The lane whose agent works in the main checkout now, if it is another one than `but`.
///
/// # Errors
/// When that cannot be found out.
pub(crate) fn at_work_in_place(project: &Project, but: Option<&str>) -> Result<Option<String>, Error> {
    let note = project.store.layout().in_place();
    let name = match crate::regular_file::record_text(&note) {
        Ok(name) => name.trim().to_owned(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read", &note)(e)),
    };
    if Some(name.as_str()) == but || Name::parse(&name).is_err() {
        return Ok(None);
    }
    let Some(lane) = AnyLane::find(&project.store.layout().lane_record(&name))? else { return Ok(None) };
    let busy = lane.works_in_place() && effective_state(project, &lane)?.0.is_busy();
    Ok(busy.then_some(name))
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

/// The same where a branch is to move, if the agent works on it, or the main checkout is on it and would have to follow.
///
/// # Errors
/// [`Error::InPlace`].
pub(crate) fn refuse_move_beside_in_place(project: &Project, branch: &str) -> Result<(), Error> {
    let Some(lane) = at_work_in_place(project, None)? else { return Ok(()) };
    let main = project.repo.require_main()?;
    // Its agent may have gone elsewhere for a moment, and will be back.
    let own = AnyLane::find(&project.store.layout().lane_record(&lane))?.map(|lane| lane.base);
    let meant = own.as_deref() == Some(branch) || branch_of(project, main)?.as_deref() == Some(branch);
    if meant { Err(at_work(&lane)) } else { Ok(()) }
}

/// The same for a step that changes the files of a worktree, where that is the main checkout.
pub(super) fn refuse_step_beside_in_place(op: &Operation<'_>, step: &Step) -> Result<(), Error> {
    match step {
        Step::Tree { dir, .. } | Step::Clear { dir, .. } | Step::Restore { dir, .. }
            if op.project.repo.main_worktree() == Some(dir) =>
        {
            // Held until the operation ends: none begins meanwhile.
            op.checkout(dir)?;
            refuse_beside_in_place(op.project)
        }
        _ => Ok(()),
    }
}

fn at_work(lane: &str) -> Error {
    Error::InPlace {
        why: format!("the agent of lane '{lane}' works in the main checkout"),
        help: format!("wait for it: git proq wait {lane}   or stop it: git proq stop {lane}"),
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
        return refused(
            format!("a {} is under way in the main checkout", open.what),
            "finish it, or give it up, with git; see: git status",
        );
    }
    let own = "git switch to a branch of yours";
    match branch_of(project, main)? {
        Some(now) if project.is_own_branch(&now) => {
            return refused(format!("the main checkout is on '{now}', which is git-proq's own"), own);
        }
        Some(now) if now != branch => {
            return refused(
                format!("the main checkout is on '{now}', and lane '{lane}' works on '{branch}'"),
                &format!("git switch {branch}"),
            );
        }
        Some(_) => {}
        None => return refused("the main checkout is on no branch".to_owned(), own),
    }
    refuse_staged(project, main)
}

/// What is staged would go into the run's commit.
fn refuse_staged(project: &Project, main: &Path) -> Result<(), Error> {
    let dirt = git::status(&project.repo, main, false)?;
    let unmerged = dirt.unmerged();
    if !unmerged.is_empty() {
        let why = format!("the main checkout has conflicts that are open: {}", git::names(&unmerged));
        return Err(Error::InPlace { why, help: "finish them with git; see: git status".to_owned() });
    }
    let mut staged: Vec<_> = dirt.staged().map(|entry| entry.path.clone()).collect();
    staged.extend(project.repo.announced(main, None)?);
    if staged.is_empty() {
        return Ok(());
    }
    Err(Error::InPlace {
        why: format!("these files are staged in the main checkout: {}", git::names(&staged)),
        help: "commit them: git commit   or unstage them, as they are: git reset".to_owned(),
    })
}

/// The branch that is checked out somewhere.
pub(super) fn branch_of(project: &Project, dir: &Path) -> Result<Option<String>, Error> {
    Ok(WorktreeList::read(&project.repo)?.at(dir).and_then(|worktree| worktree.branch_behind().cloned()))
}

/// Makes ready for the run of a lane in the main checkout that gets this number: keeps a snapshot of what is uncommitted, and the
/// commit it is at by a ref, and writes down what was there. The caller holds the lane's run lock, and what is returned until the
/// lane's record says that it runs: whoever changes the main checkout, or begins another such run, holds that too when he looks.
///
/// # Errors
/// [`Error::InPlace`], and [`Error::Git`] for what no snapshot can hold. Nothing was changed then.
pub(crate) fn begin_in_place<'p>(
    project: &'p Project,
    lane: &AnyLane,
    attempt: u32,
) -> Result<Checkout<'p>, Error> {
    let layout = project.store.layout();
    let checkout = Checkout::lock(project, &lane.path)?;
    refuse_in_place(project, &lane.name, &lane.base)?;
    write_atomically(&layout.in_place(), format!("{}\n", lane.name).as_bytes())?;
    fault::point("in-place.noted");
    let none = || Error::Unborn { branch: lane.base.clone() };
    let head = project.repo.head_of(&lane.path)?.ok_or_else(none)?;
    let why = format!("uncommitted when lane {} began to work in the main checkout", lane.name);
    let snap = checkout.describe(head, &why, &[], |snapshot, raw| {
        let record = SnapRecord::copy(&why, snapshot);
        snaps::put(project, &record, raw)?;
        Ok(record.id)
    })?;
    // What nobody names any more, git throws away, and an agent may move the branch anywhere.
    let keeper = format!("refs/proq/saved/{}-{}", lane.name, new_id());
    project.repo.create_ref(&keeper, head, &format!("git-proq: before lane {} works here", lane.name))?;
    fault::point("in-place.kept");
    look_before(project, &checkout, keeper, snap)?.save(&layout.run_before(&lane.name, attempt))?;
    fault::point("in-place.begun");
    Ok(checkout)
}

/// Makes ready for the next run under a supervisor that goes on: what was the user's before its first run is so still.
///
/// # Errors
/// When that cannot be read.
pub(crate) fn go_on_in_place(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    let layout = project.store.layout();
    let before = BeforeRecord::load(&layout.run_before(&lane.name, lane.attempt))?;
    Ok(before.save(&layout.run_before(&lane.name, lane.attempt + 1))?)
}

/// Whether a run that is at work needs a snapshot, however old that is.
pub(super) fn needs_snap(project: &Project, id: &str) -> Result<bool, Error> {
    let Some(name) = at_work_in_place(project, None)? else { return Ok(false) };
    let layout = project.store.layout();
    let Some(lane) = AnyLane::find(&layout.lane_record(&name))? else { return Ok(false) };
    let before = BeforeRecord::find(&layout.run_before(&name, lane.attempt))?;
    Ok(before.is_some_and(|before| before.snap.as_deref() == Some(id)))
}
