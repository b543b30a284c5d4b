//! Journal entries of operations, scratch directories, and deletion.

pub mod delete;
pub mod journal;
pub mod operation_entry;
pub mod origin;
pub mod scratch;
