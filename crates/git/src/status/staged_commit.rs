//! Commits of a worktree's staged changes and of named paths, with the repository's hooks.

use std::path::Path;
use std::time::Duration;

use crate::base::path::nul_separated;
use crate::history::commit::map_commit_error;
use crate::index::index_lock::IndexBackup;
use crate::index::staged_entries::StagedEntries;
use crate::program::watchdog::CancelCheck;
use crate::{Error, Repo, RepoPath};

/// Stages exactly `paths` of a worktree in their current state: added, changed or removed.
pub fn stage_paths(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> Result<(), Error> {
    add_paths(repo, dir, paths, None)
}

fn add_paths(repo: &Repo, dir: &Path, paths: &[RepoPath], extra_arg: Option<&str>) -> Result<(), Error> {
    let (present, missing): (Vec<_>, Vec<_>) =
        paths.iter().cloned().partition(|path| path.to_fs_path(dir).symlink_metadata().is_ok());
    // Git refuses a path that exists neither on disk nor in the index, as after a staged removal.
    let staged = StagedEntries::read(repo, dir, &missing)?;
    let paths: Vec<RepoPath> =
        present.into_iter().chain(missing.into_iter().filter(|path| staged.has_entry(path))).collect();
    // Without a path, git would add all of them.
    if paths.is_empty() {
        return Ok(());
    }
    repo.git_in(dir)
        .args(["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"])
        .args(extra_arg)
        .env("GIT_LITERAL_PATHSPECS", "1")
        .input(nul_separated(&paths))
        .mutating()
        .run()
        .map(drop)
}

/// Time limit of the repository's hooks at a commit that nobody watches on a terminal.
const HOOK_TIMEOUT: Duration = Duration::from_mins(30);

/// Commits the staged changes of a worktree. The repository's commit hooks run, as for any commit, and are
/// killed when `is_cancelled` returns true. The worktree's `COMMIT_EDITMSG`, which the user may
/// be editing, keeps its content.
pub fn commit_staged(
    repo: &Repo,
    dir: &Path,
    message: &str,
    is_cancelled: CancelCheck<'_>,
) -> Result<(), Error> {
    let message_file = repo.worktree_git_dir(dir)?.join("COMMIT_EDITMSG");
    let old_message = std::fs::read(&message_file);
    let command = repo.git_in(dir).args(["commit", "--quiet", "-F", "-"]).input(message).mutating();
    let result = command.run_with_timeout(HOOK_TIMEOUT, is_cancelled).map(drop).map_err(map_commit_error);
    if let Ok(old_message) = old_message {
        // Only the commit matters.
        drop(std::fs::write(&message_file, old_message));
    }
    result
}

/// Commits exactly `paths` of a lane's worktree (added, changed or removed) on top of the staged changes,
/// including paths outside of a sparse checkout. The repository's commit hooks run, as for any commit.
pub fn stage_and_commit(
    repo: &Repo,
    dir: &Path,
    paths: &[RepoPath],
    message: &str,
    is_cancelled: CancelCheck<'_>,
) -> Result<(), Error> {
    let (head, old_index) = (repo.head_commit(dir)?, IndexBackup::read(&repo.worktree_git_dir(dir)?));
    let add_result = add_paths(repo, dir, paths, Some("--sparse"));
    let staged_after = staged_entries(repo, dir);
    // Staged and added changes may cancel out: git would refuse an empty commit.
    let has_no_changes = || head.is_some_and(|head| repo.index_matches(dir, head).unwrap_or(false));
    let result = add_result.and_then(|()| match has_no_changes() {
        true => Ok(()),
        false => commit_staged(repo, dir, message, is_cancelled),
    });
    // After a refused commit, restore the index to the user's staged changes, without the added paths. A
    // commit created despite the failure, as before its last hook, has the right index already. The index
    // also stays when another process has staged something since.
    if let (Err(_), Ok(old_index), Some(staged_after)) = (&result, old_index, staged_after)
        && repo.head_commit(dir).is_ok_and(|current_head| current_head == head)
    {
        old_index.restore(repo, || staged_entries(repo, dir).as_ref() == Some(&staged_after));
    }
    result.map_err(|e| match &e {
        Error::Command { stderr, .. } if stderr.contains("index.lock': File exists") => {
            repo.index_lock_error(dir).unwrap_or(e)
        }
        _ => e,
    })
}

/// Returns the entries of a worktree's index as `git ls-files --stage` lists them, without file times; `None`
/// when git fails.
fn staged_entries(repo: &Repo, dir: &Path) -> Option<Vec<u8>> {
    Some(repo.git_in(dir).args(["ls-files", "--stage", "-z"]).run().ok()?.stdout)
}
