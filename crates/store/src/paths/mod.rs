//! Paths of all files below `proq`, and access to them.

pub mod batch_files;
pub mod event_files;

pub mod lane_files;
pub mod layout;
pub mod path_form;
pub mod run_files;
pub mod scratch_files;
pub mod snapshot_files;
pub mod trash_files;
