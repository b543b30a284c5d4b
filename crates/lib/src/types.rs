//! Plain types of the lower crates that callers of the use cases name.

pub use proq_git::base::head::RefMove;
pub use proq_git::base::oid::CommitId;
pub use proq_git::snapshots::restore_forecast::RestoreOutcome;
pub use proq_store::base::clock::{Moment, now};
pub use proq_store::base::operation_number::OperationNumber;
pub use proq_store::records::lane::{AnyLane, LanePurpose};
pub use proq_store::records::lane_state::LaneState;
