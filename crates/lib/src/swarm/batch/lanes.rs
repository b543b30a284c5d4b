//! Lanes of a batch.

use proq_base::lane_name::LaneName;
use proq_store::base::batch_id::BatchId;
use proq_store::records::lane::LaneRecord;

use crate::lane;
use crate::lane::Project;
use crate::swarm::Error;

/// Returns the lanes of a batch with their numbers, sorted by number. Two lanes with one number should not
/// exist; if they do, the younger one comes last and counts.
pub(crate) fn batch_lanes(project: &Project, batch: &BatchId) -> Result<Vec<(usize, LaneRecord)>, Error> {
    let mut out: Vec<(usize, LaneRecord)> = Vec::new();
    for lane in project.owned_lanes()? {
        let Some(membership) = lane.batch.as_ref().filter(|place| place.batch == *batch) else { continue };
        out.push((membership.lane, lane.clone()));
    }
    out.sort_by_key(|(number, lane)| (*number, lane.created));
    Ok(out)
}

/// Returns the record of the lane with this name, if the lane exists and belongs to this batch.
pub(crate) fn find_batch_lane(
    project: &Project,
    batch: &BatchId,
    name: &LaneName,
) -> Result<Option<LaneRecord>, Error> {
    let is_own = |lane: &LaneRecord| lane.batch.as_ref().is_some_and(|in_batch| in_batch.batch == *batch);
    match project.lane(name) {
        Ok(lane) => Ok(Some(lane).filter(is_own)),
        Err(lane::Error::UnknownLane { .. } | lane::Error::NoLaneBranch { .. }) => Ok(None),
        Err(e) => Err(e.into()),
    }
}
