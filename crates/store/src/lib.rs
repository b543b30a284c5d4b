//! Everything below `<common git dir>/proq`: paths, records, journals and locks.

pub mod base;
pub mod locks;
pub mod operations;
pub mod paths;
pub mod records;
pub mod repository;

pub use crate::base::error::Error;
pub use crate::repository::repo_store::Store;
