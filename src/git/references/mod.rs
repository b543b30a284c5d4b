//! References: reading, transactions, reflogs, new branches and stale lock files.

pub(crate) mod new_branch;
pub(crate) mod ref_transaction;
pub(crate) mod reflog;
pub(crate) mod refs;
pub(crate) mod stale_locks;
