//! Errors of repositories and worktrees in which git-proq cannot work.

use std::path::{Path, PathBuf};

use proq_base::explain::{Explain, shell_quote_path};

/// Start of git's message that a lock file cannot be created.
const LOCK_ERROR: &str = "Unable to create '";

/// Texts around the file name in git's messages that a file could not be written.
const WRITE_ERRORS: [(&str, &str); 2] =
    [("error: unable to write file ", "\n"), ("file '", "' write error. Out of diskspace")];

/// Start of git's message that a variable holds no date.
const DATE_ERROR: &str = "invalid date format: ";

/// Fault of a repository, a worktree or their surroundings because of which git or git-proq cannot use them:
/// configuration, permissions, a missing index, a full disk, an invalid date.
#[derive(Debug, thiserror::Error, Explain)]
pub enum UnusableRepoError {
    /// HEAD is a symbolic link to a ref that has no file, which the library cannot follow.
    #[error("cannot open {}: HEAD is a symbolic link to {ref_name}, which has no file of its own", git_dir.display())]
    #[hint(
        "make HEAD a regular file: git --git-dir={} -c core.preferSymlinkRefs=false symbolic-ref HEAD {ref_name}",
        shell_quote_path(git_dir)
    )]
    SymlinkHead {
        /// Git directory of the worktree.
        git_dir: PathBuf,
        /// Name of the ref.
        ref_name: String,
    },
    /// The repository is configured as bare, although it has a checkout, which commands would not update.
    #[error("cannot use the repository at {}: core.bare is true, although files are checked out there; nothing was changed", dir.display())]
    #[hint("restore the checkout: git config --file {} --unset-all core.bare", shell_quote_path(config))]
    BareWithCheckout {
        /// Top of the checkout.
        dir: PathBuf,
        /// File with the `core.bare` setting.
        config: PathBuf,
    },
    /// The main checkout is a folder from which git does not find the repository.
    #[error("cannot use the repository {}: core.worktree is {}, from where git does not find it; nothing was changed", git_dir.display(), dir.display())]
    #[hint(
        if dir.is_dir() && !dir.join(".git").exists(),
        "let git find it: echo gitdir: {} > {}",
        shell_quote_path(git_dir),
        shell_quote_path(&dir.join(".git"))
    )]
    #[hint(
        else,
        "use the checkout beside it again: git -C / config --file {} --unset-all core.worktree",
        shell_quote_path(config)
    )]
    CheckoutElsewhere {
        /// Git directory of the repository.
        git_dir: PathBuf,
        /// Folder that `core.worktree` names.
        dir: PathBuf,
        /// File with the `core.worktree` setting.
        config: PathBuf,
    },
    /// All worktrees share the folder of the main checkout.
    #[error("cannot use the repository {}: with extensions.worktreeConfig its core.worktree counts for every worktree, so git would change the main checkout in each lane; nothing was changed", git_dir.display())]
    #[hint(
        if *is_set_for_main,
        "apply it only to the main checkout: git config --file {} --unset-all core.worktree",
        shell_quote_path(&git_dir.join("config"))
    )]
    #[hint(
        else,
        "apply it only to the main checkout: git config --file {} core.worktree {} && git config --file {} --unset-all core.worktree",
        shell_quote_path(&git_dir.join("config.worktree")),
        shell_quote_path(worktree_setting),
        shell_quote_path(&git_dir.join("config"))
    )]
    SharedWorktree {
        /// Git directory of the repository.
        git_dir: PathBuf,
        /// Value of `core.worktree`.
        worktree_setting: PathBuf,
        /// Whether the main checkout has the setting in its own configuration already.
        is_set_for_main: bool,
    },
    /// A setting belongs to a later repository format. git before 2.48 ignores it, and the library refuses it.
    #[error("cannot use the repository {}: extensions.relativeWorktrees is set, which core.repositoryFormatVersion 0 does not have; nothing was changed", git_dir.display())]
    #[hint(
        "remove the setting, which git ignores here: git -C / config --file {} --unset-all extensions.relativeWorktrees",
        shell_quote_path(&git_dir.join("config"))
    )]
    RelativeWorktreesInFormat0 {
        /// Git directory of the repository.
        git_dir: PathBuf,
    },
    /// A folder of the git directory is not writable.
    #[error("cannot change the repository: you may not write to {}; nothing was changed", dir.display())]
    #[hint("make it writable: chmod u+rwx {}", shell_quote_path(dir))]
    NotWritable {
        /// Path of the folder.
        dir: PathBuf,
    },
    /// git could not write a file.
    #[error("cannot write {path}: the disk is full, or a limit was reached")]
    #[hint("check disk space and limits: df -h; ulimit -a")]
    WriteFailed {
        /// Path of the file, as git names it.
        path: String,
    },
    /// A date variable holds no valid date.
    #[error("cannot date a commit: '{date}' is not a date that git can read; nothing was changed")]
    #[hint("let git use the current time: unset {variable}")]
    InvalidDate {
        /// Value of the variable.
        date: String,
        /// Name of the variable.
        variable: &'static str,
    },
    /// A worktree has no index. git treats every file of its commit as staged for deletion.
    #[error("cannot use {}: it has no index that git can read, so every file there counts as deleted; nothing was changed", dir.display())]
    #[hint("create one without changing files: {repair_command}")]
    NoIndex {
        /// Top of the worktree.
        dir: PathBuf,
        /// Command that creates an index.
        repair_command: String,
    },
}

impl UnusableRepoError {
    /// Returns the reason why a repository cannot be changed, parsed from git's error output; none for other
    /// errors.
    pub(crate) fn from_stderr(stderr: &str) -> Option<UnusableRepoError> {
        if let Some((_, date)) = stderr.split_once(DATE_ERROR) {
            let date = date.lines().next().unwrap_or_default().to_owned();
            let is_set = |name: &&str| std::env::var(name).is_ok_and(|value| value == date);
            let variable = ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"].into_iter().find(is_set)?;
            return Some(UnusableRepoError::InvalidDate { date, variable });
        }
        let parse_write_error = |(before, after): &(&str, &str)| {
            let (path, _) = stderr.split_once(before)?.1.split_once(after)?;
            Some(UnusableRepoError::WriteFailed { path: path.to_owned() })
        };
        if let Some(write_error) = WRITE_ERRORS.iter().find_map(parse_write_error) {
            return Some(write_error);
        }
        let (lock, reason) = stderr.split_once(LOCK_ERROR)?.1.split_once("': ")?;
        let dir = Path::new(lock).parent()?.to_owned();
        reason.starts_with("Permission denied").then_some(UnusableRepoError::NotWritable { dir })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_full_disk_and_permission_errors() {
        let message = |stderr: &str| UnusableRepoError::from_stderr(stderr).map(|e| e.to_string());
        let disk_full = |path| Some(format!("cannot write {path}: the disk is full, or a limit was reached"));
        assert_eq!(message("error: unable to write file a/big\n"), disk_full("a/big"));
        assert_eq!(
            message("fatal: sha1 file '/r/.git/index.lock' write error. Out of diskspace\n"),
            disk_full("/r/.git/index.lock")
        );
        assert_eq!(
            message("fatal: Unable to create '/r/.git/refs/heads/a.lock': Permission denied\n").unwrap(),
            "cannot change the repository: you may not write to /r/.git/refs/heads; nothing was changed"
        );
        for other in
            ["", "fatal: Unable to create '/r/a.lock': File exists.", "fatal: smudge filter f failed"]
        {
            assert_eq!(message(other), None);
        }
    }
}
