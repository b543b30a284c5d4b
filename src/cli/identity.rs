//! Owns who is asking: an agent in a lane, by its environment and the folder that it stands in, never by an argument.

use super::{Failure, Mistake, Session};
use crate::lane::{self, Own, Project};

/// Names the lane to its agent.
const LANE: &str = "PROQ_LANE";

/// The lane that this process works in.
///
/// # Errors
/// [`lane::Error::NoLaneHere`] outside of any, [`lane::Error::OtherLane`] when its environment names another one.
pub(super) fn own_lane(project: &Project) -> Result<Own, Failure> {
    Ok(lane::own_lane(project, claimed().as_deref())?)
}

/// Refuses what only a person, or the agent that supervises all lanes, may do.
///
/// # Errors
/// [`Mistake::InLane`] in a lane, or where the environment names one.
pub(super) fn refuse_in_lane(session: &Session, project: &Project) -> Result<(), Failure> {
    let standing = project.repo.here().unwrap_or(&session.dir);
    let inside = standing.starts_with(project.lanes_dir());
    let name = match (claimed(), inside) {
        (Some(name), _) => name,
        (None, true) => lane::own_lane(project, None).map_or_else(
            // One that is half-made, or half-removed.
            |_| standing.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            |own| own.lane.name,
        ),
        (None, false) => return Ok(()),
    };
    Err(Mistake::InLane { lane: name }.into())
}

/// The lane that the environment names. Nobody's is an empty one.
fn claimed() -> Option<String> {
    let name = std::env::var_os(LANE)?.to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}
