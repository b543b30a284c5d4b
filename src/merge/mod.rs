//! Landing of lanes: which lanes may land, how git-proq stacks them in memory, checks the result and moves
//! the base in one step. Conflicts are captured and leave the base untouched.

pub(crate) mod checks;
pub(crate) mod comparison;
pub(crate) mod land;
pub(crate) mod queue;
pub(crate) mod resolution;
pub(crate) mod selection;
pub(crate) mod stack;
pub(crate) mod types;
pub(crate) mod verify;

pub(crate) use crate::merge::types::error::Error;
