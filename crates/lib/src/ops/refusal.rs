//! Refusals that several use cases share.

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;
use proq_store::records::lane::LaneRecord;

/// Reason why a use case is refused to its caller.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Refusal {
    /// The caller works in a lane, and only the user or the supervising agent may do this.
    #[error("cannot do this from lane '{agent_lane}': only a person or the supervising agent may")]
    #[hint("an agent in a lane can report on its task: git proq task update --status TEXT")]
    InLane {
        /// Name of the caller's lane, as its environment or folder has it.
        agent_lane: String,
    },
    /// A person answered a question with no.
    #[error("nothing was changed")]
    Declined,
    /// A lane is another one than when its plan was made, or has had a run since.
    #[error("lane '{lane}' has changed since the plan was computed; nothing was changed")]
    #[hint("show the lane: git proq show {lane}")]
    LaneChanged {
        /// Name of the lane.
        lane: LaneName,
    },
}

/// Refuses what only the user, or the agent that supervises all lanes, may do. `calling_lane` is the lane in
/// which the caller works, if any.
///
/// # Errors
/// [`Refusal::InLane`].
pub fn refuse_in_lane(calling_lane: Option<&str>) -> Result<(), Refusal> {
    calling_lane.map_or(Ok(()), |lane| Err(Refusal::InLane { agent_lane: lane.to_owned() }))
}

/// Refuses a lane that was created again, or that had a run, after a plan for it was made. `planned` is its
/// record at that time, and `current` its record under its lock.
///
/// # Errors
/// [`Refusal::LaneChanged`].
pub fn refuse_changed_lane<P, Q>(planned: &LaneRecord<P>, current: &LaneRecord<Q>) -> Result<(), Refusal> {
    match current.is_same_lane(planned) && current.last_run == planned.last_run {
        true => Ok(()),
        false => Err(Refusal::LaneChanged { lane: planned.name.clone() }),
    }
}
