//! Errors of git operations, worded for the user.

use std::path::{Path, PathBuf};

use proq_base::explain::{Explain, shell_quote_path};
use proq_base::full_disk::WriteLimit;

use super::error_hints::{git_abort_command, is_lfs_missing, quote_first_path, ref_failure_hint};
use super::failed_program::{FailedProgram, filter_error_line, first_error_line};
use super::local_changes_remedy::LocalChangesRemedy;
use super::unusable::UnusableRepoError;
use crate::{Oid, RepoPath};

/// Maximum number of paths that a one-line message lists before it counts the others.
const MAX_PATHS_NAMED: usize = 4;

/// Maximum number of characters shown of output that git-proq cannot parse.
const MAX_OUTPUT_CHARS_SHOWN: usize = 200;

/// Error from git, or from reading and changing a repository.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// No git program on `PATH`.
    #[error("cannot find git on PATH")]
    #[hint("install git 2.39 or newer")]
    NoGit,
    /// The git program is older than the version git-proq requires.
    #[error("git {found_version} is too old; git-proq needs {minimum_version} or newer")]
    #[hint("upgrade git, or put a newer version first on PATH")]
    TooOld {
        /// The version found.
        found_version: String,
        /// The oldest version that works.
        minimum_version: &'static str,
    },
    /// The folder is not in a repository.
    #[error("not a git repository: {}", dir.display())]
    #[hint(if *named_by_git_dir_variable, "GIT_DIR is not a repository; unset it: unset GIT_DIR")]
    #[hint(else, "run it inside a repository, or create one: git init")]
    NoRepository {
        /// Folder where the search started, or the value of `GIT_DIR`.
        dir: PathBuf,
        /// Whether `dir` is the value of `GIT_DIR`.
        named_by_git_dir_variable: bool,
    },
    /// Environment variables name a worktree and a repository that do not belong together.
    #[error("{} is not a worktree of GIT_DIR {}; nothing was changed", dir.display(), git_dir.display())]
    #[hint("unset the variables: unset GIT_DIR GIT_WORK_TREE")]
    MismatchedGitDir {
        /// Worktree that the variables name.
        dir: PathBuf,
        /// Repository that `GIT_DIR` names.
        git_dir: PathBuf,
    },
    /// Another user owns the repository, and git makes no exception for it.
    #[error("cannot use the repository at {}: git detected dubious ownership; nothing was read or run", dir.display())]
    #[hint("if you trust its owner: {trust_command}")]
    Untrusted {
        /// Worktree of the repository, or its git directory.
        dir: PathBuf,
        /// Command that adds the exception.
        trust_command: String,
    },
    /// A bare repository was discovered but not named explicitly, and git's settings require that.
    #[error("cannot use the bare repository at {}: safe.bareRepository is 'explicit'; nothing was read or run", dir.display())]
    #[hint("if you trust it, name it: git --git-dir={} proq", shell_quote_path(dir))]
    BareNotNamedExplicitly {
        /// Git directory of the repository.
        dir: PathBuf,
    },
    /// The command needs a main checkout and the repository is bare.
    #[error("cannot use a bare repository here: it has no main checkout")]
    #[hint("work in a clone of it, which has a checkout; see: git help clone")]
    Bare,
    /// A git command failed.
    #[error("`git {args}` failed: {}", first_error_line(stderr, status))]
    #[hint(if let Some(limit) = WriteLimit::of_git_output(stderr), with = [limit.hint()])]
    Command {
        /// Arguments, joined for display.
        args: String,
        /// Exit status or signal as text.
        status: String,
        /// Complete standard error output.
        stderr: String,
    },
    /// A partial clone lacks files, and they could not be fetched.
    #[error(
        "cannot read {missing_file_count} files of this commit: this partial clone lacks them, and git could not fetch them from {remote}; nothing was changed"
    )]
    #[hint("check whether git can reach it, then try again: git fetch {remote}")]
    NotFetched {
        /// Number of missing files.
        missing_file_count: usize,
        /// Remote that has them.
        remote: String,
        /// Error of the fetch.
        #[source]
        source: Box<Error>,
    },
    /// One of the user's filters that git applies to files failed.
    #[error("cannot convert files: a git filter failed: {}; nothing was changed", filter_error_line(stderr))]
    #[hint(if !is_lfs, "list the filters: git config --get-regexp '^filter'")]
    #[hint(else if is_lfs_missing(stderr), "git-lfs is not on PATH here; install it: https://git-lfs.com")]
    #[hint(else, "fetch the missing files: git lfs fetch")]
    #[hint(
        if *is_lfs && !is_lfs_missing(stderr),
        "or use pointers in lanes: git config proq.lane.lfs pointer"
    )]
    Filter {
        /// Complete standard error output of git and the filter.
        stderr: String,
        /// Whether the filter is git-lfs.
        is_lfs: bool,
    },
    /// Git printed output that git-proq cannot parse.
    #[error("`git {args}` {}", describe_unparsed_output(fault_or_output))]
    #[hint(
        if fault_or_output.is_empty(),
        "check disk space and limits: df -h; ulimit -a"
    )]
    #[hint(else, "check which git is used: git --version; command -v git")]
    UnexpectedOutput {
        /// Arguments, joined for display.
        args: String,
        /// Description of the fault, or the output itself; empty when git printed nothing.
        fault_or_output: String,
    },
    /// A revision does not resolve to a commit.
    #[error("'{rev}' is not a commit in this repository")]
    #[hint("list branches and tags: git branch --all; git tag")]
    NoRev {
        /// Revision that was requested.
        rev: String,
    },
    /// The repository or worktree lacks something git-proq requires.
    #[error(transparent)]
    Unusable(UnusableRepoError),
    /// A file pattern is invalid.
    #[error("cannot use '{glob}' as a scope: {reason}")]
    #[exit(Usage)]
    #[hint("use paths from the top of the repository: --scope src/pay/ --scope '*.md'")]
    InvalidGlob {
        /// Pattern as given.
        glob: String,
        /// Fault of the pattern.
        reason: &'static str,
    },
    /// An object could not be read.
    #[error("cannot read {object}")]
    ObjectFailure {
        /// Description of the object, such as `history of <id>`.
        object: String,
        /// Cause of the failure.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file could not be read, written or moved.
    #[error("cannot {verb} {}", path.display())]
    #[hint(if let Some(limit) = WriteLimit::of_error(source), with = [limit.hint()])]
    Io {
        /// Failed action, as a verb.
        verb: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: std::io::Error,
    },
    /// An index has unmerged paths.
    #[error("{} has unmerged paths: {}", dir.display(), list_paths(unmerged_paths))]
    #[hint("see how to finish the merge: git -C {} status", shell_quote_path(dir))]
    Unmerged {
        /// Worktree of the index.
        dir: PathBuf,
        /// The unmerged paths.
        unmerged_paths: Vec<RepoPath>,
    },
    /// Tracked files cannot be read, so their content cannot be saved.
    #[error("files in {} cannot be read: {}; nothing was changed", dir.display(), list_paths(unreadable_paths))]
    #[hint("make them readable: chmod u+r {}", quote_first_path(unreadable_paths, dir))]
    Unreadable {
        /// Worktree of the files.
        dir: PathBuf,
        /// Unreadable files.
        unreadable_paths: Vec<RepoPath>,
    },
    /// Folders cannot be changed, or files cannot be removed.
    #[error("{} cannot be changed in {}: permission denied; nothing was changed", list_paths(unwritable_paths), dir.display())]
    #[hint("make it writable: chmod u+rwx {}", quote_first_path(unwritable_paths, dir))]
    #[hint("or, if it is immutable: chattr -i {}", quote_first_path(unwritable_paths, dir))]
    NotWritable {
        /// Worktree of the paths.
        dir: PathBuf,
        /// Folders and files that cannot be changed.
        unwritable_paths: Vec<RepoPath>,
    },
    /// `git replace` replaces the content of files.
    #[error("`git replace` exchanges the content of files in {}: {}; nothing was changed", dir.display(), list_paths(replaced_paths))]
    #[hint("delete the replacement: git replace -d {first_replaced_blob}")]
    ReplacedBlobs {
        /// Worktree of the files.
        dir: PathBuf,
        /// Id of the first replaced blob.
        first_replaced_blob: Oid,
        /// Files with replaced content.
        replaced_paths: Vec<RepoPath>,
    },
    /// Something that is not a regular file or symlink is at a path where git has a file.
    #[error("cannot save files in {}: something else is in the place of tracked files: {}; nothing was changed", dir.display(), descriptions.join(", "))]
    #[hint("move them away, then try again")]
    NotAFile {
        /// Worktree of the paths.
        dir: PathBuf,
        /// Descriptions of the obstructions, each with a path and what is there, such as `PATH is a socket`.
        descriptions: Vec<String>,
    },
    /// A merge, rebase or similar operation is in progress.
    #[error("a {git_operation} is in progress in {}; nothing was changed", dir.display())]
    #[hint("finish it, or abort it: {}", git_abort_command(git_operation))]
    OperationInProgress {
        /// Name of the operation, such as `merge`.
        git_operation: &'static str,
        /// Worktree of the operation.
        dir: PathBuf,
    },
    /// Local changes would be overwritten.
    #[error("local changes in {} are in the way: {}; nothing was changed", dir.display(), list_paths(overlapping_paths))]
    #[hint(with = hint.command_hints(dir))]
    LocalChanges {
        /// Worktree with the changes.
        dir: PathBuf,
        /// Paths that both sides change.
        overlapping_paths: Vec<RepoPath>,
        /// Hint with git commands that get the changes out of the way.
        hint: LocalChangesRemedy,
    },
    /// Untracked or ignored files would be overwritten.
    #[error("untracked files in {} are in the way: {}; nothing was changed", dir.display(), list_paths(obstructing_paths))]
    #[hint("move them away, then try again")]
    Obstructed {
        /// Worktree of the files.
        dir: PathBuf,
        /// Files that would be overwritten.
        obstructing_paths: Vec<RepoPath>,
    },
    /// Another process holds git's lock on this index.
    #[error("another git command is running in {} ({} exists); nothing was changed", dir.display(), lock.display())]
    #[exit(Locked)]
    #[hint("wait until it has ended, then try again")]
    #[hint("if no git command is running there: rm {}", shell_quote_path(lock))]
    IndexLocked {
        /// Worktree of the index.
        dir: PathBuf,
        /// The lock file.
        lock: PathBuf,
    },
    /// The index or its lock was replaced while git-proq held the lock.
    #[error("the index of {} was replaced by another program while git-proq had locked it; nothing was changed", dir.display())]
    #[hint("check the worktree: git -C {} status", shell_quote_path(dir))]
    IndexReplaced {
        /// Worktree of the index.
        dir: PathBuf,
    },
    /// Files changed between being checked and being moved.
    #[error("{} changed while git-proq was running: {}; git-proq restored them", dir.display(), list_paths(raced_paths))]
    #[hint("run the command again")]
    Raced {
        /// Worktree of the files.
        dir: PathBuf,
        /// Files that changed.
        raced_paths: Vec<RepoPath>,
    },
    /// An operation failed, and so did restoring the files.
    #[error("files of {} could not all be restored; the missing ones are in {}", dir.display(), saved_dir.display())]
    #[hint("nothing is lost; try again: git proq doctor")]
    RestoreFailed {
        /// Worktree of the files.
        dir: PathBuf,
        /// Folder that holds the missing files.
        saved_dir: PathBuf,
        /// Cause of the failed restore.
        #[source]
        source: Box<Error>,
    },
    /// Another git command holds a lock that moving a ref requires.
    #[error("cannot move '{ref_name}': another git command holds {}; nothing was changed", lock.display())]
    #[exit(Locked)]
    #[hint("wait until it has ended, then try again")]
    #[hint("if no git command is running there: rm {}", shell_quote_path(lock))]
    RefLocked {
        /// Name of the ref.
        ref_name: String,
        /// The lock file.
        lock: PathBuf,
    },
    /// A living process may hold a lock that a killed one may have left.
    #[error("{holder} is running and may hold {}; the lock was not removed", lock.display())]
    #[exit(Locked)]
    #[hint("wait until it has ended, then try again")]
    #[hint("if it does not use that lock: rm {}", shell_quote_path(lock))]
    LockMayBeHeld {
        /// The lock file.
        lock: PathBuf,
        /// Name and id of the process.
        holder: String,
    },
    /// A ref did not have its expected value, or could not be locked.
    #[error("cannot move '{ref_name}': {reason}; nothing was changed")]
    #[hint(with = [ref_failure_hint(ref_name, reason)])]
    RefNotMoved {
        /// Name of the ref.
        ref_name: String,
        /// Message from git.
        reason: String,
    },
    /// Switching HEAD in a reftable repository requires the symref commands of a newer git.
    #[error("git {found_version} cannot switch branches safely in a reftable repository")]
    #[hint("upgrade git to 2.46 or newer")]
    NeedsSymref {
        /// Version of git that was found.
        found_version: String,
    },
    /// One of the user's programs failed or refused.
    #[error(transparent)]
    UserProgram(FailedProgram),
}

impl Error {
    /// Returns a function that wraps an I/O error with the failed action and the path.
    pub fn io(verb: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { verb, path, source }
    }

    /// Returns a function that wraps a library error with a description of the object.
    pub fn object<E>(description: impl Into<String>) -> impl FnOnce(E) -> Error
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let description = description.into();
        move |e| Error::ObjectFailure { object: description, source: e.into() }
    }
}

impl Error {
    /// Returns whether the user's own changes or programs are in the way, as opposed to a failure that may
    /// pass.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Error::LocalChanges { .. }
                | Error::Obstructed { .. }
                | Error::NotAFile { .. }
                | Error::OperationInProgress { .. }
                | Error::Raced { .. }
                | Error::RefNotMoved { .. }
                | Error::Unmerged { .. }
                | Error::NotWritable { .. }
                | Error::ReplacedBlobs { .. }
                | Error::Unreadable { .. }
                | Error::UserProgram(_)
        )
    }

    /// Returns whether a git program failed, rather than an action of git-proq itself.
    pub fn is_git_failure(&self) -> bool {
        matches!(self, Error::Command { .. } | Error::UserProgram(_) | Error::Unusable(_))
    }
}

/// Formats paths for a message: names the first few and counts the others.
pub fn list_paths(paths: &[RepoPath]) -> String {
    let mut out = paths.iter().take(MAX_PATHS_NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if paths.len() > MAX_PATHS_NAMED {
        out.push_str(&format!(" and {} more", paths.len() - MAX_PATHS_NAMED));
    }
    out
}

/// Describes output that git-proq cannot parse, with an excerpt of it.
fn describe_unparsed_output(output: &str) -> String {
    if output.is_empty() {
        return "succeeded, but its output is missing".to_owned();
    }
    let excerpt: String = output.chars().take(MAX_OUTPUT_CHARS_SHOWN).collect();
    match output.len() - excerpt.len() {
        0 => format!("printed unexpected output: {excerpt}"),
        more => format!("printed unexpected output: {excerpt}… and {more} more bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proq_base::explain::Exit;

    #[test]
    fn truncates_unexpected_output() {
        let error_for = |what: &str| Error::UnexpectedOutput {
            args: "write-tree".into(),
            fault_or_output: what.to_owned(),
        };
        assert_eq!(error_for("").to_string(), "`git write-tree` succeeded, but its output is missing");
        assert_eq!(error_for("ab").to_string(), "`git write-tree` printed unexpected output: ab");
        let long = error_for(&"x".repeat(100_000)).to_string();
        assert!(long.len() < 300 && long.ends_with("… and 99800 more bytes"), "{long}");
        assert!(error_for("").exit() == Exit::Refused && error_for("ab").exit() == Exit::Refused);
    }
}
