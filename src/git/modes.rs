//! Owns permission bits that no commit records: git knows of a file only whether it is executable, and of a folder nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
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
    /// The bits as `chmod` takes them, and above them the kind as in `st_mode`; 0 in records of earlier versions, which had none.
    pub(crate) mode: u32,
}

/// The bits of a mode that say what kind of file it is.
const KIND: u32 = 0o170_000;
/// The kind of a folder.
const FOLDER: u32 = 0o040_000;

impl PathMode {
    /// Whether it may be of a file of this mode: the bits of a folder are nothing for a file in its place, nor the other way round.
    fn is_for(&self, mode: u32) -> bool {
        self.mode & KIND == 0 || mode & KIND == 0 || self.mode & KIND == mode & KIND
    }

    /// Whether another one says the same thing of the same path, with these or other bits.
    pub(super) fn is_of_the_same(&self, other: &PathMode) -> bool {
        self.path == other.path && self.is_for(other.mode)
    }

    fn bits(&self) -> u32 {
        self.mode & 0o7777
    }
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

    /// Whether git makes links in worktrees; otherwise files with what a link leads to.
    pub(super) fn makes_links(&self) -> bool {
        self.gix.config_snapshot().boolean("core.symlinks") != Some(false)
    }
}

/// The permission bits of `paths` below `root`, and of the folders above them, as far as they are there and are not what a new
/// file or folder gets, here or where a person has set nothing: whoever brings them back may give other bits to new ones. Links have
/// none.
pub(super) fn unusual_modes<'p>(root: &Path, paths: impl Iterator<Item = &'p RepoPath>) -> Vec<PathMode> {
    let usual = usual();
    let mut known = HashSet::new();
    let mut found = BTreeMap::new();
    for path in paths {
        for path in path.parents().chain([path.clone()]) {
            if known.contains(&path) {
                continue;
            }
            if let Ok(meta) = path.under(root).symlink_metadata() {
                let mode = meta.permissions().mode() & 0o7777;
                let is_executable = meta.is_dir() || mode & 0o100 != 0;
                let is_usual = |mode: u32| {
                    [usual, 0o755].iter().all(|all| mode == if is_executable { *all } else { all & !0o111 })
                };
                // A new folder has the bit above these from the folder that it is made in.
                let is_inherited = || mode & 0o2000 == mode_of_parent(root, &path) & 0o2000;
                if (meta.is_file() && !is_usual(mode))
                    || (meta.is_dir() && !(is_usual(mode & !0o2000) && is_inherited()))
                {
                    found.insert(path.clone(), meta.permissions().mode());
                }
            }
            known.insert(path);
        }
    }
    found.into_iter().map(|(path, mode)| PathMode { path, mode }).collect()
}

/// The permission bits of the folder that a path lies in.
fn mode_of_parent(root: &Path, path: &RepoPath) -> u32 {
    let above = path.under(root);
    let meta = above.parent().and_then(|above| above.symlink_metadata().ok());
    meta.map_or(0, |meta| meta.permissions().mode())
}

/// The permission bits that this process gives a new folder.
fn usual() -> u32 {
    0o777 & !umask().unwrap_or(0o022)
}

/// Gives files below `root` these permission bits, and those folders that `is_new`. Whether a file is executable is for git to say:
/// whoever may read it may execute it, or nobody may. Returns whether there was anything to change.
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
    for one in modes.iter().rev() {
        let (path, mode) = (&one.path, one.bits());
        let file = path.under(root);
        let Ok(meta) = file.symlink_metadata() else { continue };
        if !one.is_for(meta.permissions().mode()) {
            continue;
        }
        let now = meta.permissions().mode() & 0o7777;
        let is_meant = if meta.is_dir() { is_new(path) } else { meta.is_file() };
        let mode = match (meta.is_file(), now & 0o100 != 0, mode & 0o100 != 0) {
            (true, true, false) => mode | ((mode & 0o444) >> 2),
            (true, false, true) => mode & !0o111,
            _ => mode,
        };
        if !is_meant || now == mode || !is_below_folders(root, path) {
            continue;
        }
        std::fs::set_permissions(&file, Permissions::from_mode(mode))
            .map_err(Error::io("set the permissions of", &file))?;
        changed = true;
    }
    Ok(changed)
}

/// Those of `modes` that belong to a file which `changes` bring, or to a folder above one, and that they would not get by themselves.
pub(super) fn modes_of(modes: &[PathMode], changes: &[Change]) -> Vec<PathMode> {
    if modes.is_empty() {
        return Vec::new();
    }
    let usual = usual();
    let arriving: Vec<&Change> = changes.iter().filter(|c| c.new.is_some()).collect();
    let above: HashSet<RepoPath> =
        arriving.iter().flat_map(|c| c.path.parents().collect::<Vec<_>>()).collect();
    let of_files: HashMap<&RepoPath, u32> = arriving
        .iter()
        .map(|c| {
            (&c.path, if c.new.is_some_and(|side| side.mode & 0o100 != 0) { usual } else { usual & !0o111 })
        })
        .collect();
    let is_needed = |m: &&PathMode| match of_files.get(&m.path) {
        Some(usual) => m.mode & KIND != FOLDER && m.bits() != *usual,
        None => m.is_for(FOLDER) && above.contains(&m.path) && m.bits() != usual,
    };
    modes.iter().filter(is_needed).cloned().collect()
}
