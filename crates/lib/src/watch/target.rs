//! Place to watch: a folder, the names in it that matter, and the levels of folders below it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Folder to watch. It need not exist yet.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub folder: PathBuf,
    /// Files that matter, by their names.
    pub names: Names,
    /// Number of levels of folders below it that are watched too.
    pub depth: usize,
    /// Folders below it that are not watched.
    pub skipped: HashSet<PathBuf>,
}

/// Depth of a target with all folders below it.
pub(super) const WHOLE_TREE: usize = usize::MAX;

/// Names of the files that matter in a target.
#[derive(Debug, Clone)]
pub(super) enum Names {
    All,
    Only(OsString),
    StartingWith(&'static str),
    /// All but lock files of git, which renames them to the files that they lock.
    ExceptLocks,
}

impl Names {
    /// Returns whether a file of this name matters.
    pub(super) fn contains(&self, name: &OsStr) -> bool {
        match self {
            Names::All => true,
            Names::Only(only) => name == only,
            Names::StartingWith(start) => name.as_bytes().starts_with(start.as_bytes()),
            Names::ExceptLocks => !name.as_bytes().ends_with(b".lock"),
        }
    }
}

impl Target {
    /// Creates a target without folders to skip.
    pub(super) fn new(folder: PathBuf, names: Names, depth: usize) -> Target {
        Target { folder, names, depth, skipped: HashSet::new() }
    }

    /// Returns whether a folder at a level below the target's folder, which is level 0, is watched.
    pub(super) fn includes(&self, folder: &Path, level: usize) -> bool {
        level <= self.depth
            && folder.file_name() != Some(OsStr::new(".git"))
            && !self.skipped.contains(folder)
    }

    /// Lists the watched folders in `folder`, which is at `level`.
    pub(super) fn subfolders(&self, folder: &Path, level: usize) -> Vec<PathBuf> {
        if level >= self.depth {
            return Vec::new();
        }
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| entry.path()).filter(|path| self.includes(path, level + 1)).collect()
    }
}
