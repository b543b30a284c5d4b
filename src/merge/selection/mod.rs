//! Which lanes may land, and why others may not.

pub(crate) mod eligibility;
pub(crate) mod lane_examination;
pub(crate) mod lane_refusal;
pub(crate) mod uncommitted_work;
