//! Records as files: atomic writes, ids, the clock, and errors.

pub(crate) mod atomic;
pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod file_tree;
pub(crate) mod id;
pub(crate) mod record;
