//! Owns clearing away what dead processes had begun and nobody comes back to: half-written files, folders without a file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Project;
use super::expire::{Old, Spare, What};
use crate::process::birth_of;
use crate::store::{Moment, made_at, maker_of};

/// What is younger may belong to a process on another machine that shares the disk.
const OLD: Duration = Duration::from_hours(24);

/// Half-written files, what a repair put aside, and folders of snapshots and of the trash that hold no file.
pub(super) fn old(project: &Project) -> Old {
    let layout = project.store.layout();
    let keep = project.settings.trash_keep.max(OLD);
    let mut found: Vec<(PathBuf, Moment)> = Vec::new();
    let mut take = |path: PathBuf, keep: Duration| {
        let at = made_at(&name_of(&path)).filter(|at| at.is_older_than(keep));
        found.extend(at.map(|at| (path, at)));
    };
    for file in layout.half_written() {
        if is_dead(&file) {
            take(file, OLD);
        }
    }
    for path in layout.put_aside_before() {
        take(path, keep);
    }
    for what in ["snaps", "trash"] {
        for name in layout.names_in(what) {
            let dir = layout.folder_of(what, &name);
            if is_dead(&dir) && (is_hollow(&dir) || what == "snaps" && is_unfinished(&dir)) {
                take(dir, OLD);
            }
        }
    }
    let spare = |(path, at): (PathBuf, Moment)| {
        let name = path.strip_prefix(layout.root()).unwrap_or(&path).display().to_string();
        Spare { name, at, what: What::Draft(path) }
    };
    Old { spare: found.into_iter().map(spare).collect(), stays: Vec::new() }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_dead(path: &Path) -> bool {
    maker_of(&name_of(path)).is_some_and(|pid| birth_of(pid).is_none())
}

/// Whether a snapshot's folder has only copies in it: its record was not written, and nothing was moved there.
fn is_unfinished(dir: &Path) -> bool {
    let is_copy = |name: &std::ffi::OsStr| name == "ignored" || name == "index";
    std::fs::read_dir(dir).is_ok_and(|mut all| all.all(|entry| entry.is_ok_and(|e| is_copy(&e.file_name()))))
}

/// Whether there are only folders in a folder.
pub(super) fn is_hollow(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| {
        entries.all(|entry| {
            entry.is_ok_and(|e| e.file_type().is_ok_and(|kind| kind.is_dir()) && is_hollow(&e.path()))
        })
    })
}
