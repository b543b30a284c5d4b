//! Object ids, paths, errors, locks and helpers that all of `git` uses.

pub(crate) mod error;
pub(crate) mod error_hints;
pub(crate) mod failed_program;
pub(crate) mod file_copy;
pub(crate) mod folders;
pub(crate) mod fsync;
pub(crate) mod head;
pub(crate) mod local_changes_hint;
pub(crate) mod lock_file;
pub(crate) mod oid;
pub(crate) mod parallel;
pub(crate) mod path;
pub(crate) mod path_list;
#[cfg(test)]
pub(crate) mod test_repo;
pub(crate) mod unusable;
