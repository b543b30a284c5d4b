//! The index: reading and writing, flags, stat data and sparse entries.

pub mod cached_tree;
pub mod entry_stat;
pub mod file_modes;
pub mod full_index;
pub mod index_flags;
pub mod index_lock;
pub mod no_conversion;
pub mod raw_index;
pub mod refresh_index;
pub mod scratch_index;
pub mod sparse_entries;
pub mod sparse_patterns;
pub mod staged_entries;
