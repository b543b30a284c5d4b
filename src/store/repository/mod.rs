//! The store of one repository, and the list of repositories.

pub(crate) mod clock_record;
pub(crate) mod probe;
pub(crate) mod repo_store;
pub(crate) mod repositories;
pub(crate) mod set_up_files;
