//! Owns what stands in a worktree and that no snapshot can hold: pipes, sockets, devices, repositories of their own, and
//! what cannot be read.

use std::collections::BTreeSet;
use std::fs::FileType;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::path::nul_separated;
use super::transition::Tree;
use super::{Error, Repo, RepoPath};

/// What a file or folder is that may not be read.
const UNREADABLE: &str = "not readable";

/// Something that stays where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct LeftOut {
    /// Where.
    pub(crate) path: RepoPath,
    /// What it is, in words.
    pub(crate) what: String,
}

impl LeftOut {
    pub(super) fn new(path: RepoPath, what: &str) -> LeftOut {
        LeftOut { path, what: what.to_owned() }
    }

    /// A repository inside the worktree that is no submodule.
    pub(super) fn nested(path: RepoPath) -> LeftOut {
        LeftOut::new(path, "a repository of its own")
    }

    /// A file or folder that this user may not read.
    pub(super) fn unreadable(path: RepoPath) -> LeftOut {
        LeftOut::new(path, UNREADABLE)
    }

    /// Whether this user may not read it.
    pub(super) fn is_unreadable(&self) -> bool {
        self.what == UNREADABLE
    }
}

/// What a folder entry is, if no snapshot can hold it.
pub(super) fn special(kind: FileType) -> Option<&'static str> {
    if kind.is_fifo() {
        Some("a named pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_block_device() || kind.is_char_device() {
        Some("a device")
    } else {
        None
    }
}

/// What stands in the folders that git tracks files in. git passes over it without a word.
pub(super) fn beside_tracked(tree: &Tree<'_>, index: &Path) -> Result<Vec<LeftOut>, Error> {
    let mut found = Vec::new();
    for folder in tracked_folders(tree.repo, tree.dir, index)? {
        let inside = |name: &[u8]| folder.as_ref().map_or_else(|| RepoPath::new(name), |f| f.join(name));
        let path = folder.as_ref().map_or_else(|| tree.dir.to_owned(), |f| f.under(tree.dir));
        let entries = match (std::fs::read_dir(&path), &folder) {
            (Ok(entries), _) => entries,
            (Err(e), Some(folder)) if e.kind() == ErrorKind::PermissionDenied => {
                found.push(LeftOut::unreadable(folder.clone()));
                continue;
            }
            // Gone.
            (Err(_), _) => continue,
        };
        for entry in entries.flatten() {
            let Some(what) = entry.file_type().ok().and_then(special) else { continue };
            let path = inside(entry.file_name().as_bytes());
            // A link that has taken the folder's place leads elsewhere.
            if path.parents().all(|up| up.under(tree.dir).symlink_metadata().is_ok_and(|m| m.is_dir())) {
                found.push(LeftOut::new(path, what));
            }
        }
    }
    Ok(found)
}

/// Takes out what git was told to ignore: a server's socket in an ignored place is nobody's change.
pub(super) fn without_ignored(tree: &Tree<'_>, mut found: Vec<LeftOut>) -> Result<Vec<LeftOut>, Error> {
    found.sort();
    found.dedup();
    if found.is_empty() {
        return Ok(found);
    }
    let out = tree
        .repo
        .git_in(tree.dir)
        .args(["check-ignore", "-z", "--stdin"])
        .input(nul_separated(found.iter().map(|l| &l.path)))
        .accept(&[1])
        .run()?;
    let ignored: BTreeSet<RepoPath> = out.fields().map(RepoPath::new).collect();
    found.retain(|l| !ignored.contains(&l.path));
    Ok(found)
}

/// The folders that an index has files in; none is the top. The library reads the file; what it cannot read, git lists.
fn tracked_folders(repo: &Repo, dir: &Path, index: &Path) -> Result<BTreeSet<Option<RepoPath>>, Error> {
    let mut folders = BTreeSet::from([None]);
    let mut add = |path: &[u8]| {
        let slashes = path.iter().enumerate().rev().filter(|(_, b)| **b == b'/');
        for (at, _) in slashes {
            // Its parents were added with it.
            if !folders.insert(Some(RepoPath::new(&path[..at]))) {
                break;
            }
        }
    };
    let read =
        gix::index::File::at(index, repo.gix.object_hash(), true, gix::index::decode::Options::default());
    if let Ok(read) = read {
        read.entries().iter().filter(|e| !e.mode.is_sparse()).for_each(|e| add(e.path(&read)));
    } else {
        let out = repo.git_in(dir).args(["ls-files", "-z"]).index(index).run()?;
        out.fields().for_each(add);
    }
    Ok(folders)
}

/// What stands at `paths` and is no file, link or folder, in words.
pub(super) fn no_files<'p>(dir: &Path, paths: impl IntoIterator<Item = &'p RepoPath>) -> Vec<String> {
    let what = |path: &RepoPath| special(path.under(dir).symlink_metadata().ok()?.file_type());
    paths.into_iter().filter_map(|path| Some(format!("{path} is {}", what(path)?))).collect()
}

/// Those of `paths` that stand there and that this user may not read.
pub(crate) fn unreadable<'p>(dir: &Path, paths: impl IntoIterator<Item = &'p RepoPath>) -> Vec<RepoPath> {
    let denied = |path: &&RepoPath| {
        let file = path.under(dir);
        match file.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => false,
            // To open a pipe would wait for somebody at its other end.
            Ok(_) => access(&file, Access::READ_OK) == Err(Errno::ACCESS),
            // A folder above it that may not be looked into: git takes such a file for deleted.
            Err(e) => e.kind() == ErrorKind::PermissionDenied,
        }
    };
    paths.into_iter().filter(denied).cloned().collect()
}
