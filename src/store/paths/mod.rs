//! Paths of all files below `proq`, and access to them.

pub(crate) mod batch_files;
pub(crate) mod event_files;
pub(crate) mod file_access;
pub(crate) mod layout;
pub(crate) mod path_form;
pub(crate) mod run_files;
