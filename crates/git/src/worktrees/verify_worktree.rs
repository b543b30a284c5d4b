//! Verify worktree: a reusable worktree in which checks run, without an owner or a branch. It can be reset to
//! any commit, and retains its ignored files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::worktree;
use super::worktree_reset::{clean_folders, has_baseline, is_real_folder, remove_blocking_ignore_files};
use crate::base::head::Head;
use crate::base::path::nul_separated;
use crate::hooks::hook::NO_HOOKS_OPTIONS;
use crate::{CommitId, Error, Repo, RepoPath};

/// git options for a complete checkout. No setting may leave out or hide files, or split the index. Each file
/// that was written after git wrote it counts as changed, whatever the user's settings are.
const FULL_CHECKOUT_SETTINGS: [&str; 14] = [
    "-c",
    "core.sparseCheckout=false",
    "-c",
    "core.splitIndex=false",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "core.ignoreStat=false",
    "-c",
    "core.trustctime=true",
    "-c",
    "core.checkStat=default",
    "-c",
    "index.sparse=false",
];

/// Summary of `git status` in a worktree.
struct StatusSummary {
    /// Whether a file differs from HEAD, or is untracked. The content of submodules is not checked.
    has_changes: bool,
    /// Ignored files, and folders that are ignored entirely.
    ignored: HashSet<RepoPath>,
}

impl Repo {
    /// Creates a verify worktree, without files yet. Nothing may exist at `path`.
    pub fn add_verify_worktree(&self, path: &Path, commit: CommitId) -> Result<(), Error> {
        worktree::add_without_checkout(self.git().args(NO_HOOKS_OPTIONS), path, &Head::Detached(commit))?;
        // git copies the patterns of a sparse checkout, but checks need the entire tree.
        let admin = self.worktree_git_dir(path)?;
        if admin.join("config.worktree").exists() {
            let unset = ["config", "--worktree", "--unset-all", "core.sparseCheckout"];
            self.git_in(path).args(unset).mutating().accept_exit_codes(&[5]).run()?;
        }
        match std::fs::remove_file(admin.join("info/sparse-checkout")) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &admin)(e)),
            _ => Repo::begin_baseline(&admin),
        }
    }

    /// Returns whether the folder at `path` is a verify worktree of this repository that can be reset. Its
    /// index from before commands ran in it must be saved. The folder and git's record must name each other.
    pub fn is_intact_verify_worktree(&self, path: &Path) -> bool {
        self.verify_git_dir(path).is_ok_and(|admin| self.can_reset_worktree(path, &admin))
    }

    /// Returns whether the folder at `path` is a verify worktree: the folder and git's record name each
    /// other, and it has a saved baseline. Its `.git` file alone may name another worktree.
    pub fn is_verify_worktree(&self, path: &Path) -> bool {
        self.verify_git_dir(path).is_ok()
    }

    /// Returns the git directory of a verify worktree.
    ///
    /// # Errors
    /// Fails if the folder at `dir` is no verify worktree.
    fn verify_git_dir(&self, dir: &Path) -> Result<PathBuf, Error> {
        let admin = self.worktree_git_dir(dir)?;
        match self.is_linked_both_ways(dir) && has_baseline(&admin) {
            true => Ok(admin),
            false => Err(Error::io("use the worktree", dir)(std::io::ErrorKind::InvalidData.into())),
        }
    }

    /// Resets a verify worktree to the state of a new worktree at `commit` with HEAD detached, except that
    /// ignored files remain. Commands may have run in it and may have changed any file.
    ///
    /// # Errors
    /// Fails if that is impossible. The worktree has to be created again then.
    pub fn reset_verify_worktree(&self, dir: &Path, commit: CommitId) -> Result<(), Error> {
        let admin = self.verify_git_dir(dir)?;
        let old_conversion = self.restore_baseline(&admin)?;
        let mut other_folders = Vec::new();
        if old_conversion.is_some() {
            let index_names = self.read_index_listing(&admin)?;
            index_names.empty_submodules(dir)?;
            other_folders = index_names.remove_blocking_files(dir, &|path| self.has_folder(commit, path))?;
        }
        self.detach_head(dir, commit)?;
        self.reset_hard(dir, &admin)?;
        let index_names = self.read_index_listing(&admin)?;
        let conversion = self.conversion_key(dir, &index_names)?;
        if old_conversion.is_some_and(|before| before != conversion) {
            self.rewrite_tracked_files(dir, &admin)?;
        }
        index_names.empty_submodules(dir)?;
        remove_blocking_ignore_files(dir, &self.unignored_folders(dir, &admin, other_folders)?)?;
        self.hookless_git_with_git_dir(dir, &admin)
            .args(FULL_CHECKOUT_SETTINGS)
            .args(["clean", "-ffdq"])
            .mutating()
            .run()?;
        index_names.create_submodule_folders(dir)?;
        let mut summary = self.read_status_summary(dir, &admin)?;
        if summary.has_changes {
            // Its filters do not reproduce the content that they accept.
            self.rewrite_tracked_files(dir, &admin)?;
            summary = self.read_status_summary(dir, &admin)?;
        }
        clean_folders(dir, &summary.ignored, &index_names)?;
        Repo::save_baseline(&admin, &conversion)
    }

    /// Sets HEAD of a verify worktree to a commit, whatever branch was checked out there.
    pub fn detach_head(&self, dir: &Path, commit: CommitId) -> Result<(), Error> {
        let command = self.hookless_git_with_git_dir(dir, &self.verify_git_dir(dir)?).args([
            "update-ref",
            "--no-deref",
            "HEAD",
        ]);
        command.arg(commit.to_string()).mutating().run().map(drop)
    }

    /// Returns the commit of a worktree's HEAD, if HEAD names no branch.
    pub fn detached_head(&self, dir: &Path) -> Result<Option<CommitId>, Error> {
        let git_dir = self.worktree_git_dir(dir)?;
        Ok(match self.read_worktree_head(dir, &git_dir)? {
            Some(Head::Detached(commit)) => Some(commit),
            Some(Head::Branch(_)) | None => None,
        })
    }

    /// Returns the folders that still exist and that git does not ignore.
    fn unignored_folders(
        &self,
        dir: &Path,
        admin: &Path,
        mut folders: Vec<RepoPath>,
    ) -> Result<Vec<RepoPath>, Error> {
        folders.retain(|path| is_real_folder(&path.to_fs_path(dir)));
        if folders.is_empty() {
            return Ok(folders);
        }
        let command = self.hookless_git_with_git_dir(dir, admin).args(FULL_CHECKOUT_SETTINGS);
        // Without the prefix, a name that begins with a colon would be read as a pattern.
        let dot_relative = |path: &RepoPath| RepoPath::new([b"./", path.as_bytes()].concat());
        let queried: Vec<RepoPath> = folders.iter().map(dot_relative).collect();
        let command = command.args(["check-ignore", "-z", "--stdin"]).input(nul_separated(&queried));
        let out = command.accept_exit_codes(&[1]).mutating().run()?;
        let ignored: HashSet<RepoPath> = out.nul_separated_fields().map(RepoPath::new).collect();
        folders.retain(|path| !ignored.contains(&dot_relative(path)));
        Ok(folders)
    }

    /// Resets index and tracked files of a verify worktree to HEAD.
    fn reset_hard(&self, dir: &Path, admin: &Path) -> Result<(), Error> {
        let command = self
            .hookless_git_with_git_dir(dir, admin)
            .args(FULL_CHECKOUT_SETTINGS)
            .args(["reset", "--hard", "--quiet"]);
        command.mutating().run().map(drop)
    }

    /// Makes git write all tracked files again, by removing the index and resetting to HEAD.
    fn rewrite_tracked_files(&self, dir: &Path, admin: &Path) -> Result<(), Error> {
        let index = admin.join("index");
        std::fs::remove_file(&index).map_err(Error::io("remove", &index))?;
        self.reset_hard(dir, admin)
    }

    fn read_status_summary(&self, dir: &Path, admin: &Path) -> Result<StatusSummary, Error> {
        let args = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal"];
        let more_args = ["--ignored=matching", "--ignore-submodules=all"];
        let out = self
            .hookless_git_with_git_dir(dir, admin)
            .args(FULL_CHECKOUT_SETTINGS)
            .args(args)
            .args(more_args)
            .mutating()
            .run()?;
        let ignored = out.nul_separated_fields().filter_map(|line| line.strip_prefix(b"!! "));
        let ignored: HashSet<_> =
            ignored.map(|path| RepoPath::new(path.strip_suffix(b"/").unwrap_or(path))).collect();
        Ok(StatusSummary {
            has_changes: out.nul_separated_fields().any(|line| !line.starts_with(b"!! ")),
            ignored,
        })
    }
}
