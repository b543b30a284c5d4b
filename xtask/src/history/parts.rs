//! Owns the parts that a moment of a repository is made of, and how files change together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file.
    Plain,
    /// A file that its owner may execute.
    Program,
    /// A symbolic link.
    Link,
    /// An entry of `git add -N`, which only an index has.
    Intent,
}

impl Kind {
    /// The kind that git writes as these bits of a mode.
    pub(super) fn of_mode(mode: u32) -> Kind {
        match mode {
            0o120_000.. => Kind::Link,
            _ if mode & 0o100 != 0 => Kind::Program,
            _ => Kind::Plain,
        }
    }
}

/// A file's content, or a link's target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// What it is.
    pub(super) kind: Kind,
    /// Its content.
    pub(super) text: Rc<str>,
}

/// Files by path: a commit's, an index's or a folder's.
pub(super) type Files = BTreeMap<String, File>;

/// A worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree {
    /// The full name of its branch, or a commit.
    pub(super) head: String,
    /// What lies in it, ignored files included.
    pub(super) files: Files,
    /// Its index.
    pub(super) index: Files,
}

/// Changes that were set aside: everything that was not ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snap {
    /// The commit that HEAD was at.
    pub(super) base: String,
    /// The files, tracked and untracked.
    pub(super) files: Files,
    /// The index.
    pub(super) index: Files,
    /// Whether it may have taken in what was changed since: then nobody but git-proq knows what it holds.
    pub(super) unsure: bool,
}

impl Snap {
    /// Files that the index knows, as they were.
    pub(super) fn tracked(&self) -> Files {
        self.files
            .iter()
            .filter(|(p, _)| self.index.contains_key(*p))
            .map(|(p, f)| (p.clone(), f.clone()))
            .collect()
    }

    /// Files that it does not know.
    pub(super) fn untracked(&self) -> Files {
        self.files
            .iter()
            .filter(|(p, _)| !self.index.contains_key(*p))
            .map(|(p, f)| (p.clone(), f.clone()))
            .collect()
    }
}

/// Whether `.gitignore` names a path or a folder above it.
pub(super) fn is_ignored(path: &str) -> bool {
    path.split('/').any(|part| Path::new(part).extension().is_some_and(|e| e == "log"))
}

/// Whether a path lies below another.
pub(super) fn below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// The paths that two sets of files do not agree on.
pub(super) fn differing(a: &Files, b: &Files) -> BTreeSet<String> {
    a.keys().chain(b.keys()).filter(|p| a.get(*p) != b.get(*p)).cloned().collect()
}

impl Tree {
    /// What is neither tracked nor anybody's change.
    pub(super) fn ignored(&self) -> Files {
        let mine = |p: &String| is_ignored(p) && !self.index.contains_key(p);
        self.files.iter().filter(|(p, _)| mine(p)).map(|(p, f)| (p.clone(), f.clone())).collect()
    }

    /// Everything else that lies in it.
    pub(super) fn changes(&self) -> Files {
        let mine = |p: &String| !is_ignored(p) || self.index.contains_key(p);
        self.files.iter().filter(|(p, _)| mine(p)).map(|(p, f)| (p.clone(), f.clone())).collect()
    }

    /// Whether it is what `commit` says, ignored files apart.
    pub(super) fn is_clean(&self, commit: &Files) -> bool {
        self.index == *commit && self.changes() == *commit
    }

    /// Whether bringing it from one commit to another would touch what was changed in it.
    pub(super) fn refuses(&self, from: &Files, to: &Files) -> bool {
        let touched = differing(from, to);
        let mut dirty = differing(from, &self.index);
        dirty.extend(self.index.keys().filter(|p| self.files.get(*p) != self.index.get(*p)).cloned());
        let meets = |p: &String| {
            touched.contains(p) || touched.iter().any(|other| below(p, other) || below(other, p))
        };
        dirty.iter().any(meets) || obstructed(&self.files, from, to)
    }

    /// Brings it from one commit to another.
    pub(super) fn bring(&mut self, from: &Files, to: &Files) {
        for path in differing(from, to) {
            self.files.remove(&path);
            self.index.remove(&path);
            if let Some(file) = to.get(&path) {
                self.files.insert(path.clone(), file.clone());
                self.index.insert(path, file.clone());
            }
        }
    }
}

/// Whether something stands where a file would be new.
pub(super) fn obstructed(there: &Files, from: &Files, to: &Files) -> bool {
    let leaving: BTreeSet<String> =
        differing(from, to).into_iter().filter(|p| from.contains_key(p)).collect();
    let arriving = to.keys().filter(|p| !from.contains_key(*p));
    let stays = |p: &&String| !leaving.contains(*p);
    let mut blocked = arriving.map(|path| {
        there.contains_key(path) || there.keys().filter(stays).any(|p| below(path, p) || below(p, path))
    });
    blocked.any(|b| b)
}
