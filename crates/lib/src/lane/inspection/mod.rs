//! Views of lanes, their base, and evidence that a lane may be removed.

pub mod attempts;
pub mod base;
pub mod commit_subject;
pub mod evidence;
pub mod idle_lane;
pub mod landing_checks;
pub mod list;
pub mod pull_request_status;
pub mod scope_overlap;
pub mod status_cache;
