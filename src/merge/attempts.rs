//! Owns refusing to pick an attempt when another one of its group has landed.

use super::Error;
use super::outcome::Outcome;
use crate::lane::Project;
use crate::store::records::LaneRecord;

/// Refuses to pick a lane while another attempt of its group is on its base, of those that were made before that landed.
pub(super) fn refuse_second_pick(
    project: &Project,
    lane: &LaneRecord,
    onto: &str,
) -> Result<Option<Outcome>, Error> {
    let (Some(group), repo) = (&lane.group, &project.repo) else { return Ok(None) };
    let past = project.past_lanes().into_iter().map(|(_, past)| past);
    for other in project.lanes()?.into_iter().chain(past) {
        let is_other = other.group.as_ref() == Some(group) && other.name != lane.name;
        let Some(landed) = other.landed.filter(|landed| is_other && lane.created <= landed.at) else {
            continue;
        };
        let Some(tip) = repo.branch_tip(&landed.onto)? else { continue };
        if repo.has_object(landed.commit) && repo.is_ancestor(landed.commit, tip)? {
            let why =
                format!("another attempt of '{group}' was picked: '{}' is on {}", other.name, landed.onto);
            return Ok(Some(Outcome::refused(&lane.name, onto, why)));
        }
    }
    Ok(None)
}
