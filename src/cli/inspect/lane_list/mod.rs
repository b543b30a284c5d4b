//! The lanes of a repository as a list: its data, and their output as a table and as JSON.

pub(crate) mod conflicts;
pub(crate) mod data;
pub(crate) mod json_output;
pub(crate) mod load;
pub(crate) mod painter;
pub(crate) mod summary;
pub(crate) mod table;
