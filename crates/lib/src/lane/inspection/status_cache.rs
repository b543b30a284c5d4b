//! Cache of the status scans of lanes' worktrees, which makes the next scan faster. The cache can be deleted
//! at any time.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proq_base::lane_name::LaneName;
use proq_store::Store;
use proq_store::base::atomic::write_unsynced;
use proq_store::paths::layout::Layout;

/// Maximum time that writing a cache file takes. An older temporary file was left by a process that crashed.
const MAX_WRITE_TIME: Duration = Duration::from_hours(1);

/// Status caches of some lanes, one file for each.
pub(crate) struct StatusCache {
    layout: Layout,
    names: Vec<LaneName>,
    /// Whether cache files without a lane have been removed.
    is_swept: AtomicBool,
}

impl StatusCache {
    /// Creates the cache for the lanes of these names.
    pub fn new<'a>(store: &Store, names: impl Iterator<Item = &'a LaneName>) -> StatusCache {
        StatusCache {
            layout: store.layout().clone(),
            names: names.cloned().collect(),
            is_swept: AtomicBool::new(false),
        }
    }

    /// Returns the cached scan of the lane at position `index` of the names, if there is one.
    pub fn read(&self, index: usize) -> Option<Vec<u8>> {
        proq_base::regular_file::read_store_file(self.layout.worktree_scan_cache(self.names.get(index)?)).ok()
    }

    /// Saves the cached scan of the lane at position `index` of the names, and removes cache files without a
    /// lane. Write errors are ignored, since they only make the next scan slower.
    pub fn save(&self, index: usize, bytes: &[u8]) {
        let Some(name) = self.names.get(index) else { return };
        let saved = write_unsynced(&self.layout.worktree_scan_cache(name), bytes);
        if saved.is_ok() && !self.is_swept.swap(true, Ordering::Relaxed) {
            self.sweep();
        }
    }

    /// Removes the cache files of lanes that have no record, and temporary files that crashed writers left.
    fn sweep(&self) {
        for entry in std::fs::read_dir(self.layout.worktree_scan_caches()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_obsolete = match name.starts_with('.') {
                true => is_abandoned(&entry.path()),
                false => LaneName::parse(&name).map_or(true, |name| !self.layout.has_lane_record(&name)),
            };
            if is_obsolete {
                drop(std::fs::remove_file(entry.path()));
            }
        }
    }
}

/// Returns whether a temporary file is older than [`MAX_WRITE_TIME`], so that nobody writes it any more.
fn is_abandoned(path: &Path) -> bool {
    let age = path.symlink_metadata().and_then(|meta| meta.modified()).map(|time| time.elapsed());
    age.is_ok_and(|age| age.is_ok_and(|age| age > MAX_WRITE_TIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proq_base::diagnostics::Listener;
    use proq_store::Store;

    #[test]
    fn removes_only_files_without_lane() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Store::open(dir.path(), Listener::new(|_| {})).layout().clone();
        let names = ["here", "there"].map(|name| LaneName::parse(name).unwrap());
        let cache =
            StatusCache { layout: layout.clone(), names: names.to_vec(), is_swept: AtomicBool::new(false) };
        for name in &names {
            std::fs::create_dir_all(layout.lane(name)).unwrap();
            std::fs::write(layout.lane_record(name), "").unwrap();
        }
        std::fs::create_dir_all(layout.worktree_scan_caches()).unwrap();
        let (forecasts, gone, young, old) = (
            layout.forecast_cache(),
            layout.worktree_scan_caches().join("gone"),
            layout.worktree_scan_caches().join(".here.1"),
            layout.worktree_scan_caches().join(".here.2"),
        );
        for file in [&forecasts, &gone, &young, &old] {
            std::fs::write(file, "").unwrap();
        }
        let long_ago = std::time::SystemTime::now() - 2 * MAX_WRITE_TIME;
        std::fs::File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        cache.save(0, b"one");
        cache.save(1, b"other");
        assert_eq!((cache.read(0), cache.read(1)), (Some(b"one".to_vec()), Some(b"other".to_vec())));
        assert!(forecasts.exists() && young.exists() && !gone.exists() && !old.exists());
    }
}
