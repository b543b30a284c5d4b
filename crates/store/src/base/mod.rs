//! Records as files: atomic writes, ids, the clock, and errors.

pub mod atomic;
pub mod batch_id;
pub mod clock;
pub mod error;
pub mod file_access;
pub mod file_tree;
pub mod id;
pub mod lazy_record;
mod number;
pub mod operation_number;
pub mod record;
pub(crate) mod record_cache;
pub mod run_number;
pub(crate) mod store_names;
