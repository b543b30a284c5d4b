//! Preconditions and start of an agent run in the main checkout: when it is allowed, what git-proq saves
//! beforehand, and the lock that keeps git-proq from changing the checkout during the run.

use std::path::Path;

use proq_base::fail_points;
use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::lane_name::LaneName;
use proq_git::Repo;
use proq_git::base::error;
use proq_git::repository::open_operation;
use proq_git::status::status_query;
use proq_store::Store;
use proq_store::base::atomic::write as write_atomically;
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::baseline::CheckoutBaseline;
use proq_store::records::lane::AnyLane;
use proq_store::records::preview::PreviewRecord;
use proq_store::records::snapshot::SnapshotRecord;

use super::in_place_baseline::capture_baseline;
use crate::lane::parking::snapshot_store;
use crate::lane::state::in_place_guard::{checked_out_branch, in_place_run_error, lane_running_in_place};
use crate::lane::{Error, Project};
use crate::operation::locked_worktree::LockedWorktree;

/// Checks that a run of a lane can work in the main checkout, without changing anything.
///
/// # Errors
/// [`Error::InPlaceRefused`] with the reason.
pub fn require_in_place_possible(project: &Project, lane: &LaneName, branch: &str) -> Result<(), Error> {
    let main = project.repo.require_main()?;
    let refused = |reason: String, help: Hint| Err(Error::InPlaceRefused { reason, hints: vec![help] });
    if let Some(preview) = PreviewRecord::load_if_exists(&project.store.layout().preview_record())? {
        return refused(
            format!("the main checkout shows lane '{}'", preview.lane),
            hint!("leave the preview: git proq preview --back"),
        );
    }
    if let Some(other) = lane_running_in_place(project, Some(lane))? {
        return Err(in_place_run_error(&other));
    }
    if let Some(git_operation) =
        open_operation::find_open_git_operation(&project.repo.worktree_git_dir(main)?)
    {
        return refused(
            format!("a {} is in progress in the main checkout", git_operation.command),
            hint!("see how to finish or abort it: git status"),
        );
    }
    let switch_hint = hint!("list branches to switch to: git branch");
    match checked_out_branch(&project.repo, main)? {
        Some(current) if project.is_managed_branch(&current) => {
            return refused(
                format!("the main checkout is on '{current}', which belongs to git-proq"),
                switch_hint,
            );
        }
        Some(current) if current != branch => {
            return refused(
                format!("the main checkout is on '{current}', and lane '{lane}' works on '{branch}'"),
                hint!("switch to it: git switch {branch}"),
            );
        }
        Some(_) => {}
        None => return refused("the main checkout is on no branch".to_owned(), switch_hint),
    }
    require_nothing_staged(&project.repo, main)
}

/// Refuses while files are staged or unmerged in the main checkout: staged files would go into the run's
/// commit.
fn require_nothing_staged(repo: &Repo, main: &Path) -> Result<(), Error> {
    let dirty = status_query::status(repo, main, false)?;
    let unmerged = dirty.unmerged();
    if !unmerged.is_empty() {
        let reason = format!("the main checkout has unresolved conflicts: {}", error::list_paths(&unmerged));
        return Err(Error::InPlaceRefused {
            reason,
            hints: vec![hint!("see how to resolve them: git status")],
        });
    }
    let mut staged: Vec<_> = dirty.staged().map(|entry| entry.path.clone()).collect();
    staged.extend(repo.intent_to_add_paths(main, None)?);
    if staged.is_empty() {
        return Ok(());
    }
    Err(Error::InPlaceRefused {
        reason: format!("these files are staged in the main checkout: {}", error::list_paths(&staged)),
        hints: vec![hint!("commit them: git commit"), hint!("or unstage them: git reset")],
    })
}

/// Prepares a run of a lane in the main checkout. It saves a snapshot of the uncommitted changes, creates a
/// ref on the current commit, and writes a record of the files that are there. The caller holds the lane's
/// run lock, and keeps the returned lock until the lane's record marks it as running. Anybody who changes the
/// main checkout, or starts another in-place run, holds the same lock while checking.
///
/// # Errors
/// [`Error::InPlaceRefused`], and [`Error::Git`] for changes that no snapshot can hold. Nothing was changed then.
pub(crate) fn start_in_place_run<'p>(
    project: &'p Project,
    lane: &AnyLane,
    run_number: RunNumber,
) -> Result<LockedWorktree<'p>, Error> {
    let layout = project.store.layout();
    let checkout = LockedWorktree::lock(project, &lane.path)?;
    require_in_place_possible(project, &lane.name, &lane.base)?;
    write_atomically(&layout.last_in_place_lane_file(), format!("{}\n", lane.name).as_bytes())?;
    fail_points::hit("in-place.noted");
    let unborn = || Error::UnbornBranch { branch: lane.base.clone() };
    let head = project.repo.head_commit(&lane.path)?.ok_or_else(unborn)?;
    let reason = format!("uncommitted when lane {} began to work in the main checkout", lane.name);
    let snap = checkout.write_snapshot(head, &reason, &[], |snapshot, raw| {
        let record = SnapshotRecord::new_copy(&reason, snapshot);
        snapshot_store::save_snapshot(project, &record, raw)?;
        Ok(record.id)
    })?;
    // Git collects unreferenced commits, and an agent may move the branch anywhere.
    let saved_ref = format!("refs/proq/saved/{}-{}", lane.name, new_id());
    project.repo.create_ref(&saved_ref, head, &format!("git-proq: before lane {} works here", lane.name))?;
    fail_points::hit("in-place.kept");
    capture_baseline(project, &checkout, saved_ref, snap)?
        .save(&layout.run_checkout_baseline(&lane.name, run_number))?;
    fail_points::hit("in-place.begun");
    Ok(checkout)
}

/// Prepares another run in the main checkout under the same supervisor. Copies the baseline of the last run,
/// so that the user's files from before the first run still count as the user's.
///
/// # Errors
/// Fails when the last run's record cannot be read or the next one cannot be written.
pub(crate) fn carry_baseline_to_next_run(store: &Store, lane: &AnyLane) -> Result<(), Error> {
    let layout = store.layout();
    let baseline = CheckoutBaseline::load(&layout.run_checkout_baseline(&lane.name, lane.last_run))?;
    Ok(baseline.save(&layout.run_checkout_baseline(&lane.name, lane.last_run.next()))?)
}
