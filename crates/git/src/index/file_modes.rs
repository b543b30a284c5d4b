//! Permission bits that no commit records: git stores for a file only whether it is executable, and nothing
//! for a folder.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::base::folders::has_real_parents;
use crate::history::tree_diff::TreeChange;
use crate::{Error, Repo, RepoPath};

/// Permission bits of a file or folder of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PathMode {
    /// Path of the file or folder below the top of the worktree.
    pub path: RepoPath,
    /// Bits as `chmod` takes them, and above them the file kind as in `st_mode`; the kind is 0 in records of
    /// earlier versions.
    pub mode: u32,
}

/// Bits of `st_mode` that hold the file kind.
const FILE_KIND_MASK: u32 = 0o170_000;
/// File kind of a folder in `st_mode`.
const FOLDER_KIND: u32 = 0o040_000;

impl PathMode {
    /// Returns whether the recorded bits may apply to a path of mode `mode`: bits of a folder mean nothing
    /// for a file in its place, and vice versa.
    fn matches_kind(&self, mode: u32) -> bool {
        self.mode & FILE_KIND_MASK == 0
            || mode & FILE_KIND_MASK == 0
            || self.mode & FILE_KIND_MASK == mode & FILE_KIND_MASK
    }

    /// Returns whether `other` has the same path and a compatible file kind, with the same or other bits.
    pub(crate) fn has_same_path_and_kind(&self, other: &PathMode) -> bool {
        self.path == other.path && self.matches_kind(other.mode)
    }

    fn permission_bits(&self) -> u32 {
        self.mode & 0o7777
    }
}

/// Returns the umask of this process; `None` if `/proc` does not report it. The system call that returns the
/// umask would also change it for a moment.
pub(crate) fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let text = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(text.trim(), 8).ok()
}

impl Repo {
    /// Returns whether permission bits of files are meaningful: some file systems have none, and git records
    /// that in `core.fileMode`.
    pub(crate) fn trusts_file_modes(&self) -> bool {
        self.gix.config_snapshot().boolean("core.fileMode") != Some(false)
    }

    /// Returns whether git creates symbolic links in worktrees; otherwise it writes files that contain the
    /// link's target.
    pub(crate) fn creates_symlinks(&self) -> bool {
        self.gix.config_snapshot().boolean("core.symlinks") != Some(false)
    }
}

/// Returns the permission bits of existing `paths` below `root` and of their parent folders, unless they are
/// the defaults of a new file or folder under this umask or the usual umask. A later process that restores
/// the files may have another umask. Symbolic links have no bits.
pub(crate) fn unusual_modes<'p>(root: &Path, paths: impl Iterator<Item = &'p RepoPath>) -> Vec<PathMode> {
    let default_mode = default_folder_mode();
    let mut checked = HashSet::new();
    let mut unusual = BTreeMap::new();
    for path in paths {
        for path in path.parents().chain([path.clone()]) {
            if checked.contains(&path) {
                continue;
            }
            if let Ok(meta) = path.to_fs_path(root).symlink_metadata() {
                let mode = meta.permissions().mode() & 0o7777;
                let is_executable = meta.is_dir() || mode & 0o100 != 0;
                let is_default = |mode: u32| {
                    [default_mode, 0o755].iter().all(|folder_mode| {
                        mode == if is_executable { *folder_mode } else { folder_mode & !0o111 }
                    })
                };
                // A new folder inherits the setgid bit, above these bits, from its parent folder.
                let is_inherited = || mode & 0o2000 == mode_of_parent(root, &path) & 0o2000;
                if (meta.is_file() && !is_default(mode))
                    || (meta.is_dir() && !(is_default(mode & !0o2000) && is_inherited()))
                {
                    unusual.insert(path.clone(), meta.permissions().mode());
                }
            }
            checked.insert(path);
        }
    }
    unusual.into_iter().map(|(path, mode)| PathMode { path, mode }).collect()
}

/// Returns the mode of the folder that contains a path; 0 if it cannot be read.
fn mode_of_parent(root: &Path, path: &RepoPath) -> u32 {
    let full_path = path.to_fs_path(root);
    let meta = full_path.parent().and_then(|parent| parent.symlink_metadata().ok());
    meta.map_or(0, |meta| meta.permissions().mode())
}

/// Returns the permission bits that this process gives a new folder.
fn default_folder_mode() -> u32 {
    0o777 & !umask().unwrap_or(0o022)
}

/// Applies permission bits to the files below `root`, and to those folders for which `is_new_folder` holds.
/// Whether a file is executable is decided by git: everyone who may read the file may execute it, or no one
/// may. Returns whether anything changed.
///
/// # Errors
/// Fails if the bits of a file or folder cannot be changed.
pub(crate) fn apply_modes(
    root: &Path,
    modes: &[PathMode],
    is_new_folder: impl Fn(&RepoPath) -> bool,
) -> Result<bool, Error> {
    let mut changed = false;
    // The reverse order handles the contents of a folder before the folder, which the new bits may close.
    for path_mode in modes.iter().rev() {
        let (path, mode) = (&path_mode.path, path_mode.permission_bits());
        let file = path.to_fs_path(root);
        let Ok(meta) = file.symlink_metadata() else { continue };
        if !path_mode.matches_kind(meta.permissions().mode()) {
            continue;
        }
        let current = meta.permissions().mode() & 0o7777;
        let is_target = if meta.is_dir() { is_new_folder(path) } else { meta.is_file() };
        let mode = match (meta.is_file(), current & 0o100 != 0, mode & 0o100 != 0) {
            (true, true, false) => mode | ((mode & 0o444) >> 2),
            (true, false, true) => mode & !0o111,
            _ => mode,
        };
        if !is_target || current == mode || !has_real_parents(root, path) {
            continue;
        }
        std::fs::set_permissions(&file, Permissions::from_mode(mode))
            .map_err(Error::io("set the permissions of", &file))?;
        changed = true;
    }
    Ok(changed)
}

/// Returns those of `modes` that belong to a file written by `changes` or to one of its parent folders, and
/// that differ from the defaults.
pub(crate) fn modes_for_written_files(modes: &[PathMode], changes: &[TreeChange]) -> Vec<PathMode> {
    if modes.is_empty() {
        return Vec::new();
    }
    let folder_mode = default_folder_mode();
    let written: Vec<&TreeChange> = changes.iter().filter(|c| c.new.is_some()).collect();
    let parent_folders: HashSet<RepoPath> =
        written.iter().flat_map(|c| c.path.parents().collect::<Vec<_>>()).collect();
    let default_file_modes: HashMap<&RepoPath, u32> = written
        .iter()
        .map(|c| {
            (
                &c.path,
                if c.new.is_some_and(|side| side.mode & 0o100 != 0) {
                    folder_mode
                } else {
                    folder_mode & !0o111
                },
            )
        })
        .collect();
    let is_needed = |m: &&PathMode| match default_file_modes.get(&m.path) {
        Some(file_mode) => m.mode & FILE_KIND_MASK != FOLDER_KIND && m.permission_bits() != *file_mode,
        None => {
            m.matches_kind(FOLDER_KIND)
                && parent_folders.contains(&m.path)
                && m.permission_bits() != folder_mode
        }
    };
    modes.iter().filter(is_needed).cloned().collect()
}
