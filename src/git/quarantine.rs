//! Owns files on their way: set aside by rename or by hard link, checked by content, put back without loss.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use gix::index::entry::Stat;
use gix::index::entry::stat::Options;
use gix::index::fs::Metadata;
use rustix::fs::{Access, CWD, RenameFlags, access, renameat_with};

use super::file_copy::{copy_file, is_alike, is_copy, remove_drafts};
use super::index;
use super::path::nul_separated;
use super::transition::Tree;
use super::{Change, Error, Oid, Repo, RepoPath, Side, flags};
use crate::fault;

/// The name of the folder in it that has the files.
pub(super) const FILES: &str = "files";

/// A folder below `proq/` that mirrors the paths of one worktree.
pub(super) struct Quarantine {
    dir: PathBuf,
    files: PathBuf,
}

impl Quarantine {
    /// Uses `dir`, which is made when missing.
    pub(super) fn at(dir: &Path) -> Result<Quarantine, Error> {
        let files = dir.join(FILES);
        std::fs::create_dir_all(&files).map_err(Error::io("create", &files))?;
        Ok(Quarantine { dir: dir.to_owned(), files })
    }

    /// Uses a folder of this name in `scratch` that no earlier try has put anything in.
    pub(super) fn fresh(scratch: &Path, name: &str) -> Result<Quarantine, Error> {
        let free = (1..u32::MAX).map(|n| scratch.join(format!("{name}-{n}"))).find(|dir| !dir.exists());
        Quarantine::at(&free.unwrap_or_else(|| scratch.join(name)))
    }

    /// The folder that it was made for, in which others keep what belongs to the files.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the file of `path` lies here.
    pub(super) fn place(&self, path: &RepoPath) -> PathBuf {
        path.under(&self.files)
    }

    /// Removes what a killed process left in the worktree of copies of files that lie here still.
    pub(super) fn remove_drafts<'p>(&self, worktree: &Path, paths: impl Iterator<Item = &'p RepoPath>) {
        paths
            .filter(|path| self.holds(path))
            .for_each(|path| remove_drafts(&self.place(path), &path.under(worktree)));
    }

    /// Whether a file of `path` lies here. A folder is there for files below `path`. One that cannot be looked at counts as there:
    /// whoever is to bring it back meets the error, and nothing is taken for done that is not.
    pub(super) fn holds(&self, path: &RepoPath) -> bool {
        match self.place(path).symlink_metadata() {
            Ok(meta) => !meta.is_dir(),
            Err(e) => !matches!(
                e.kind(),
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
            ),
        }
    }

    /// Removes the file of `path`, of which there is another copy.
    pub(super) fn forget(&self, path: &RepoPath) -> Result<(), Error> {
        let place = self.place(path);
        std::fs::remove_file(&place).map_err(Error::io("remove", &place))
    }

    /// Gives the file a second name here, so that an edit made through the first one is not lost when git replaces
    /// it. On another file system it is a copy. Returns whether there was a file.
    pub(super) fn link(&self, worktree: &Path, path: &RepoPath) -> Result<bool, Error> {
        let (from, to) = (path.under(worktree), self.place(path));
        if !stands_no_folder(worktree, path) {
            return Ok(false);
        }
        make_parents_like(worktree, &self.files, path)?;
        match std::fs::hard_link(&from, &to) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(_) => copy_file(&from, &to).map(|()| true),
        }
    }

    /// Copies the file here, if there is one.
    pub(super) fn copy(&self, worktree: &Path, path: &RepoPath) -> Result<(), Error> {
        if !stands_no_folder(worktree, path) {
            return Ok(());
        }
        make_parents_like(worktree, &self.files, path)?;
        copy_file(&path.under(worktree), &self.place(path))
    }

    /// Copies the file here that another quarantine holds.
    pub(super) fn copy_of(&self, other: &Quarantine, path: &RepoPath) -> Result<(), Error> {
        self.copy(&other.files, path)
    }

    /// Moves the file here. Returns whether there was a file.
    pub(super) fn take(&self, worktree: &Path, path: &RepoPath) -> Result<bool, Error> {
        let (from, to) = (path.under(worktree), self.place(path));
        if !stands_no_folder(worktree, path) {
            return Ok(false);
        }
        make_parents_like(worktree, &self.files, path)?;
        move_new(&from, &to).map(|()| true)
    }

    /// Removes the file of `path` in the worktree if it is a copy of the one that is held here, as it is when somebody was killed
    /// who moved it from one file system to the other. Returns whether it was one.
    pub(super) fn drop_copy(&self, worktree: &Path, path: &RepoPath) -> Result<bool, Error> {
        let (here, there) = (self.place(path), path.under(worktree));
        if !stands_no_folder(worktree, path) || !is_copy(&there, &here).unwrap_or(false) {
            return Ok(false);
        }
        std::fs::remove_file(&there).map_err(Error::io("remove", &there)).map(|()| true)
    }

    /// Moves the file here again, from where it was put. Returns whether it had been put there, as far as can be known.
    pub(super) fn take_again(&self, worktree: &Path, path: &RepoPath) -> Result<bool, Error> {
        if self.holds(path) {
            self.drop_copy(worktree, path)
        } else {
            self.take(worktree, path).map(|_| true)
        }
    }

    /// Moves the file to the worktree, where nothing may stand in its place.
    pub(super) fn give(&self, worktree: &Path, path: &RepoPath) -> Result<(), Error> {
        let to = path.under(worktree);
        make_parents_like(&self.files, worktree, path)?;
        move_new(&self.place(path), &to)
    }

    /// Moves the file to the worktree over whatever stands there, for going back.
    pub(super) fn give_over(&self, worktree: &Path, path: &RepoPath) -> Result<(), Error> {
        let (from, to) = (self.place(path), path.under(worktree));
        make_parents_like(&self.files, worktree, path)?;
        match std::fs::rename(&from, &to) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == ErrorKind::CrossesDevices => {
                copy_file(&from, &to)?;
                self.forget(path)
            }
            Err(e) => Err(Error::io("put back", &to)(e)),
        }
    }

    /// Removes files that `changes` take away and that git left, with the folders this empties: `read-tree` ends well when
    /// it cannot remove something. A file that somebody else put there meanwhile stays.
    pub(super) fn finish_removals(&self, worktree: &Path, changes: &[Change]) -> Result<(), Error> {
        for Change { path, .. } in changes.iter().filter(|c| c.new.is_none()) {
            if self.is_same_file(worktree, path) {
                let file = path.under(worktree);
                std::fs::remove_file(&file).map_err(Error::io("remove", &file))?;
            }
            prune_parents(worktree, path);
        }
        Ok(())
    }

    /// The paths whose file here is no longer what `expected` says, compared as git would add them.
    /// `attributes` finds the `.gitattributes` files that decide about filters; it is asked only when they matter.
    pub(super) fn differing(
        &self,
        tree: &Tree<'_>,
        expected: &[(RepoPath, Side)],
        attributes: &dyn Fn() -> Result<Vec<(RepoPath, Side)>, Error>,
    ) -> Result<Vec<RepoPath>, Error> {
        // Not in this folder, which may outlive the step: a git that is killed leaves its lock.
        let index = tree.scratch.join("check-aside");
        differing(tree.repo, &tree.git_dir, &self.files, &index, expected, attributes)
    }

    /// A tree with the files of `paths` as they are here, and otherwise as it was.
    pub(super) fn retree(&self, tree: &Tree<'_>, old: Oid, paths: &[&RepoPath]) -> Result<Oid, Error> {
        if paths.is_empty() {
            return Ok(old);
        }
        let index = tree.scratch.join(format!("retree-{old}"));
        index::forget(&index);
        let call = || {
            tree.repo
                .git_in(&self.files)
                .env("GIT_DIR", &tree.git_dir)
                .env("GIT_WORK_TREE", &self.files)
                .index(&index)
                .changes()
        };
        call().args(["read-tree", "--no-sparse-checkout"]).arg(old.to_string()).run()?;
        let list = nul_separated(paths.iter().copied());
        call()
            .args(["-c", "core.safecrlf=false", "update-index", "-z", "--stdin"])
            .input(list)
            .durable()
            .run()?;
        call().arg("write-tree").durable().run_for_id()
    }

    /// Whether the file that is held for `path` is byte for byte what a blob says.
    pub(super) fn is_blob(&self, repo: &Repo, path: &RepoPath, side: Side) -> bool {
        is_blob(repo, &self.place(path), side)
    }

    /// Whether the file of `path` is one and the same here and in the worktree.
    pub(super) fn is_same_file(&self, worktree: &Path, path: &RepoPath) -> bool {
        let here = self.place(path).symlink_metadata();
        let there = path.under(worktree).symlink_metadata();
        matches!((here, there), (Ok(a), Ok(b)) if (a.dev(), a.ino()) == (b.dev(), b.ino()))
    }

    /// Whether what stands at `path` in the worktree is the file that is held here, or like it in kind, mode and contents: somebody may
    /// have had git write it once more, and across file systems there is only a copy.
    pub(super) fn is_like(&self, worktree: &Path, path: &RepoPath) -> bool {
        self.is_same_file(worktree, path)
            || is_alike(&path.under(worktree), &self.place(path)).unwrap_or(false)
    }

    /// Removes the folder with everything in it.
    pub(super) fn discard(self) {
        drop(std::fs::remove_dir_all(&self.dir));
    }
}

/// Moves files that are set aside in `aside` to a worktree, where nothing stands in their places.
pub(crate) fn give_back(worktree: &Path, aside: &Path, paths: &[RepoPath]) -> Result<(), Error> {
    let aside = Quarantine::at(aside)?;
    let is_free = |path: &RepoPath| {
        path.under(worktree).symlink_metadata().is_err() && is_below_folders(worktree, path)
    };
    paths
        .iter()
        .filter(|path| aside.holds(path) && is_free(path))
        .try_for_each(|path| aside.give(worktree, path))
}

/// The paths below `root` whose content is not what `expected` says. Missing files count.
pub(super) fn differing(
    repo: &Repo,
    git_dir: &Path,
    root: &Path,
    index: &Path,
    expected: &[(RepoPath, Side)],
    attributes: &dyn Fn() -> Result<Vec<(RepoPath, Side)>, Error>,
) -> Result<Vec<RepoPath>, Error> {
    let expected: Vec<&(RepoPath, Side)> = expected
        .iter()
        .filter(|(path, side)| !side.is_gitlink() && !is_blob(repo, &path.under(root), *side))
        .collect();
    if expected.is_empty() {
        return Ok(Vec::new());
    }
    index::forget(index);
    let mut input = Vec::new();
    for (path, side) in attributes()?.iter().chain(expected.iter().copied()) {
        input.extend_from_slice(format!("{:o} {}\t", side.mode, side.oid).as_bytes());
        input.extend_from_slice(path.as_bytes());
        input.push(0);
    }
    let call = || repo.git_in(root).env("GIT_DIR", git_dir).env("GIT_WORK_TREE", root).index(index);
    call().args(["update-index", "-z", "--index-info"]).input(input).changes().run()?;
    call().args(["update-index", "-q", "--refresh"]).changes().accept(&[1]).run()?;
    let out =
        call().args(["diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=all"]).run()?;
    let wanted: HashSet<&RepoPath> = expected.iter().map(|(p, _)| p).collect();
    let all = out.fields().map(RepoPath::new).filter(|p| wanted.contains(p)).collect();
    index::forget(index);
    Ok(all)
}

/// Whether a file is byte for byte what a blob says, its kind and executable bit included. With filters in play a file
/// may be unchanged and yet differ from its blob: that is git's to judge. A file that equals its blob has nothing to lose.
pub(crate) fn is_blob(repo: &Repo, file: &Path, side: Side) -> bool {
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
    bytes.is_ok_and(|bytes| repo.blob_id(&bytes) == Some(side.oid))
}

/// Lets git, called with the settings returned, take for unchanged what was unchanged before links were made, which moved
/// the files' ctime on. Where nothing else differs from what an index copy notes of `linked`, git is told not to look at that
/// time; else it compares the copy's entries with their files again.
pub(super) fn settle<'p>(
    repo: &Repo,
    dir: &Path,
    index: &Path,
    mut linked: impl Iterator<Item = &'p RepoPath>,
) -> Result<&'static [&'static str], Error> {
    let by_all_else = Options { trust_ctime: false, check_stat: true, use_nsec: true, use_stdev: false };
    let read =
        gix::index::File::at(index, repo.gix.object_hash(), true, gix::index::decode::Options::default());
    let as_noted = read.is_ok_and(|read| {
        linked.all(|path| {
            let entry = read.entry_by_path(path.as_bytes().into());
            let meta = Metadata::from_path_no_follow(&path.under(dir));
            let stat = meta.ok().and_then(|meta| Stat::from_fs(&meta).ok());
            entry.is_some_and(|entry| stat.is_some_and(|stat| entry.stat.matches(&stat, by_all_else)))
        })
    });
    if as_noted {
        return Ok(&["-c", "core.trustctime=false"]);
    }
    flags::refresh(repo, dir, index).map(|()| &[][..])
}

/// Whether a regular file or a link stands there, its parents being real folders.
pub(super) fn stands_no_folder(root: &Path, path: &RepoPath) -> bool {
    path.under(root).symlink_metadata().is_ok_and(|m| !m.is_dir()) && is_below_folders(root, path)
}

/// Whether anything stands there, its parents being real folders.
pub(super) fn stands(root: &Path, path: &RepoPath) -> bool {
    path.under(root).symlink_metadata().is_ok() && is_below_folders(root, path)
}

/// Whether what is above a path are real folders, as far as anything is there: a link would lead elsewhere.
pub(super) fn is_below_folders(root: &Path, path: &RepoPath) -> bool {
    path.parents().all(|up| up.under(root).symlink_metadata().map_or(true, |meta| meta.is_dir()))
}

/// Renames without replacing; across file systems copies, then removes.
pub(super) fn move_new(from: &Path, to: &Path) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::io("move a file to", to)(e);
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::XDEV) => {
            if to.symlink_metadata().is_ok() {
                return Err(failed(ErrorKind::AlreadyExists.into()));
            }
            copy_file(from, to)?;
            fault::point("file.twice");
            std::fs::remove_file(from).map_err(Error::io("remove", from))
        }
        // Some file systems cannot refuse to replace in a rename; a link can.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
            std::fs::hard_link(from, to).map_err(failed)?;
            std::fs::remove_file(from).map_err(Error::io("remove", from))
        }
        Err(e) => Err(failed(e.into())),
    }
}

/// Makes the folders above a path where they are missing, with the modes they have below `from`.
fn make_parents_like(from: &Path, to: &Path, path: &RepoPath) -> Result<(), Error> {
    for up in path.parents() {
        let dir = up.under(to);
        match std::fs::create_dir(&dir) {
            Ok(()) => {
                if let Ok(meta) = up.under(from).metadata() {
                    drop(std::fs::set_permissions(&dir, meta.permissions()));
                    keep_open(&dir, meta.permissions());
                }
            }
            // A link would lead elsewhere.
            Err(e)
                if e.kind() == ErrorKind::AlreadyExists
                    && dir.symlink_metadata().is_ok_and(|m| m.is_dir()) => {}
            Err(e) => return Err(Error::io("create", &dir)(e)),
        }
    }
    Ok(())
}

/// Sees to it that files can be put into a folder that was just made, whatever rights it was to have.
fn keep_open(dir: &Path, mut rights: Permissions) {
    if access(dir, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        rights.set_mode(rights.mode() | 0o700);
        drop(std::fs::set_permissions(dir, rights));
    }
}

/// Removes the empty folders above `path`, up to and without `root`. Stops at the first that is not empty.
pub(super) fn prune_parents(root: &Path, path: &RepoPath) {
    let mut parents: Vec<RepoPath> = path.parents().collect();
    while let Some(parent) = parents.pop() {
        if parent.as_bytes() == OsStr::new("").as_encoded_bytes() {
            break;
        }
        if !is_pruned(&parent.under(root)) {
            break;
        }
    }
}

/// Removes a folder that has nothing but empty folders in it; files stop it.
pub(super) fn prune_below(dir: &Path) {
    if !dir.symlink_metadata().is_ok_and(|m| m.is_dir()) {
        return;
    }
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        prune_below(&entry.path());
    }
    drop(remove_empty(dir));
}

/// Removes a folder of set-aside files if none of them is left in it.
pub(crate) fn prune_folders(dir: &Path) {
    prune_below(dir);
}

/// Removes a folder if it is empty, and returns whether it is gone. One that was gone before counts: whoever removed it may
/// have been cut off before it came to the folder above.
pub(crate) fn is_pruned(dir: &Path) -> bool {
    remove_empty(dir).map_or_else(|e| e.kind() == ErrorKind::NotFound, |()| true)
}

/// Removes a folder if it is empty. What fails for once is worth a second try: nobody comes back to it.
pub(super) fn remove_empty(dir: &Path) -> std::io::Result<()> {
    in_two_tries(|| std::fs::remove_dir(dir))
}

/// Removes, once more if the first try failed for a reason that can pass.
fn in_two_tries(mut remove: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    remove().or_else(|e| match e.kind() {
        ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound | ErrorKind::NotADirectory => Err(e),
        _ => remove(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::{RepoPath, in_two_tries, prune_parents};

    #[test]
    fn a_folder_whose_only_one_was_removed_by_somebody_cut_off_goes_too() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("deep")).unwrap();
        prune_parents(root.path(), &RepoPath::new(b"deep/er/file"));
        assert!(!root.path().join("deep").exists());
        // Not one that has another.
        std::fs::create_dir_all(root.path().join("deep/other")).unwrap();
        prune_parents(root.path(), &RepoPath::new(b"deep/er/file"));
        assert!(root.path().join("deep/other").exists());
    }

    #[test]
    fn a_folder_that_could_not_be_removed_once_is_tried_again() {
        let mut answers = vec![Ok(()), Err(Error::other("input/output error"))];
        assert!(in_two_tries(|| answers.pop().unwrap()).is_ok());
        assert!(answers.is_empty());
        let mut answers = vec![Ok(()), Err(Error::from(ErrorKind::DirectoryNotEmpty))];
        assert!(in_two_tries(|| answers.pop().unwrap()).is_err());
        assert_eq!(answers.len(), 1);
    }
}
