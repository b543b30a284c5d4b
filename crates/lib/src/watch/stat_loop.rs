//! Comparison of file states where inotify cannot watch: on other systems, and when this user has too many
//! watches.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

use super::target::{Target, WHOLE_TREE};

/// Targets with the states of their files when they were last compared.
#[derive(Debug, Default)]
pub(super) struct StatLoop {
    targets: Vec<Target>,
    /// Hash of the names, sizes and times in each target.
    states: Vec<u64>,
}

impl StatLoop {
    /// Adds a target.
    pub(super) fn add(&mut self, target: Target) {
        self.states.push(state_of(&target));
        self.targets.push(target);
    }

    /// Returns the numbers of the targets that have changed since the last call. A target with all folders
    /// below it is too large to compare, and counts as changed each time.
    pub(super) fn take_changed(&mut self) -> BTreeSet<usize> {
        let mut changed = BTreeSet::new();
        for (number, target) in self.targets.iter().enumerate() {
            let state = state_of(target);
            if target.depth == WHOLE_TREE || state != self.states[number] {
                self.states[number] = state;
                changed.insert(number);
            }
        }
        changed
    }
}

fn state_of(target: &Target) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut folders = if target.depth == WHOLE_TREE { vec![] } else { vec![(target.folder.clone(), 0)] };
    while let Some((folder, level)) = folders.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(&folder).into_iter().flatten().flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries.iter().filter(|entry| target.names.contains(&entry.file_name())) {
            let Ok(meta) = entry.metadata() else { continue };
            entry.path().hash(&mut hasher);
            [meta.ino(), meta.size()].hash(&mut hasher);
            [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()].hash(&mut hasher);
        }
        folders.extend(target.subfolders(&folder, level).into_iter().map(|path| (path, level + 1)));
    }
    hasher.finish()
}
