//! Creation of lanes, one or many, and files synced into them.

pub(crate) mod create;
pub(crate) mod create_many;
pub(crate) mod sync_files;
