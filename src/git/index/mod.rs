//! The index: reading and writing, flags, stat data and sparse entries.

pub(crate) mod cached_tree;
pub(crate) mod entry_stat;
pub(crate) mod file_modes;
pub(crate) mod full_index;
pub(crate) mod index_flags;
pub(crate) mod index_lock;
pub(crate) mod no_conversion;
pub(crate) mod raw_index;
pub(crate) mod refresh_index;
pub(crate) mod scratch_index;
pub(crate) mod sparse_entries;
pub(crate) mod sparse_patterns;
pub(crate) mod staged_entries;
