//! Lookup of present and removed lanes by the names that users type.

use std::path::PathBuf;

use proq_store::records::lane::AnyLane;

use crate::lane::{Error, Project};

/// Finds a lane, a removed lane by `name@N`, or the newest lane of a batch's task, or else a lane by the beginning
/// of its name. Returns its record and the folder of its records.
///
/// # Errors
/// Fails when `name` names no lane and no task, and when records cannot be read.
pub fn find_lane_or_task_lane(project: &Project, name: &str) -> Result<(AnyLane, PathBuf), Error> {
    if let Some((dir, lane)) = project.past_lane(name)? {
        return Ok((lane, dir));
    }
    let lane = match project.lane_with_exact_name(name)? {
        Some(lane) => lane,
        None => match find_newest_lane_of_task(project, name)? {
            Some(found) => return Ok(found),
            None => project.find_any_lane(name)?,
        },
    };
    let dir = project.store.layout().lane(&lane.name);
    Ok((lane, dir))
}

/// Finds the newest lane of a batch's task by the task's name in the plan, removed lanes included. Returns
/// its record and the folder of its records.
fn find_newest_lane_of_task(project: &Project, task: &str) -> Result<Option<(AnyLane, PathBuf)>, Error> {
    let layout = project.store.layout();
    let present = project.all_lanes()?.into_iter().map(|lane| {
        let dir = layout.lane(&lane.name);
        (lane, dir)
    });
    let past = project.all_past_lanes().into_iter();
    let past = past.map(|(name, lane)| (lane, layout.removed_lanes().join(name)));
    let is_of_task = |lane: &AnyLane| {
        lane.batch.as_ref().is_some_and(|batch_lane| batch_lane.task.eq_ignore_ascii_case(task))
    };
    Ok(present.chain(past).filter(|(lane, _)| is_of_task(lane)).max_by_key(|(lane, _)| lane.created))
}
