//! Paths of all files below `proq`, and access to them.

pub mod batch_files;
pub mod event_files;
pub mod file_access;
pub mod layout;
pub mod path_form;
pub mod run_files;
