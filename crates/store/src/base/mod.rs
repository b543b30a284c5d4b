//! Records as files: atomic writes, ids, the clock, and errors.

pub mod atomic;
pub mod clock;
pub mod error;
pub mod file_tree;
pub mod id;
pub mod record;
