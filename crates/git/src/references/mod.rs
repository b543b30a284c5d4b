//! References: reading, transactions, reflogs, new branches and stale lock files.

pub mod branch_files;
mod lock_holders;
pub mod locked_branch;
pub mod loose_ref;
pub mod new_branch;
pub mod recreated_ref;
pub mod ref_transaction;
pub mod reflog;
pub mod refs;
pub mod stale_locks;
