//! Removal of lanes and of what has expired.

pub mod cleanup;
pub mod discard;
pub mod gc;
pub mod removal;
