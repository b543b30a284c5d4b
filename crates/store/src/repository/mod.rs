//! The store of one repository, and the list of repositories.

pub mod clock_record;
pub mod probe;
pub mod repo_store;
pub mod repositories;
pub mod set_up_files;
