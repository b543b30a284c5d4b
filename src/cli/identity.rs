//! Owns who is asking: an agent in a lane, by its environment and the folder that it stands in, never by an argument.

use super::Failure;
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

/// The lane that the environment names. Nobody's is an empty one.
fn claimed() -> Option<String> {
    let name = std::env::var_os(LANE)?.to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}
