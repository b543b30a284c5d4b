//! Landing of lanes: which lanes may land, how git-proq stacks them in memory, checks the result and moves
//! the base in one step. Conflicts are captured and leave the base untouched.

pub mod checks;
pub mod comparison;
pub mod land;
pub mod queue;
pub mod resolution;
pub mod selection;
pub mod stack;
pub mod types;
pub mod verify;

pub use crate::merge::types::error::Error;
