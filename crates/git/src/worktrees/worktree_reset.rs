//! Reset of a worktree in which commands ran to the state of a new one, except for ignored files: the reset
//! removes what the commands left in its git directory, and what git does not show of its files.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{DirEntry, FileType, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use gix::bstr::BStr;
use gix::index::File;
use gix::index::decode::Options;
use gix::index::entry::Mode;

use crate::index::scratch_index;
use crate::{CommitId, Error, Repo, RepoPath};

/// Name of the folder in the git directory of a check worktree that holds its baseline: index and settings from
/// before any command ran.
const BASELINE_DIR: &str = "proq-kept";
/// Files in the git directory of a worktree without which git does not recognize it, and [`BASELINE_DIR`].
/// All other files there were left by commands, or git creates them when needed.
const ESSENTIAL_FILES: [&str; 4] = ["HEAD", "commondir", "gitdir", BASELINE_DIR];
/// Names in the git directory of a worktree with reftable refs: the folder with its HEAD, and the placeholder
/// that older versions of git expect.
const REFTABLE_FILES: [&str; 2] = ["refs", "reftable"];
/// File with the settings of one worktree.
const WORKTREE_CONFIG: &str = "config.worktree";
/// Name of the file with the result of [`Repo::conversion_key`].
const CONVERSION_KEY_FILE: &str = "form";
/// Files with rules for their folder. git reads them from the worktree in every folder that it visits.
const RULE_FILES: [&str; 2] = [".gitattributes", ".gitignore"];

/// Index of a worktree, with its submodules and attribute files listed separately.
pub struct IndexListing {
    index: File,
    /// Paths of the folders of submodules.
    submodules: Vec<RepoPath>,
    /// Content id and path of each attribute file, NUL-terminated.
    attribute_file_ids: Vec<u8>,
}

impl Repo {
    /// Begins the baseline of a new check worktree, with a copy of the settings that apply only to it.
    pub(crate) fn begin_baseline(admin: &Path) -> Result<(), Error> {
        let baseline = admin.join(BASELINE_DIR);
        std::fs::create_dir(&baseline).map_err(Error::io("create", &baseline))?;
        copy_if_exists(&admin.join(WORKTREE_CONFIG), &baseline.join(WORKTREE_CONFIG))
    }

    /// Returns whether the git directory `admin` of the worktree at `dir` still has the baseline's index, and
    /// commands cannot have left refs in it.
    pub(crate) fn can_reset_worktree(&self, dir: &Path, admin: &Path) -> bool {
        admin.join(BASELINE_DIR).join(scratch_index::INDEX_NAME).exists()
            && (!self.is_reftable() || self.has_no_private_refs(dir))
    }

    /// Returns whether the worktree has no refs that belong to it alone. With reftable such refs are not
    /// files and cannot be removed as files.
    fn has_no_private_refs(&self, dir: &Path) -> bool {
        let call = self.git_in(dir).args(["for-each-ref", "--include-root-refs", "--format=%(refname)"]);
        let is_private = |name: &[u8]| {
            let private_prefixes = ["refs/bisect/", "refs/rewritten/", "refs/worktree/"];
            private_prefixes.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
                || !(name.starts_with(b"refs/") || [&b"HEAD"[..], b"ORIG_HEAD"].contains(&name))
        };
        call.run().is_ok_and(|out| {
            !out.stdout.split(|b| *b == b'\n').any(|name| !name.is_empty() && is_private(name))
        })
    }

    /// Removes everything that commands left in a worktree's git directory, and restores the index and
    /// settings of the baseline. Flags, sparse patterns and times that a command set in the index are lost,
    /// so each file written since counts as different. Returns the conversion key under which the files were
    /// written; `None` for a new worktree, whose baseline has no index.
    pub(crate) fn restore_baseline(&self, admin: &Path) -> Result<Option<Vec<u8>>, Error> {
        let baseline = admin.join(BASELINE_DIR);
        // Without this check another folder could be emptied.
        baseline.symlink_metadata().map_err(Error::io("inspect", &baseline))?;
        for entry in std::fs::read_dir(admin).map_err(Error::io("read", admin))? {
            let entry = entry.map_err(Error::io("read", admin))?;
            let name = entry.file_name();
            let is_any_of = |names: &[&str]| names.iter().any(|known_name| name == *known_name);
            if !(is_any_of(&ESSENTIAL_FILES) || self.is_reftable() && is_any_of(&REFTABLE_FILES)) {
                remove_any(&entry.path(), entry.file_type().ok())?;
            }
        }
        if !self.is_reftable() {
            let refs = admin.join("refs");
            std::fs::create_dir(&refs).map_err(Error::io("create", &refs))?;
        }
        copy_if_exists(&baseline.join(WORKTREE_CONFIG), &admin.join(WORKTREE_CONFIG))?;
        let index = admin.join(scratch_index::INDEX_NAME);
        match std::fs::rename(baseline.join(scratch_index::INDEX_NAME), &index) {
            Ok(()) => Ok(Some(std::fs::read(baseline.join(CONVERSION_KEY_FILE)).unwrap_or_default())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("put back", &index)(e)),
        }
    }

    /// Saves a worktree's index as the baseline, before commands run, with the conversion key under which its
    /// files were written.
    pub fn save_baseline(admin: &Path, conversion_key: &[u8]) -> Result<(), Error> {
        let (baseline, index) = (admin.join(BASELINE_DIR), admin.join(scratch_index::INDEX_NAME));
        let file = baseline.join(CONVERSION_KEY_FILE);
        std::fs::write(&file, conversion_key).map_err(Error::io("write", &file))?;
        let temp_path = baseline.join("index.new");
        scratch_index::copy_with_mtime(&index, &temp_path)?;
        std::fs::rename(&temp_path, baseline.join(scratch_index::INDEX_NAME))
            .map_err(Error::io("write", &temp_path))
    }

    /// Reads the index of a worktree and lists its submodules and attribute files.
    pub(crate) fn read_index_listing(&self, admin: &Path) -> Result<IndexListing, Error> {
        let path = admin.join(scratch_index::INDEX_NAME);
        let index_file = File::at(&path, self.gix.object_hash(), true, Options::default());
        let index_file = index_file.map_err(Error::object(format!("{}", path.display())))?;
        let (mut submodules, mut attributes) = (Vec::new(), Vec::new());
        for entry in index_file.entries() {
            let entry_path = RepoPath::new(entry.path(&index_file).to_vec());
            if entry_path.ends_with_name(b".gitattributes") {
                attributes.extend_from_slice(entry.id.as_slice());
                attributes.extend_from_slice(entry_path.as_bytes());
                attributes.push(0);
            }
            if entry.mode == Mode::COMMIT {
                submodules.push(entry_path);
            }
        }
        Ok(IndexListing { index: index_file, submodules, attribute_file_ids: attributes })
    }

    /// Returns whether a commit has a folder at `path`; `false` if the commit cannot be read.
    pub(crate) fn has_folder(&self, commit: CommitId, path: &RepoPath) -> bool {
        let mut names = path.as_bytes().split(|b| *b == b'/');
        let top = self.tree_reader().tree_of(commit).ok();
        let folder_id = names.try_fold(top, |tree, name| {
            let item = self.tree_reader().tree(tree?).ok()?.get(name)?;
            item.is_tree().then_some(Some(item.id))
        });
        folder_id.is_some()
    }

    /// Returns a key of everything that decides how git converts the files of a worktree: git does not
    /// rewrite files when one of these changes.
    pub fn conversion_key(&self, dir: &Path, listing: &IndexListing) -> Result<Vec<u8>, Error> {
        let mut key = self.conversion_config(dir)?;
        key.push(0);
        key.extend_from_slice(&listing.attribute_file_ids);
        Ok(key)
    }
}

impl IndexListing {
    /// Removes files that would make git wait or see the wrong files, in folders with tracked files and in
    /// those that `is_expected_folder` accepts. These are special files (neither file, folder nor link), and
    /// untracked attribute and ignore files. git blocks on a pipe of such a name. An ignore file with `*`
    /// hides itself and its siblings. Attributes affect the files written next to them. Returns the other
    /// folders found, which were not searched.
    pub(crate) fn remove_blocking_files(
        &self,
        dir: &Path,
        is_expected_folder: &dyn Fn(&RepoPath) -> bool,
    ) -> Result<Vec<RepoPath>, Error> {
        let mut other_folders = Vec::new();
        let mut folders: Vec<(PathBuf, Option<RepoPath>)> = vec![(dir.to_owned(), None)];
        while let Some((folder, path)) = folders.pop() {
            for entry in std::fs::read_dir(&folder).map_err(Error::io("read", &folder))? {
                let (name, kind, file) = name_kind_and_path(entry, &folder)?;
                let entry_path = match &path {
                    None => RepoPath::new(name.as_bytes()),
                    Some(path) => path.join(name.as_bytes()),
                };
                if name == ".git" {
                    continue;
                }
                if kind.is_dir() {
                    match self.has_tracked_below(&entry_path) || is_expected_folder(&entry_path) {
                        true => folders.push((file, Some(entry_path))),
                        false => other_folders.push(entry_path),
                    }
                } else if is_special_file(kind)
                    || RULE_FILES.iter().any(|rule_file| name == *rule_file) && !self.is_tracked(&entry_path)
                {
                    remove_any(&file, Some(kind))?;
                }
            }
        }
        Ok(other_folders)
    }

    fn is_tracked(&self, path: &RepoPath) -> bool {
        self.index.entry_by_path(BStr::new(path.as_bytes())).is_some()
    }

    /// Returns whether the index has files below a folder.
    fn has_tracked_below(&self, folder: &RepoPath) -> bool {
        let prefix = [folder.as_bytes(), b"/"].concat();
        self.index.prefixed_entries(BStr::new(&prefix)).is_some_and(|entries| !entries.is_empty())
    }

    /// Gives the tracked files the permissions of new files. git notices only a change of the executable bit,
    /// and not even a changed time within the second in which it wrote the files.
    fn apply_default_modes(&self, dir: &Path, modes: &DefaultModes) -> Result<(), Error> {
        for entry in self.index.entries() {
            let mode = match entry.mode {
                Mode::FILE => modes.file,
                Mode::FILE_EXECUTABLE => modes.executable,
                _ => continue,
            };
            let file = RepoPath::new(entry.path(&self.index).to_vec()).to_fs_path(dir);
            apply_mode(&file, mode)?;
        }
        Ok(())
    }

    /// Empties the folders of submodules, which are empty in a new worktree.
    pub(crate) fn empty_submodules(&self, dir: &Path) -> Result<(), Error> {
        for path in &self.submodules {
            let folder = path.to_fs_path(dir);
            // A parent folder may be a link that leads elsewhere.
            if !folder.parent().is_some_and(is_real_folder)
                || !folder.symlink_metadata().is_ok_and(|meta| meta.is_dir())
            {
                continue;
            }
            let mut entries = std::fs::read_dir(&folder).map_err(Error::io("read", &folder))?;
            if entries.next().is_some() {
                std::fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))?;
                std::fs::create_dir(&folder).map_err(Error::io("create", &folder))?;
            }
        }
        Ok(())
    }

    /// Creates missing folders of submodules. Fails if a link is in place of a folder or its parent, which
    /// would hide a missing folder from git.
    pub(crate) fn create_submodule_folders(&self, dir: &Path) -> Result<(), Error> {
        for path in &self.submodules {
            let folder = path.to_fs_path(dir);
            if folder.symlink_metadata().is_err() {
                std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
            }
            if !folder.canonicalize().is_ok_and(|real| real == folder) {
                return Err(Error::io("inspect", &folder)(ErrorKind::NotADirectory.into()));
            }
        }
        Ok(())
    }
}

/// Walks all folders of a worktree except ignored ones, and removes special files and nested `.git`, which
/// git skips. Sets the permissions of new ones on the walked folders and the tracked files.
pub(crate) fn clean_folders(
    dir: &Path,
    ignored: &HashSet<RepoPath>,
    listing: &IndexListing,
) -> Result<(), Error> {
    let modes = DefaultModes::detect(dir)?;
    let mut folders: Vec<(PathBuf, Option<RepoPath>)> = vec![(dir.to_owned(), None)];
    while let Some((folder, path)) = folders.pop() {
        apply_mode(&folder, modes.folder)?;
        for entry in std::fs::read_dir(&folder).map_err(Error::io("read", &folder))? {
            let (name, kind, file) = name_kind_and_path(entry, &folder)?;
            let entry_path = match &path {
                None if name == ".git" => continue,
                None => RepoPath::new(name.as_bytes()),
                Some(path) => path.join(name.as_bytes()),
            };
            if name == ".git" || is_special_file(kind) {
                remove_any(&file, Some(kind))?;
            } else if kind.is_dir() && !ignored.contains(&entry_path) {
                folders.push((file, Some(entry_path)));
            }
        }
    }
    listing.apply_default_modes(dir, &modes)
}

/// Removes special files named `.gitignore`, such as pipes, from `folders` and their subfolders, because git
/// would block on them.
pub(crate) fn remove_blocking_ignore_files(dir: &Path, folders: &[RepoPath]) -> Result<(), Error> {
    let mut folders: Vec<PathBuf> = folders.iter().map(|path| path.to_fs_path(dir)).collect();
    while let Some(folder) = folders.pop() {
        // git cannot read such a folder either.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let (name, kind, file) = name_kind_and_path(entry, &folder)?;
            if is_special_file(kind) && name == ".gitignore" {
                remove_any(&file, Some(kind))?;
            } else if kind.is_dir() && name != ".git" {
                folders.push(file);
            }
        }
    }
    Ok(())
}

/// Returns whether a git directory has the saved baseline of its worktree.
pub(crate) fn has_baseline(admin: &Path) -> bool {
    admin.join(BASELINE_DIR).symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

/// Returns whether `path` is a folder and no component of it is a link.
pub(crate) fn is_real_folder(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|real| real == path) && path.is_dir()
}

fn is_special_file(kind: FileType) -> bool {
    !(kind.is_dir() || kind.is_file() || kind.is_symlink())
}

/// Returns the name, kind and path of an entry that was read from `folder`.
fn name_kind_and_path(
    entry: std::io::Result<DirEntry>,
    folder: &Path,
) -> Result<(OsString, FileType, PathBuf), Error> {
    let entry = entry.map_err(Error::io("read", folder))?;
    let kind = entry.file_type().map_err(Error::io("inspect", folder))?;
    Ok((entry.file_name(), kind, entry.path()))
}

/// Permission bits of new folders, files and executables.
struct DefaultModes {
    folder: u32,
    file: u32,
    executable: u32,
}

impl DefaultModes {
    /// Detects the permission bits of a new folder, file and executable by creating them beside the worktree
    /// at `dir`.
    fn detect(dir: &Path) -> Result<DefaultModes, Error> {
        let probe = dir.with_extension("mode");
        // A killed process may have left the probe folder, or a check may have left another file there.
        if let Ok(meta) = probe.symlink_metadata() {
            remove_any(&probe, Some(meta.file_type()))?;
        }
        std::fs::create_dir(&probe).map_err(Error::io("create", &probe))?;
        let mode_of = |path: &Path| path.symlink_metadata().map(|meta| meta.permissions().mode() & 0o7777);
        let new_file_mode = |name: &str, mode: u32| {
            let path = probe.join(name);
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
            mode_of(&path)
        };
        let detect_modes = || {
            Ok(DefaultModes {
                folder: mode_of(&probe)?,
                file: new_file_mode("file", 0o666)?,
                executable: new_file_mode("program", 0o777)?,
            })
        };
        let detected = detect_modes().map_err(Error::io("inspect", &probe));
        drop(std::fs::remove_dir_all(&probe));
        detected
    }
}

/// Sets permission bits on a path; does nothing if it is missing or a link.
fn apply_mode(path: &Path, mode: u32) -> Result<(), Error> {
    let meta = match path.symlink_metadata() {
        // Two names that the file system treats as one have only one file.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        meta => meta.map_err(Error::io("inspect", path))?,
    };
    if meta.permissions().mode() & 0o7777 == mode || meta.is_symlink() {
        return Ok(());
    }
    let set = std::fs::set_permissions(path, Permissions::from_mode(mode));
    set.map_err(Error::io("set the permissions of", path))
}

/// Copies a file; does nothing if it does not exist.
fn copy_if_exists(from: &Path, to: &Path) -> Result<(), Error> {
    match std::fs::copy(from, to) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("copy", from)(e)),
        _ => Ok(()),
    }
}

/// Removes a file, or a folder with its contents if `kind` is a folder.
fn remove_any(path: &Path, kind: Option<FileType>) -> Result<(), Error> {
    let removed = match kind.is_some_and(|kind| kind.is_dir()) {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    };
    removed.map_err(Error::io("remove", path))
}
