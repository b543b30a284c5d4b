//! Owns files that are written from a snapshot's objects. git writes them below `proq/`, and only whole ones are moved to the
//! worktree: a process that is killed leaves no half-written file there.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::index;
use super::modes::{PathMode, give_modes};
use super::path::nul_separated;
use super::quarantine::Quarantine;
use super::transition::Tree;
use super::{Error, Oid, RepoPath};

/// Files of one tree on their way to a worktree.
pub(super) struct Rebuilt<'a> {
    tree: &'a Tree<'a>,
    /// The tree that they are written from.
    from: Oid,
    /// Permission bits that some of them had, and folders above them.
    modes: &'a [PathMode],
}

impl<'a> Rebuilt<'a> {
    /// Files of `from` that one step writes to a worktree, found from the step's scratch folder; as far as `modes` says they get
    /// these permission bits.
    pub(super) fn of(tree: &'a Tree<'a>, from: Oid, modes: &'a [PathMode]) -> Rebuilt<'a> {
        Rebuilt { tree, from, modes }
    }

    fn dir(&self) -> PathBuf {
        self.tree.scratch.join(format!("built-{}", self.from))
    }

    /// Exists as soon as every file is written, so before the first one is moved to the worktree.
    fn mark(&self) -> PathBuf {
        self.tree.scratch.join(format!("whole-{}", self.from))
    }

    /// Writes the files of `paths` and moves them to the worktree.
    ///
    /// # Errors
    /// When git cannot write one of them, or when something stands in its place in the worktree.
    pub(super) fn bring(&self, paths: &[&RepoPath]) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        let (dir, mark) = (self.dir(), self.mark());
        // An earlier try of the same step may have left a part.
        for (left, gone) in [(&mark, std::fs::remove_file(&mark)), (&dir, std::fs::remove_dir_all(&dir))] {
            match gone {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", left)(e)),
                _ => {}
            }
        }
        let built = Quarantine::at(&dir)?;
        self.write(paths)?;
        // The folders here are made like these in the worktree, where there are none. In a repository that is shared git gave them a
        // bit that only those below its own folder have.
        for folder in paths.iter().flat_map(|path| path.parents()) {
            let folder = folder.under(&dir.join("files"));
            if let Ok(meta) = folder.symlink_metadata() {
                let mode = Permissions::from_mode(meta.permissions().mode() & 0o5777);
                drop(std::fs::set_permissions(&folder, mode));
            }
        }
        let open: Vec<PathMode> = self.modes.iter().map(|one| self.kept_open(one, &dir)).collect();
        give_modes(&dir.join("files"), &open, |_| true)?;
        std::fs::write(&mark, "").map_err(Error::io("write", &mark))?;
        crate::fault::point("restore.built");
        paths.iter().try_for_each(|path| built.give(self.tree.dir, path))
    }

    /// The permission bits of a file, or of a folder from which files have to be moved yet.
    fn kept_open(&self, one: &PathMode, dir: &Path) -> PathMode {
        let is_folder = one.path.under(&dir.join("files")).is_dir();
        PathMode { mode: if is_folder { one.mode | 0o700 } else { one.mode }, ..one.clone() }
    }

    fn write(&self, paths: &[&RepoPath]) -> Result<(), Error> {
        let index = self.tree.scratch.join(format!("from-{}", self.from));
        index::forget(&index);
        let call = || self.tree.repo.git_in(self.tree.dir).index(&index);
        call().args(["read-tree", "--no-sparse-checkout"]).arg(self.from.to_string()).changes().run()?;
        let mut prefix = OsString::from("--prefix=").into_vec();
        prefix.extend(self.dir().join("files").into_os_string().into_vec());
        prefix.push(b'/');
        call()
            .args(["checkout-index", "-z", "--stdin"])
            .arg(OsString::from_vec(prefix))
            .input(nul_separated(paths.iter().copied()))
            .changes()
            .run()
            .map(drop)
    }

    /// Whether the file of `path` was moved to the worktree.
    pub(super) fn has_brought(&self, path: &RepoPath) -> bool {
        let at = self.dir().join("files");
        self.mark().exists() && path.under(&at).symlink_metadata().is_err()
    }

    /// Moves the file of `path` to `returned` if it was moved to the worktree. Returns whether it was.
    pub(super) fn take_again(&self, path: &RepoPath, returned: &Quarantine) -> Result<bool, Error> {
        if self.has_brought(path) {
            return returned.take_again(self.tree.dir, path).map(|_| true);
        }
        if !self.mark().exists() {
            return Ok(false);
        }
        let built = Quarantine::at(&self.dir())?;
        built.remove_drafts(self.tree.dir, std::iter::once(path));
        built.drop_copy(self.tree.dir, path)
    }
}
