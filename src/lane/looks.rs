//! Owns what is kept of looks into lanes' worktrees, so that the next one has less to do. It can go at any time.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Project;
use crate::store::{Layout, write_cache};

/// How long a file that is being written may take. One that is older was left by a process that died over it.
const WRITING: Duration = Duration::from_hours(1);

/// Where what is kept of some lanes' worktrees lies.
pub(super) struct Looks {
    layout: Layout,
    names: Vec<String>,
    /// Whether what belongs to no lane is gone.
    is_swept: AtomicBool,
}

impl Looks {
    /// For the lanes of these names.
    pub(super) fn of<'a>(project: &Project, names: impl Iterator<Item = &'a String>) -> Looks {
        Looks {
            layout: project.store.layout().clone(),
            names: names.cloned().collect(),
            is_swept: AtomicBool::new(false),
        }
    }

    /// What there is of the lane that has this number among them.
    pub(super) fn read(&self, at: usize) -> Option<Vec<u8>> {
        crate::regular_file::record(self.layout.look(self.names.get(at)?)).ok()
    }

    /// Keeps what a look left, and lets go of what belongs to no lane any more. Where nothing can be written the next look has
    /// more to do, and that is all.
    pub(super) fn keep(&self, at: usize, bytes: &[u8]) {
        let Some(name) = self.names.get(at) else { return };
        let kept = write_cache(&self.layout.look(name), bytes);
        if kept.is_ok() && !self.is_swept.swap(true, Ordering::Relaxed) {
            self.sweep();
        }
    }

    fn sweep(&self) {
        for entry in std::fs::read_dir(self.layout.looks()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_left = match name.starts_with('.') {
                true => is_old(&entry.path()),
                false => !self.layout.has_lane_record(&name),
            };
            if is_left {
                drop(std::fs::remove_file(entry.path()));
            }
        }
    }
}

fn is_old(path: &Path) -> bool {
    let age = path.symlink_metadata().and_then(|meta| meta.modified()).map(|time| time.elapsed());
    age.is_ok_and(|age| age.is_ok_and(|age| age > WRITING))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::Listener;
    use crate::store::Store;

    #[test]
    fn only_what_belongs_to_no_lane_goes() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Store::at(dir.path(), Listener::new(|_| {})).layout().clone();
        let names = vec!["here".to_owned(), "there".to_owned()];
        let looks = Looks { layout: layout.clone(), names, is_swept: AtomicBool::new(false) };
        for name in ["here", "there"] {
            std::fs::create_dir_all(layout.lane(name)).unwrap();
            std::fs::write(layout.lane_record(name), "").unwrap();
        }
        std::fs::create_dir_all(layout.looks()).unwrap();
        let (forecasts, gone, young, old) =
            (layout.forecasts(), layout.look("gone"), layout.look(".here.1"), layout.look(".here.2"));
        for file in [&forecasts, &gone, &young, &old] {
            std::fs::write(file, "").unwrap();
        }
        let long_ago = std::time::SystemTime::now() - 2 * WRITING;
        std::fs::File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        looks.keep(0, b"one");
        looks.keep(1, b"other");
        assert_eq!((looks.read(0), looks.read(1)), (Some(b"one".to_vec()), Some(b"other".to_vec())));
        assert!(forecasts.exists() && young.exists() && !gone.exists() && !old.exists());
    }
}
