//! Commands for hints of git errors, where they depend on what git printed.

use std::path::Path;

use proq_base::explain::{shell_quote, shell_quote_path};
use proq_base::hint;
use proq_base::hint::Hint;

use super::head::BRANCH_PREFIX;
use crate::RepoPath;

/// Returns whether a filter failed because git-lfs is not installed.
pub(super) fn is_lfs_missing(stderr: &str) -> bool {
    ["git-lfs: not found", "git-lfs: command not found"].iter().any(|text| stderr.contains(text))
}

/// Returns the command that aborts the operation in progress.
pub fn git_abort_command(operation: &str) -> String {
    if operation == "bisect" { "git bisect reset".to_owned() } else { format!("git {operation} --abort") }
}

/// Returns the hint for a ref that git did not move, by its name and the reason.
pub(super) fn ref_failure_hint(name: &str, reason: &str) -> Hint {
    let conflicting_ref =
        reason.split_once("' exists; cannot create").and_then(|(before, _)| before.rsplit_once('\''));
    if let Some(branch) = conflicting_ref.and_then(|(_, other)| other.strip_prefix(BRANCH_PREFIX)) {
        return hint!(
            "rename the conflicting branch: git branch -m {} {}",
            shell_quote(branch),
            shell_quote(&format!("{}-old", branch.replace('/', "-")))
        );
    }
    if reason.ends_with("reference broken") || reason.ends_with("Too many levels of symbolic links") {
        let remove = broken_ref_removal_command(name);
        return hint!("its file has no commit; remove it, then run the command again: {remove}");
    }
    hint!("run the command again")
}

/// Returns the command that removes the file of a fully named ref, which git does not remove if the file
/// contains no commit id.
pub fn broken_ref_removal_command(name: &str) -> String {
    format!("rm \"$(git rev-parse --git-path {})\"", shell_quote(name))
}

/// Returns the first of the paths in the worktree `dir` as a quoted word; an empty text without paths.
pub(super) fn quote_first_path(paths: &[RepoPath], dir: &Path) -> String {
    paths.first().map(|path| shell_quote_path(&path.to_fs_path(dir))).unwrap_or_default()
}
