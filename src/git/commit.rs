//! Commit creation without a checkout, and commits of named paths in a worktree.

use std::path::Path;
use std::time::Duration;

use gix::actor::Signature;

use super::command::CancelCheck;
use super::failed_program::FailedProgram;
use super::index::IndexBackup;
use super::path::nul_separated;
use super::{Error, Oid, Repo, RepoPath, StagedEntries, TempObjectStore};

/// E-mail address that marks git-proq's own commits.
pub(super) const PROQ_EMAIL: &str = "git-proq@localhost";

/// Author and committer name of git-proq's own commits.
const PROQ_NAME: &str = "git-proq";

/// Environment variables that make git-proq author and committer of a commit that only keeps objects
/// reachable. Such a commit then needs no configured user identity.
const PROQ_IDENTITY_ENV: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", PROQ_NAME),
    ("GIT_AUTHOR_EMAIL", PROQ_EMAIL),
    ("GIT_COMMITTER_NAME", PROQ_NAME),
    ("GIT_COMMITTER_EMAIL", PROQ_EMAIL),
];

/// A commit to be written.
#[derive(Debug, Clone)]
pub(crate) struct NewCommit<'a> {
    /// Tree of the commit.
    pub(crate) tree: Oid,
    /// Parents of the commit, in order.
    pub(crate) parents: &'a [Oid],
    /// Full commit message.
    pub(crate) message: &'a str,
}

impl NewCommit<'_> {
    /// Writes the commit in the user's name, signed when `commit.gpgSign` is set. With `temp_objects`, the
    /// commit goes to that store and is not signed.
    pub(crate) fn write(&self, repo: &Repo, temp_objects: Option<&TempObjectStore>) -> Result<Oid, Error> {
        let sign = repo.setting_bool("commit.gpgSign") == Some(true);
        if let (false, None, Some((author, committer))) = (sign, temp_objects, repo.author_and_committer()) {
            return self.write_in_process(repo, author, committer);
        }
        let command = TempObjectStore::redirect_writes(temp_objects, repo.git()).args(["commit-tree"]);
        let command = if sign && temp_objects.is_none() { command.arg("-S") } else { command };
        self.run_commit_tree(command).map_err(FailedProgram::map_signing_error)
    }

    /// Writes the commit in git-proq's name, as for snapshots and keeper commits. With `temp_objects`, it
    /// goes to that store.
    pub(crate) fn write_as_proq(
        &self,
        repo: &Repo,
        temp_objects: Option<&TempObjectStore>,
    ) -> Result<Oid, Error> {
        if let (None, Some((author, committer))) =
            (temp_objects, repo.signatures_with_name(PROQ_NAME, PROQ_EMAIL))
        {
            return self.write_in_process(repo, author, committer);
        }
        self.run_commit_tree(
            TempObjectStore::redirect_writes(temp_objects, with_proq_identity(repo.git())).arg("commit-tree"),
        )
    }

    /// Writes the commit in process, as `git commit-tree` would.
    fn write_in_process(&self, repo: &Repo, author: Signature, committer: Signature) -> Result<Oid, Error> {
        repo.write_durably(&gix::objs::Commit {
            tree: self.tree.0,
            parents: self.parents.iter().map(|id| id.0).collect(),
            author,
            committer,
            encoding: None,
            message: self.message.into(),
            extra_headers: Vec::new(),
        })
    }

    fn run_commit_tree(&self, mut command: super::Command) -> Result<Oid, Error> {
        for parent in self.parents {
            command = command.arg("-p").arg(parent.to_string());
        }
        let command = command.args(["-F", "-"]).arg(self.tree.to_string()).input(self.message);
        command.mutating().durable().run_for_id()
    }
}

fn with_proq_identity(command: super::Command) -> super::Command {
    PROQ_IDENTITY_ENV.iter().fold(command, |command, (key, value)| command.env(key, value))
}

/// Stages exactly `paths` of a worktree in their current state: added, changed or removed.
pub(crate) fn stage_paths(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> Result<(), Error> {
    add_paths(repo, dir, paths, None)
}

fn add_paths(repo: &Repo, dir: &Path, paths: &[RepoPath], extra_arg: Option<&str>) -> Result<(), Error> {
    let (present, missing): (Vec<_>, Vec<_>) =
        paths.iter().cloned().partition(|path| path.to_fs_path(dir).symlink_metadata().is_ok());
    // Git refuses a path that exists neither on disk nor in the index, as after a staged removal.
    let staged = StagedEntries::read(repo, dir, &missing)?;
    let paths: Vec<RepoPath> =
        present.into_iter().chain(missing.into_iter().filter(|path| staged.contains(path))).collect();
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
pub(crate) fn commit_staged(
    repo: &Repo,
    dir: &Path,
    message: &str,
    is_cancelled: CancelCheck<'_>,
) -> Result<(), Error> {
    let message_file = repo.worktree_git_dir(dir)?.join("COMMIT_EDITMSG");
    let old_message = std::fs::read(&message_file);
    let command = repo.git_in(dir).args(["commit", "--quiet", "-F", "-"]).input(message).mutating();
    let result = command
        .run_with_timeout(HOOK_TIMEOUT, is_cancelled)
        .map(drop)
        .map_err(FailedProgram::map_signing_error);
    if let Ok(old_message) = old_message {
        // Only the commit matters.
        drop(std::fs::write(&message_file, old_message));
    }
    result
}

/// Commits exactly `paths` of a lane's worktree (added, changed or removed) on top of the staged changes,
/// including paths outside of a sparse checkout. The repository's commit hooks run, as for any commit.
pub(crate) fn stage_and_commit(
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

impl Repo {
    /// Writes a keeper commit: a commit in git-proq's name with all of `tips` as parents. One ref to the
    /// keeper commit keeps all of them reachable.
    pub(crate) fn write_keeper_commit(&self, tips: &[Oid], message: &str) -> Result<Oid, Error> {
        let no_tips =
            || Error::UnexpectedOutput { args: "commit-tree".into(), output: "nothing to keep".into() };
        let tree = self.tree_of(*tips.first().ok_or_else(no_tips)?)?;
        NewCommit { tree, parents: tips, message }.write_as_proq(self, None)
    }
}
