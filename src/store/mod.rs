//! Everything below `<common git dir>/proq`: paths, records, journals and locks.

pub(crate) mod base;
pub(crate) mod locks;
pub(crate) mod operations;
pub(crate) mod paths;
pub(crate) mod records;
pub(crate) mod repository;

pub(crate) use crate::store::base::error::Error;
pub(crate) use crate::store::repository::repo_store::Store;
