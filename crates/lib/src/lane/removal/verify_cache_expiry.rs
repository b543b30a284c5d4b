//! Expiry of the verify cache: passed checks are remembered for a limited time, because they depend on more
//! than the tree.

use std::time::Duration;

use proq_store::Store;
use proq_store::base::record::Record;
use proq_store::records::check::VerifyCacheRecord;

use crate::lane::context::expiry_item::{ExpiredItem, ExpiryScan, ItemSource, RetainedItem};

/// Age at which a cached check result expires.
pub(crate) const VERIFY_CACHE_LIFETIME: Duration = Duration::from_hours(30 * 24);

/// Finds the cached check results that have expired.
pub fn find_expired(store: &Store) -> ExpiryScan {
    let mut found = ExpiryScan::default();
    let entries = std::fs::read_dir(store.layout().verify_cache()).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|e| e.path()).collect();
    files.sort();
    for path in files.into_iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match VerifyCacheRecord::load_if_exists(&path) {
            Ok(Some(cached)) if cached.passed_at.is_older_than(VERIFY_CACHE_LIFETIME) => {
                found.expired.push(ExpiredItem {
                    name,
                    age_start: cached.passed_at,
                    source: ItemSource::StorePath(path),
                });
            }
            Ok(_) => {}
            Err(e) => found.retained.push(RetainedItem::unreadable(name, &e)),
        }
    }
    found
}
