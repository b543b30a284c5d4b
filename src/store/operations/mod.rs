//! Journal entries of operations, scratch directories, and deletion.

pub(crate) mod delete;
pub(crate) mod journal;
pub(crate) mod operation_entry;
pub(crate) mod scratch;
