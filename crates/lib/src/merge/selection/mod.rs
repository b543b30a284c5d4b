//! Which lanes may land, and why others may not.

pub mod eligibility;
pub mod lane_examination;
pub mod lane_refusal;
pub mod uncommitted_work;
