//! Preparation of the undo of moves: locks of lanes whose records return or leave, and refusals for lanes
//! that would go to the trash again.

use std::collections::BTreeSet;
use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_git::status::status_query;

use crate::errors::undo_error::UndoError;
use crate::lane::Error;
use crate::lane::state::run_lock::{HeldRunLocks, run_lock_after_recovery};
use crate::operation::journaled_operation::step::undo::StepUndo;
use crate::operation::journaled_operation::step::{BoxedStep, MovedPath};

/// Locks the lanes whose records are restored or removed. No run may start in them, and their trash entries
/// must not be deleted concurrently.
pub(super) fn lock_moved_lanes(undo: &StepUndo<'_, '_>) -> Result<(), Error> {
    for name in lanes_with_moved_records(undo) {
        if !undo.op.with_memory(|held: &mut HeldRunLocks| held.0.contains_key(&name)) {
            let lock = run_lock_after_recovery(undo.op.project, &name, None)?;
            undo.op.with_memory(|held: &mut HeldRunLocks| held.0.insert(name, lock));
        }
    }
    Ok(())
}

fn lanes_with_moved_records(undo: &StepUndo<'_, '_>) -> BTreeSet<LaneName> {
    let lanes = undo.op.project.store.layout().lanes();
    let lane_name = |path: &Path| {
        let is_lane = path.parent() == Some(&lanes);
        LaneName::parse(path.file_name().filter(|_| is_lane)?.to_str()?).ok()
    };
    let open_lanes = undo.op.project.owned_lanes().unwrap_or_default();
    // Files of a lane that stays.
    let lane_containing = |path: &Path| {
        let lane = open_lanes.iter().find(|lane| path.starts_with(&lane.path) && *path != *lane.path);
        lane.map(|lane| lane.name.clone())
    };
    let step_lanes = |step: &BoxedStep| {
        let Some(MovedPath { from, to }) = step.moved_path() else { return Vec::new() };
        let lanes: Vec<LaneName> = [from, to].into_iter().filter_map(lane_name).collect();
        match lanes.is_empty() {
            true => lane_containing(from).or_else(|| lane_containing(to)).into_iter().collect(),
            false => lanes,
        }
    };
    undo.entry.applied_steps().flat_map(step_lanes).collect()
}

/// Refuses to move a lane to the trash again if it has uncommitted work that it did not have the first time.
pub(super) fn refuse_new_work(undo: &StepUndo<'_, '_>) -> Result<(), Error> {
    let project = undo.op.project;
    for lane in project.owned_lanes()? {
        let mut moves = undo.entry.applied_steps().filter_map(|step| step.moved_path());
        if !moves.any(|moved| moved.to == lane.path) || !lane.path.exists() {
            continue;
        }
        let paths = status_query::status(&project.repo, &lane.path, true)?.paths();
        if !paths.is_empty() && !is_in_snapshot(undo, &lane.path)? {
            return Err(UndoError::LaneUncommitted { name: lane.name, paths }.into());
        }
    }
    Ok(())
}

/// Returns whether an existing snapshot already holds all uncommitted changes of a worktree.
fn is_in_snapshot(undo: &StepUndo<'_, '_>, dir: &Path) -> Result<bool, Error> {
    let project = undo.op.project;
    let Some(head) = project.repo.head_commit(dir)? else { return Ok(false) };
    let is_held =
        undo.op.lock_worktree(dir)?.write_snapshot(head, "uncommitted work", &[], |contents, _| {
            let ids = project.snap_ids()?;
            Ok(ids
                .iter()
                .filter_map(|id| project.load_snap(id).ok())
                .any(|snap| snap.snapshot.has_same_content(&contents)))
        })?;
    Ok(is_held.unwrap_or(true))
}
