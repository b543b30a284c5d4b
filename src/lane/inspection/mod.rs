//! Views of lanes, their base, and evidence that a lane may be removed.

pub(crate) mod attempts;
pub(crate) mod base;
pub(crate) mod evidence;
pub(crate) mod idle_lane;
pub(crate) mod landing_checks;
pub(crate) mod list;
pub(crate) mod scope_overlap;
pub(crate) mod status_cache;
