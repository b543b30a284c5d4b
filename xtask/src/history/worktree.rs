//! Parts of a repository's state, and how the files of a worktree change together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

/// Kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Regular file.
    Regular,
    /// File that its owner may execute.
    Executable,
    /// Symbolic link.
    Symlink,
    /// Entry of `git add -N`; only an index has such entries.
    IntentToAdd,
}

impl Kind {
    /// Returns the kind that git writes as these mode bits.
    pub(super) fn from_mode(mode: u32) -> Kind {
        match mode {
            0o120_000.. => Kind::Symlink,
            _ if mode & 0o100 != 0 => Kind::Executable,
            _ => Kind::Regular,
        }
    }
}

/// Content of a file, or target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// Kind of the file.
    pub(super) kind: Kind,
    /// Content of the file.
    pub(super) text: Rc<str>,
}

/// Files by path, of a commit, an index or a folder.
pub(super) type Files = BTreeMap<String, File>;

/// State of one worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Worktree {
    /// Full name of its branch, or a commit id.
    pub(super) head: String,
    /// Files in it, including ignored files.
    pub(super) files: Files,
    /// Its index.
    pub(super) index: Files,
}

/// Parked changes: everything that was not ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Commit that HEAD was at.
    pub(super) base: String,
    /// Files, tracked and untracked.
    pub(super) files: Files,
    /// Index.
    pub(super) index: Files,
    /// Whether later changes may be part of the snapshot, so that only git-proq knows its content.
    pub(super) is_uncertain: bool,
}

impl Snapshot {
    /// Returns the files that the index has an entry for, as they were.
    pub(super) fn tracked(&self) -> Files {
        self.files
            .iter()
            .filter(|(p, _)| self.index.contains_key(*p))
            .map(|(p, f)| (p.clone(), f.clone()))
            .collect()
    }

    /// Returns the files that the index has no entry for.
    pub(super) fn untracked(&self) -> Files {
        self.files
            .iter()
            .filter(|(p, _)| !self.index.contains_key(*p))
            .map(|(p, f)| (p.clone(), f.clone()))
            .collect()
    }
}

/// Returns whether `.gitignore` matches the path or a folder above it.
pub(super) fn is_ignored(path: &str) -> bool {
    path.split('/').any(|part| Path::new(part).extension().is_some_and(|e| e == "log"))
}

/// Returns whether a path is below another path.
pub(super) fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the paths at which two sets of files differ.
pub(super) fn differing_paths(a: &Files, b: &Files) -> BTreeSet<String> {
    a.keys().chain(b.keys()).filter(|p| a.get(*p) != b.get(*p)).cloned().collect()
}

impl Worktree {
    /// Returns the files that are ignored and not tracked.
    pub(super) fn ignored_files(&self) -> Files {
        let is_ignored_file = |p: &String| is_ignored(p) && !self.index.contains_key(p);
        self.files.iter().filter(|(p, _)| is_ignored_file(p)).map(|(p, f)| (p.clone(), f.clone())).collect()
    }

    /// Returns the files that are tracked or not ignored.
    pub(super) fn visible_files(&self) -> Files {
        let is_visible = |p: &String| !is_ignored(p) || self.index.contains_key(p);
        self.files.iter().filter(|(p, _)| is_visible(p)).map(|(p, f)| (p.clone(), f.clone())).collect()
    }

    /// Returns whether index and files equal the commit, apart from ignored files.
    pub(super) fn is_clean(&self, commit: &Files) -> bool {
        self.index == *commit && self.visible_files() == *commit
    }

    /// Returns whether moving the worktree from one commit to another would touch local changes.
    pub(super) fn blocks_checkout(&self, from: &Files, to: &Files) -> bool {
        let touched = differing_paths(from, to);
        let mut dirty = differing_paths(from, &self.index);
        dirty.extend(self.index.keys().filter(|p| self.files.get(*p) != self.index.get(*p)).cloned());
        let overlaps = |p: &String| {
            touched.contains(p) || touched.iter().any(|other| is_below(p, other) || is_below(other, p))
        };
        dirty.iter().any(overlaps) || is_obstructed(&self.files, from, to)
    }

    /// Moves the worktree from one commit to another.
    pub(super) fn checkout(&mut self, from: &Files, to: &Files) {
        for path in differing_paths(from, to) {
            self.files.remove(&path);
            self.index.remove(&path);
            if let Some(file) = to.get(&path) {
                self.files.insert(path.clone(), file.clone());
                self.index.insert(path, file.clone());
            }
        }
    }
}

/// Returns whether an existing file blocks a file that would be new.
pub(super) fn is_obstructed(existing: &Files, from: &Files, to: &Files) -> bool {
    let leaving: BTreeSet<String> =
        differing_paths(from, to).into_iter().filter(|p| from.contains_key(p)).collect();
    let arriving = to.keys().filter(|p| !from.contains_key(*p));
    let stays = |p: &&String| !leaving.contains(*p);
    let mut blocked = arriving.map(|path| {
        existing.contains_key(path)
            || existing.keys().filter(stays).any(|p| is_below(path, p) || is_below(p, path))
    });
    blocked.any(|b| b)
}
