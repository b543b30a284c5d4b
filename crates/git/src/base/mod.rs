//! Object ids, paths, errors, locks and helpers that all of `git` uses.

pub mod error;
pub mod error_hints;
pub mod failed_program;
pub mod file_copy;
pub mod folders;
pub mod fsync;
pub mod head;
pub mod local_changes_remedy;
pub mod lock_file;
pub mod oid;
pub mod parallel;
pub mod path;
pub mod path_list;
#[cfg(test)]
pub mod test_repo;
pub mod unusable;
