//! A lane that was removed, for the error of a command that names it.

/// A lane that was removed, for an error that names it.
#[derive(Debug)]
pub struct RemovedLane {
    /// Name of the lane in the history, `NAME@N`.
    pub past_name: String,
    /// What became of the lane and how long ago, as a clause.
    pub fate: String,
}
