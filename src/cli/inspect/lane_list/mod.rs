//! The lanes of a repository as a table, painted while it loads.

pub(crate) mod footer;
pub(crate) mod painter;
pub(crate) mod summary;
pub(crate) mod table;
