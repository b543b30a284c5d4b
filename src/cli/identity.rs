//! Owns who is asking: an agent in a lane, by its environment and the folder that it stands in, never by an argument.

use super::{Failure, Mistake, Session};
use crate::lane::{self, Own, Project};

/// Names the lane to its agent.
const LANE: &str = "PROQ_LANE";

/// The variable that the process of an agent has, and those of hooks and set-up commands have not.
const ATTEMPT: &str = "PROQ_ATTEMPT";

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
    match asking(session, project) {
        Some(lane) => Err(Mistake::InLane { lane }.into()),
        None => Ok(()),
    }
}

/// Refuses what an agent in a lane may do to that lane only, when it is about others.
///
/// # Errors
/// As [`refuse_in_lane`].
pub(super) fn refuse_for_others(
    session: &Session,
    project: &Project,
    lanes: &[String],
) -> Result<(), Failure> {
    match asking(session, project).filter(|own| lanes.iter().any(|lane| lane != own)) {
        Some(lane) => Err(Mistake::InLane { lane }.into()),
        None => Ok(()),
    }
}

/// Refuses an agent what changes other lanes than its own, their bases or the main checkout. A person in a lane's folder may do it,
/// and so may the commands that a person has set up. A dry run is for everybody.
///
/// # Errors
/// [`Mistake::OthersLane`] for an agent of a lane, unless `lanes` is that lane and no other.
pub(super) fn refuse_agent_for_others(lanes: &[String], dry_run: bool) -> Result<(), Failure> {
    let is_agent = std::env::var_os(ATTEMPT).is_some_and(|attempt| !attempt.is_empty());
    match claimed().filter(|_| is_agent && !dry_run) {
        Some(own) if lanes.is_empty() || lanes.iter().any(|lane| *lane != own) => {
            Err(Mistake::OthersLane { own }.into())
        }
        _ => Ok(()),
    }
}

/// The lane in which somebody asks; none outside of all.
fn asking(session: &Session, project: &Project) -> Option<String> {
    let standing = project.repo.here().unwrap_or(&session.dir);
    let inside = project.is_on_lanes_ground(standing).unwrap_or(true);
    match (claimed(), inside) {
        (Some(name), _) => Some(name),
        (None, true) => Some(lane::own_lane(project, None).map_or_else(
            // One that is half-made, or half-removed.
            |_| standing.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            |own| own.lane.name,
        )),
        (None, false) => None,
    }
}

/// The lane that the environment names. Nobody's is an empty one.
fn claimed() -> Option<String> {
    let name = std::env::var_os(LANE)?.to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}
