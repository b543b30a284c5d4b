//! Refusal to pick an attempt when another attempt of its group has landed.

use super::Error;
use super::outcome::LaneOutcome;
use crate::lane::Project;
use crate::store::records::LaneRecord;

/// Refuses to pick a lane while another attempt of its group is on the base `onto`. Only attempts that landed
/// after `lane` was created count. Returns none when the lane may be picked.
pub(super) fn refuse_second_pick(
    project: &Project,
    lane: &LaneRecord,
    onto: &str,
) -> Result<Option<LaneOutcome>, Error> {
    let (Some(group), repo) = (&lane.group, &project.repo) else { return Ok(None) };
    let removed_lanes = project.past_lanes().into_iter().map(|(_, past)| past);
    for other in project.lanes()?.into_iter().chain(removed_lanes) {
        let is_other = other.group.as_ref() == Some(group) && other.name != lane.name;
        let Some(landed) = other.landed.filter(|landed| is_other && lane.created <= landed.at) else {
            continue;
        };
        let Some(tip) = repo.branch_tip(&landed.onto)? else { continue };
        if repo.has_object(landed.commit) && repo.is_ancestor(landed.commit, tip)? {
            let reason =
                format!("another attempt of '{group}' was picked: '{}' is on {}", other.name, landed.onto);
            return Ok(Some(LaneOutcome::refused(&lane.name, onto, reason)));
        }
    }
    Ok(None)
}
