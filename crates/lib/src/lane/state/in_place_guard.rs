//! Guard of the main checkout: which lane's agent runs in it, and refusals of changes while it runs.

use std::path::Path;

use proq_base::hint;
use proq_base::lane_name::LaneName;
use proq_git::Repo;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::base::record::Record;
use proq_store::records::baseline::CheckoutBaseline;
use proq_store::records::lane::AnyLane;

use super::lane_state::effective_state;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;

/// Returns the name of the lane whose agent is running in the main checkout, unless that is `except`.
///
/// # Errors
/// Fails when a record or a lock cannot be read.
pub(crate) fn lane_running_in_place(
    project: &Project,
    except: Option<&LaneName>,
) -> Result<Option<LaneName>, Error> {
    let marker = project.store.layout().last_in_place_lane_file();
    let name = match proq_base::regular_file::read_store_text(&marker) {
        Ok(name) => LaneName::parse(name.trim()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read", &marker)(e)),
    };
    let Some(name) = name.ok().filter(|name| Some(name) != except) else { return Ok(None) };
    let Some(lane) = AnyLane::load_if_exists(&project.store.layout().lane_record(&name))? else {
        return Ok(None);
    };
    let is_busy = lane.works_in_place() && effective_state(project, &lane)?.0.is_busy();
    Ok(is_busy.then_some(name))
}

/// Refuses while an agent runs in the main checkout, because its files must not change under the agent.
///
/// # Errors
/// [`Error::InPlaceRefused`].
pub(crate) fn require_no_in_place_run(project: &Project) -> Result<(), Error> {
    match lane_running_in_place(project, None)? {
        None => Ok(()),
        Some(lane) => Err(in_place_run_error(&lane)),
    }
}

/// Refuses a step that changes the files of the worktree at `dir` if that is the main checkout and an agent
/// runs there. Holds the lock of the main checkout until the operation ends, so that no such run can start
/// before that.
///
/// # Errors
/// [`Error::InPlaceRefused`].
pub(crate) fn require_free_checkout(op: &Operation<'_>, dir: &Path) -> Result<(), Error> {
    if op.project.repo.main_worktree() != Some(dir) {
        return Ok(());
    }
    op.lock_worktree(dir)?;
    require_no_in_place_run(op.project)
}

/// Refuses to move `branch` while an agent runs in the main checkout, if the agent works on that branch or
/// the main checkout is on it and would have to follow.
///
/// # Errors
/// [`Error::InPlaceRefused`].
pub(crate) fn require_branch_not_in_place(project: &Project, branch: &str) -> Result<(), Error> {
    let Some(lane) = lane_running_in_place(project, None)? else { return Ok(()) };
    let main = project.repo.require_main()?;
    // The agent may have switched to another branch for a moment and will switch back.
    let run_branch =
        AnyLane::load_if_exists(&project.store.layout().lane_record(&lane))?.map(|lane| lane.base);
    let is_affected = run_branch.as_deref() == Some(branch)
        || checked_out_branch(&project.repo, main)?.as_deref() == Some(branch);
    if is_affected { Err(in_place_run_error(&lane)) } else { Ok(()) }
}

/// Returns the error for a command that must wait until the agent of this lane leaves the main checkout.
pub(crate) fn in_place_run_error(lane: &LaneName) -> Error {
    Error::InPlaceRefused {
        reason: format!("the agent of lane '{lane}' works in the main checkout"),
        hints: vec![
            hint!("wait for the agent: git proq wait {lane}"),
            hint!("or stop it: git proq stop {lane}"),
        ],
    }
}

/// Returns the branch that is checked out in the worktree at `dir`.
pub(crate) fn checked_out_branch(repo: &Repo, dir: &Path) -> Result<Option<String>, Error> {
    Ok(WorktreeList::read(repo)?.with_top_folder(dir).and_then(|worktree| worktree.target_branch().cloned()))
}

/// Returns whether a run in the main checkout needs the snapshot `id`, however old the snapshot is.
pub(crate) fn is_snap_needed_in_place(project: &Project, id: &str) -> Result<bool, Error> {
    let Some(name) = lane_running_in_place(project, None)? else { return Ok(false) };
    let layout = project.store.layout();
    let Some(lane) = AnyLane::load_if_exists(&layout.lane_record(&name))? else { return Ok(false) };
    let baseline = CheckoutBaseline::load_if_exists(&layout.run_checkout_baseline(&name, lane.last_run))?;
    Ok(baseline.is_some_and(|baseline| baseline.snapshot_id.as_deref() == Some(id)))
}
