//! Quarantine of files in transit: parked by rename or by hard link, checked by content, restored without
//! loss.

use std::collections::HashSet;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use gix::index::entry::Stat;
use gix::index::entry::stat::Options;
use gix::index::fs::Metadata;
use proq_base::fail_points;
use rustix::fs::{Access, CWD, RenameFlags, access, renameat_with};

use crate::base::file_copy::{copy_file, is_copy_on_other_device, is_identical, remove_temp_copies};
use crate::base::folders::{has_real_parents, is_file_in_real_folder, remove_empty_parents};
use crate::base::path::nul_separated;
use crate::history::tree_diff::{TreeChange, TreeFile};
use crate::index::{index_flags, scratch_index};
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, Repo, RepoPath, TreeId};

/// Name of the folder in a quarantine that contains the files.
pub(crate) const FILES_DIR: &str = "files";

/// Folder below `proq/` that holds files of one worktree at the same relative paths.
pub(crate) struct Quarantine {
    /// Folder of the quarantine, in which callers also save data about the files.
    dir: PathBuf,
    /// Subfolder that holds the files.
    files_dir: PathBuf,
}

impl Quarantine {
    /// Opens the quarantine in `dir`, which is created if it is missing.
    pub fn open(dir: &Path) -> Result<Quarantine, Error> {
        let files = dir.join(FILES_DIR);
        std::fs::create_dir_all(&files).map_err(Error::io("create", &files))?;
        Ok(Quarantine { dir: dir.to_owned(), files_dir: files })
    }

    /// Creates a quarantine in `scratch` under a numbered name that no earlier attempt has used.
    pub(crate) fn create_unused(scratch: &Path, name: &str) -> Result<Quarantine, Error> {
        let unused = (1..u32::MAX).map(|n| scratch.join(format!("{name}-{n}"))).find(|dir| !dir.exists());
        Quarantine::open(&unused.unwrap_or_else(|| scratch.join(name)))
    }

    /// Returns the folder of the quarantine, in which callers also save data about the files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the location of the file of `path` in the quarantine.
    pub(crate) fn file_path(&self, path: &RepoPath) -> PathBuf {
        path.to_fs_path(&self.files_dir)
    }

    /// Removes partial copies of quarantined files from the worktree. A process that was killed while it
    /// copied a file back leaves such a copy.
    pub(crate) fn remove_temp_copies<'p>(&self, worktree: &Path, paths: impl Iterator<Item = &'p RepoPath>) {
        paths
            .filter(|path| self.contains(path))
            .for_each(|path| remove_temp_copies(&self.file_path(path), &path.to_fs_path(worktree)));
    }

    /// Returns whether the quarantine contains a file of `path`; a folder only holds files below `path`. A
    /// file that cannot be inspected counts as present: the later restore reports the error, and no
    /// unfinished work counts as done.
    pub fn contains(&self, path: &RepoPath) -> bool {
        match self.file_path(path).symlink_metadata() {
            Ok(meta) => !meta.is_dir(),
            Err(e) => !matches!(
                e.kind(),
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
            ),
        }
    }

    /// Lists the paths of all files in the quarantine.
    pub(crate) fn list_files(&self) -> Result<Vec<RepoPath>, Error> {
        let (mut paths, mut pending) = (Vec::new(), vec![self.files_dir.clone()]);
        while let Some(dir) = pending.pop() {
            for entry in dir.read_dir().map_err(Error::io("list", &dir))? {
                let entry = entry.map_err(Error::io("list", &dir))?;
                let file = entry.path();
                match file.symlink_metadata() {
                    Ok(meta) if meta.is_dir() => pending.push(file),
                    _ => paths.extend(file.strip_prefix(&self.files_dir).ok().and_then(RepoPath::from_path)),
                }
            }
        }
        Ok(paths)
    }

    /// Removes the file of `path`, of which another copy exists.
    pub fn remove_file(&self, path: &RepoPath) -> Result<(), Error> {
        let file = self.file_path(path);
        std::fs::remove_file(&file).map_err(Error::io("remove", &file))
    }

    /// Adds a hard link to the worktree's file at `path` to the quarantine. An edit through the first name is
    /// then not lost when git replaces the file. On another file system it creates a copy. Returns whether
    /// the worktree had a file there.
    pub(crate) fn link_in(&self, worktree: &Path, path: &RepoPath) -> Result<bool, Error> {
        let (from, to) = (path.to_fs_path(worktree), self.file_path(path));
        if !is_file_in_real_folder(worktree, path) {
            return Ok(false);
        }
        create_parents_like(worktree, &self.files_dir, path)?;
        match std::fs::hard_link(&from, &to) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(_) => copy_file(&from, &to).map(|()| true),
        }
    }

    /// Copies the file at `path` from the worktree to the quarantine; does nothing if it does not exist.
    pub(crate) fn copy_in(&self, worktree: &Path, path: &RepoPath) -> Result<(), Error> {
        if !is_file_in_real_folder(worktree, path) {
            return Ok(());
        }
        create_parents_like(worktree, &self.files_dir, path)?;
        copy_file(&path.to_fs_path(worktree), &self.file_path(path))
    }

    /// Copies the file of another quarantine to this one.
    pub(crate) fn copy_from_other(&self, other: &Quarantine, path: &RepoPath) -> Result<(), Error> {
        self.copy_in(&other.files_dir, path)
    }

    /// Moves the file at `path` from the worktree to the quarantine. Returns whether the worktree had a file
    /// there.
    pub(crate) fn move_in(&self, worktree: &Path, path: &RepoPath) -> Result<bool, Error> {
        let (from, to) = (path.to_fs_path(worktree), self.file_path(path));
        if !is_file_in_real_folder(worktree, path) {
            return Ok(false);
        }
        create_parents_like(worktree, &self.files_dir, path)?;
        move_without_replacing(&from, &to).map(|()| true)
    }

    /// Removes the file of `path` in the worktree if it is a copy of the quarantined one. A process that was
    /// killed while it moved the file between file systems leaves such a copy. Returns whether it was one.
    pub(crate) fn remove_worktree_copy(&self, worktree: &Path, path: &RepoPath) -> Result<bool, Error> {
        let (quarantined, in_worktree) = (self.file_path(path), path.to_fs_path(worktree));
        if !is_file_in_real_folder(worktree, path)
            || !is_copy_on_other_device(&in_worktree, &quarantined).unwrap_or(false)
        {
            return Ok(false);
        }
        std::fs::remove_file(&in_worktree).map_err(Error::io("remove", &in_worktree)).map(|()| true)
    }

    /// Moves the file at `path` back from the worktree to the quarantine that held it before. Returns whether
    /// the file had reached the worktree, as far as that can be known.
    pub(crate) fn move_in_again(&self, worktree: &Path, path: &RepoPath) -> Result<bool, Error> {
        if self.contains(path) {
            self.remove_worktree_copy(worktree, path)
        } else {
            self.move_in(worktree, path).map(|_| true)
        }
    }

    /// Moves the file at `path` from the quarantine to the worktree. Fails if something exists there.
    pub(crate) fn move_out(&self, worktree: &Path, path: &RepoPath) -> Result<(), Error> {
        let to = path.to_fs_path(worktree);
        create_parents_like(&self.files_dir, worktree, path)?;
        move_without_replacing(&self.file_path(path), &to)
    }

    /// Moves the file at `path` from the quarantine back to the worktree, or removes it if the same file is there
    /// again. Returns false, and the file stays, if it cannot be moved, as when something else is there.
    pub(crate) fn move_back(&self, worktree: &Path, path: &RepoPath) -> Result<bool, Error> {
        match self.move_out(worktree, path) {
            Ok(()) => Ok(true),
            Err(_) if self.is_same_or_identical(worktree, path) => self.remove_file(path).map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Removes files that `changes` delete and that git left on disk, and the empty folders above them.
    /// `read-tree` succeeds even if it cannot remove a file. A file that another process created at such a
    /// path is not removed.
    pub(crate) fn finish_removals(&self, worktree: &Path, changes: &[TreeChange]) -> Result<(), Error> {
        for TreeChange { path, .. } in changes.iter().filter(|c| c.new.is_none()) {
            if self.is_same_file(worktree, path) {
                let file = path.to_fs_path(worktree);
                std::fs::remove_file(&file).map_err(Error::io("remove", &file))?;
            }
            remove_empty_parents(worktree, path);
        }
        Ok(())
    }

    /// Returns the paths whose quarantined file differs from `expected`, compared as git would add the files.
    /// `attribute_files` returns the `.gitattributes` files that select filters; it is called only if a file
    /// differs byte for byte.
    pub(crate) fn differing_files(
        &self,
        tree: &WorktreeContext<'_>,
        expected: &[(RepoPath, TreeFile)],
        attribute_files: &dyn Fn() -> Result<Vec<(RepoPath, TreeFile)>, Error>,
    ) -> Result<Vec<RepoPath>, Error> {
        // The index is not in the quarantine, which may outlive the step: a killed git leaves its lock.
        let index = tree.scratch.join("check-aside");
        differing_files(tree.repo, &tree.git_dir, &self.files_dir, &index, expected, attribute_files)
    }

    /// Writes a tree that equals `old_tree` except for the files of `paths`, which are taken from the
    /// quarantine.
    pub(crate) fn write_tree_with_quarantined_files(
        &self,
        tree: &WorktreeContext<'_>,
        old_tree: TreeId,
        paths: &[&RepoPath],
    ) -> Result<TreeId, Error> {
        if paths.is_empty() {
            return Ok(old_tree);
        }
        let index = tree.scratch.join(format!("retree-{old_tree}"));
        scratch_index::remove_scratch_index(&index);
        let call = || {
            tree.repo
                .git_in(&self.files_dir)
                .env("GIT_DIR", &tree.git_dir)
                .env("GIT_WORK_TREE", &self.files_dir)
                .use_index(&index)
                .mutating()
        };
        call().args(["read-tree", "--no-sparse-checkout"]).arg(old_tree.to_string()).run()?;
        let list = nul_separated(paths.iter().copied());
        call()
            .args(["-c", "core.safecrlf=false", "update-index", "-z", "--stdin"])
            .input(list)
            .durable()
            .run()?;
        call().durable().run_write_tree()
    }

    /// Returns whether the quarantined file of `path` equals a blob byte for byte.
    pub fn matches_blob(&self, repo: &Repo, path: &RepoPath, side: TreeFile) -> bool {
        matches_blob(repo, &self.file_path(path), side)
    }

    /// Returns whether the quarantine and the worktree have the same file (device and inode) at `path`.
    pub fn is_same_file(&self, worktree: &Path, path: &RepoPath) -> bool {
        let quarantined = self.file_path(path).symlink_metadata();
        let in_worktree = path.to_fs_path(worktree).symlink_metadata();
        matches!((quarantined, in_worktree), (Ok(a), Ok(b)) if (a.dev(), a.ino()) == (b.dev(), b.ino()))
    }

    /// Returns whether the worktree's file at `path` is the quarantined file itself, or equals it in kind,
    /// mode and contents. An equal file counts because the user may have had git write it again, and across
    /// file systems only a copy exists.
    pub(crate) fn is_same_or_identical(&self, worktree: &Path, path: &RepoPath) -> bool {
        self.is_same_file(worktree, path)
            || is_identical(&path.to_fs_path(worktree), &self.file_path(path)).unwrap_or(false)
    }

    /// Removes the quarantine with everything in it.
    pub fn discard(self) {
        drop(std::fs::remove_dir_all(&self.dir));
    }
}

/// Moves parked files from `parked_dir` to a worktree, except those whose paths are occupied.
pub fn restore_parked_files(worktree: &Path, parked_dir: &Path, paths: &[RepoPath]) -> Result<(), Error> {
    let quarantine = Quarantine::open(parked_dir)?;
    let is_free = |path: &RepoPath| {
        path.to_fs_path(worktree).symlink_metadata().is_err() && has_real_parents(worktree, path)
    };
    paths
        .iter()
        .filter(|path| quarantine.contains(path) && is_free(path))
        .try_for_each(|path| quarantine.move_out(worktree, path))
}

/// Returns the paths of `expected` whose file below `root` is missing or differs, compared as git would add
/// the files. Submodules are skipped. `index` is a scratch index, and `attribute_files` returns the
/// `.gitattributes` files that select filters.
pub(crate) fn differing_files(
    repo: &Repo,
    git_dir: &Path,
    root: &Path,
    index: &Path,
    expected: &[(RepoPath, TreeFile)],
    attribute_files: &dyn Fn() -> Result<Vec<(RepoPath, TreeFile)>, Error>,
) -> Result<Vec<RepoPath>, Error> {
    let expected: Vec<&(RepoPath, TreeFile)> = expected
        .iter()
        .filter(|(path, side)| !side.is_gitlink() && !matches_blob(repo, &path.to_fs_path(root), *side))
        .collect();
    if expected.is_empty() {
        return Ok(Vec::new());
    }
    scratch_index::remove_scratch_index(index);
    let mut input = Vec::new();
    for (path, side) in attribute_files()?.iter().chain(expected.iter().copied()) {
        input.extend_from_slice(format!("{:o} {}\t", side.mode, side.oid).as_bytes());
        input.extend_from_slice(path.as_bytes());
        input.push(0);
    }
    let call = || repo.git_in(root).env("GIT_DIR", git_dir).env("GIT_WORK_TREE", root).use_index(index);
    call().args(["update-index", "-z", "--index-info"]).input(input).mutating().run()?;
    call().args(["update-index", "-q", "--refresh"]).mutating().accept_exit_codes(&[1]).run()?;
    let out =
        call().args(["diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=all"]).run()?;
    let wanted: HashSet<&RepoPath> = expected.iter().map(|(p, _)| p).collect();
    let changed = out.nul_separated_fields().map(RepoPath::new).filter(|p| wanted.contains(p)).collect();
    scratch_index::remove_scratch_index(index);
    Ok(changed)
}

/// Returns whether a file equals a blob byte for byte, including its kind and executable bit. With filters a
/// file may be unchanged and still differ from its blob; git decides that. A file that equals its blob has
/// nothing to lose.
pub fn matches_blob(repo: &Repo, file: &Path, side: TreeFile) -> bool {
    let Ok(meta) = file.symlink_metadata() else { return false };
    let bytes = match side.mode {
        0o120_000 if meta.is_symlink() => {
            std::fs::read_link(file).map(|target| target.into_os_string().into_vec())
        }
        0o100_644 | 0o100_755 if meta.is_file() => {
            let executable = meta.permissions().mode() & 0o100 != 0;
            if executable != (side.mode == 0o100_755) {
                return false;
            }
            std::fs::read(file)
        }
        _ => return false,
    };
    bytes.is_ok_and(|bytes| repo.blob_id(&bytes).is_some_and(|id| id.oid() == side.oid))
}

/// Returns git options with which git treats hard-linked files as unchanged, although the links updated their
/// ctime. If nothing else differs from the entries of `linked` in the index copy `index`, the options make
/// git ignore the ctime. Otherwise no options are returned, and git refreshes the index copy.
pub(crate) fn ignore_ctime_options<'p>(
    repo: &Repo,
    dir: &Path,
    index: &Path,
    mut linked: impl Iterator<Item = &'p RepoPath>,
) -> Result<&'static [&'static str], Error> {
    let without_ctime = Options { trust_ctime: false, check_stat: true, use_nsec: true, use_stdev: false };
    let index_file =
        gix::index::File::at(index, repo.gix.object_hash(), true, gix::index::decode::Options::default());
    let is_unchanged = index_file.is_ok_and(|index_file| {
        linked.all(|path| {
            let entry = index_file.entry_by_path(path.as_bytes().into());
            let meta = Metadata::from_path_no_follow(&path.to_fs_path(dir));
            let stat = meta.ok().and_then(|meta| Stat::from_fs(&meta).ok());
            entry.is_some_and(|entry| stat.is_some_and(|stat| entry.stat.matches(&stat, without_ctime)))
        })
    });
    if is_unchanged {
        return Ok(&["-c", "core.trustctime=false"]);
    }
    index_flags::refresh_stat_data(repo, dir, index).map(|()| &[][..])
}

/// Renames a file without replacing another; across file systems, copies and then removes it.
pub(crate) fn move_without_replacing(from: &Path, to: &Path) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::io("move a file to", to)(e);
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::XDEV) => {
            if to.symlink_metadata().is_ok() {
                return Err(failed(ErrorKind::AlreadyExists.into()));
            }
            copy_file(from, to)?;
            fail_points::hit("file.twice");
            std::fs::remove_file(from).map_err(Error::io("remove", from))
        }
        // Some file systems cannot rename without replacing; a hard link never replaces.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
            std::fs::hard_link(from, to).map_err(failed)?;
            std::fs::remove_file(from).map_err(Error::io("remove", from))
        }
        Err(e) => Err(failed(e.into())),
    }
}

/// Creates the missing parent folders of a path below `to`, with the modes that they have below `from`.
fn create_parents_like(from: &Path, to: &Path, path: &RepoPath) -> Result<(), Error> {
    for parent in path.parents() {
        let dir = parent.to_fs_path(to);
        match std::fs::create_dir(&dir) {
            Ok(()) => {
                if let Ok(meta) = parent.to_fs_path(from).metadata() {
                    drop(std::fs::set_permissions(&dir, meta.permissions()));
                    ensure_writable_folder(&dir, meta.permissions());
                }
            }
            // A link would lead elsewhere, so only a real folder is accepted.
            Err(e)
                if e.kind() == ErrorKind::AlreadyExists
                    && dir.symlink_metadata().is_ok_and(|m| m.is_dir()) => {}
            Err(e) => return Err(Error::io("create", &dir)(e)),
        }
    }
    Ok(())
}

/// Adds owner access to a new folder if files could not be created in it with its intended permissions.
fn ensure_writable_folder(dir: &Path, mut permissions: Permissions) {
    if access(dir, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        permissions.set_mode(permissions.mode() | 0o700);
        drop(std::fs::set_permissions(dir, permissions));
    }
}
