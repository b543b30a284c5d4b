//! Files written from a snapshot's objects. git writes them below `proq/`, and only complete ones are moved
//! to the worktree, so a killed process leaves no partial file there.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::quarantine::Quarantine;
use crate::base::path::nul_separated;
use crate::index::file_modes::{PathMode, apply_modes};
use crate::index::scratch_index;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, RepoPath, TreeId};

/// Files of one tree that are built in a scratch folder and moved to a worktree.
pub(crate) struct RebuiltFiles<'a> {
    tree: &'a WorktreeContext<'a>,
    /// Tree that the files are written from.
    source_tree: TreeId,
    /// Saved permission bits of the files and of their parent folders.
    modes: &'a [PathMode],
}

impl<'a> RebuiltFiles<'a> {
    /// Plans to write files of `source_tree` to a worktree in one step. They are built in the step's scratch
    /// folder, and get the permission bits in `modes` where listed.
    pub fn new(
        tree: &'a WorktreeContext<'a>,
        source_tree: TreeId,
        modes: &'a [PathMode],
    ) -> RebuiltFiles<'a> {
        RebuiltFiles { tree, source_tree, modes }
    }

    /// Returns the folder in the step's scratch folder in which the files are built.
    fn build_dir(&self) -> PathBuf {
        self.tree.scratch.join(format!("built-{}", self.source_tree))
    }

    /// Returns the path of the marker file that is created once every file is written, before the first one
    /// is moved to the worktree.
    fn complete_marker_path(&self) -> PathBuf {
        self.tree.scratch.join(format!("whole-{}", self.source_tree))
    }

    /// Writes the files of `paths` and moves them to the worktree.
    ///
    /// # Errors
    /// Fails if git cannot write a file, or if its path in the worktree is occupied.
    pub(crate) fn write_to_worktree(&self, paths: &[&RepoPath]) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        let (dir, marker) = (self.build_dir(), self.complete_marker_path());
        // An earlier attempt of the same step may have left a part.
        for (stale, removed) in
            [(&marker, std::fs::remove_file(&marker)), (&dir, std::fs::remove_dir_all(&dir))]
        {
            match removed {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", stale)(e)),
                _ => {}
            }
        }
        let build = Quarantine::open(&dir)?;
        build_files(self.tree, self.source_tree, &dir.join("files"), paths)?;
        // Missing folders in the worktree are created with the modes of these. In a shared repository git set
        // the setgid bit, which only folders below its own folder have.
        for folder in paths.iter().flat_map(|path| path.parents()) {
            let folder = folder.to_fs_path(&dir.join("files"));
            if let Ok(meta) = folder.symlink_metadata() {
                let mode = Permissions::from_mode(meta.permissions().mode() & 0o5777);
                drop(std::fs::set_permissions(&folder, mode));
            }
        }
        let open_modes: Vec<PathMode> =
            self.modes.iter().map(|path_mode| self.with_owner_access(path_mode, &dir)).collect();
        apply_modes(&dir.join("files"), &open_modes, |_| true)?;
        std::fs::write(&marker, "").map_err(Error::io("write", &marker))?;
        proq_base::fail_points::hit("restore.built");
        paths.iter().try_for_each(|path| build.move_out(self.tree.dir, path))
    }

    /// Returns `path_mode`, with owner access added if its path is a folder, because files still have to be
    /// moved out of the built folder.
    fn with_owner_access(&self, path_mode: &PathMode, dir: &Path) -> PathMode {
        let is_folder = path_mode.path.to_fs_path(&dir.join("files")).is_dir();
        PathMode {
            mode: if is_folder { path_mode.mode | 0o700 } else { path_mode.mode },
            ..path_mode.clone()
        }
    }

    /// Returns whether the file of `path` was moved to the worktree.
    pub(crate) fn was_moved_to_worktree(&self, path: &RepoPath) -> bool {
        let files_dir = self.build_dir().join("files");
        self.complete_marker_path().exists() && path.to_fs_path(&files_dir).symlink_metadata().is_err()
    }

    /// Moves the file of `path` from the worktree back to the quarantine `returned`, if this step had moved
    /// it to the worktree. A complete copy that a killed move left there is removed instead. Returns whether
    /// the worktree had the file from this step.
    pub(crate) fn take_from_worktree(&self, path: &RepoPath, returned: &Quarantine) -> Result<bool, Error> {
        if self.was_moved_to_worktree(path) {
            return returned.move_in_again(self.tree.dir, path).map(|_| true);
        }
        if !self.complete_marker_path().exists() {
            return Ok(false);
        }
        let build = Quarantine::open(&self.build_dir())?;
        build.remove_temp_copies(self.tree.dir, std::iter::once(path));
        build.remove_worktree_copy(self.tree.dir, path)
    }
}

/// Lets git write the files of `paths` of the tree `source_tree` to the folder `dir`, as its filters convert
/// them in the worktree.
pub(crate) fn build_files(
    tree: &WorktreeContext<'_>,
    source_tree: TreeId,
    dir: &Path,
    paths: &[&RepoPath],
) -> Result<(), Error> {
    let index = tree.scratch.join(format!("from-{source_tree}"));
    scratch_index::remove_scratch_index(&index);
    let call = || tree.repo.git_in(tree.dir).use_index(&index);
    call().args(["read-tree", "--no-sparse-checkout"]).arg(source_tree.to_string()).mutating().run()?;
    let mut prefix = OsString::from("--prefix=").into_vec();
    prefix.extend(dir.as_os_str().as_bytes());
    prefix.push(b'/');
    call()
        .args(["checkout-index", "-z", "--stdin"])
        .arg(OsString::from_vec(prefix))
        .input(nul_separated(paths.iter().copied()))
        .mutating()
        .run()
        .map(drop)
}
