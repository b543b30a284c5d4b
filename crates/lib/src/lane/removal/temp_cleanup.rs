//! Cleanup of leftovers of crashed processes that no recovery completes: half-written files, folders without
//! a file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proq_base::process::identity::start_time_of;
use proq_store::base::clock::Moment;
use proq_store::base::id::{id_created_at, pid_from_id};
use proq_store::paths::layout::Layout;

use crate::lane::Project;
use crate::lane::context::expiry_item::{ExpiredItem, ExpiryScan, ItemSource};
use crate::lane::worktree::trash::has_only_folders;

/// Minimum age of a leftover file: a younger one may belong to a process on another machine that shares the
/// disk.
const MIN_TEMP_AGE: Duration = Duration::from_hours(24);

/// Finds half-written files, files that a repair parked, and folders of snapshots and of the trash that hold
/// no file.
pub fn find_expired(project: &Project) -> ExpiryScan {
    let layout = project.store.layout();
    let trash_age = project.settings.trash_keep.max(MIN_TEMP_AGE);
    let mut found: Vec<(PathBuf, Moment)> = Vec::new();
    let mut add_if_older = |path: PathBuf, min_age: Duration| {
        let at = id_created_at(&file_name(&path)).filter(|at| at.is_older_than(min_age));
        found.extend(at.map(|at| (path, at)));
    };
    for file in layout.unfinished_files() {
        if has_dead_writer(&file) {
            add_if_older(file, MIN_TEMP_AGE);
        }
    }
    for path in layout.parked_unfinished_files() {
        add_if_older(path, trash_age);
    }
    let (snapshots, trash) = (layout.snapshots(), layout.trash());
    for folder in [&snapshots, &trash] {
        for name in Layout::entry_names(folder) {
            let dir = folder.join(&name);
            if has_dead_writer(&dir)
                && (has_only_folders(&dir) || folder == &snapshots && is_unfinished_snapshot(&dir))
            {
                add_if_older(dir, MIN_TEMP_AGE);
            }
        }
    }
    let to_item = |(path, at): (PathBuf, Moment)| {
        let name = path.strip_prefix(layout.root()).unwrap_or(&path).display().to_string();
        ExpiredItem { name, age_start: at, source: ItemSource::StorePath(path) }
    };
    ExpiryScan { expired: found.into_iter().map(to_item).collect(), retained: Vec::new() }
}

/// Returns the last component of a path as text.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns whether the process named in a temporary file's name has exited.
fn has_dead_writer(path: &Path) -> bool {
    pid_from_id(&file_name(path)).is_some_and(|pid| start_time_of(pid).is_none())
}

/// Returns whether a snapshot's folder contains only copies: its record was not written, and no file was
/// moved there.
fn is_unfinished_snapshot(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| {
        entries.all(|entry| entry.is_ok_and(|e| Layout::is_snapshot_copy(&e.file_name())))
    })
}
