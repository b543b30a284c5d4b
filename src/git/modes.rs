//! Owns permission bits that no commit records: git knows of a file only whether it is executable, and of a folder nothing.

use std::collections::{BTreeMap, HashSet};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::quarantine::is_below_folders;
use super::{Change, Error, Repo, RepoPath};

/// A file or folder of a worktree, and its permission bits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct PathMode {
    /// The path.
    pub(crate) path: RepoPath,
    /// The bits as `chmod` takes them.
    pub(crate) mode: u32,
}

/// The permission bits that this process takes from new files. Asking the system for them would change them for a moment; where
/// `/proc` does not say, the usual ones count.
pub(super) fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let text = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(text.trim(), 8).ok()
}

impl Repo {
    /// Whether the permission bits of files say anything: there are file systems that have none, and git notes that in a setting.
    pub(super) fn trusts_file_modes(&self) -> bool {
        self.gix.config_snapshot().boolean("core.fileMode") != Some(false)
    }
}

/// The permission bits of `paths` below `root`, and of the folders above them, as far as they are there and are not what a new
/// file or folder gets. Links have none.
pub(super) fn unusual_modes<'p>(root: &Path, paths: impl Iterator<Item = &'p RepoPath>) -> Vec<PathMode> {
    let usual = 0o777 & !umask().unwrap_or(0o022);
    let mut known = HashSet::new();
    let mut found = BTreeMap::new();
    for path in paths {
        for path in path.parents().chain([path.clone()]) {
            if known.contains(&path) {
                continue;
            }
            if let Ok(meta) = path.under(root).symlink_metadata() {
                let mode = meta.permissions().mode() & 0o7777;
                let of_new = if meta.is_dir() || mode & 0o100 != 0 { usual } else { usual & !0o111 };
                // A folder has the bit above these from the folder that it was made in.
                if (meta.is_file() && mode != of_new) || (meta.is_dir() && mode & !0o2000 != of_new) {
                    found.insert(path.clone(), mode);
                }
            }
            known.insert(path);
        }
    }
    found.into_iter().map(|(path, mode)| PathMode { path, mode }).collect()
}

/// Gives files below `root` these permission bits, and those folders that `is_new`. A file that git made executable where these
/// bits do not, or the other way round, keeps what git gave it. Returns whether there was anything to change.
///
/// # Errors
/// When the bits of one of them cannot be changed.
pub(super) fn give_modes(
    root: &Path,
    modes: &[PathMode],
    is_new: impl Fn(&RepoPath) -> bool,
) -> Result<bool, Error> {
    let mut changed = false;
    // What is below a folder before the folder, which may be closed then.
    for PathMode { path, mode } in modes.iter().rev() {
        let file = path.under(root);
        let Ok(meta) = file.symlink_metadata() else { continue };
        let now = meta.permissions().mode() & 0o7777;
        let is_meant =
            if meta.is_dir() { is_new(path) } else { meta.is_file() && now & 0o100 == mode & 0o100 };
        if !is_meant || now == *mode || !is_below_folders(root, path) {
            continue;
        }
        std::fs::set_permissions(&file, Permissions::from_mode(*mode))
            .map_err(Error::io("set the permissions of", &file))?;
        changed = true;
    }
    Ok(changed)
}

/// Those of `modes` that belong to a file which `changes` bring, or to a folder above one.
pub(super) fn modes_of(modes: &[PathMode], changes: &[Change]) -> Vec<PathMode> {
    if modes.is_empty() {
        return Vec::new();
    }
    let arriving = changes.iter().filter(|c| c.new.is_some()).map(|c| &c.path);
    let arriving: HashSet<RepoPath> =
        arriving.flat_map(|path| path.parents().chain([path.clone()]).collect::<Vec<_>>()).collect();
    modes.iter().filter(|m| arriving.contains(&m.path)).cloned().collect()
}
