//! Owns writing commits without a checkout, and committing named paths in one.

use std::path::Path;
use std::time::Duration;

use gix::actor::Signature;

use super::command::Unwanted;
use super::failed_program::FailedProgram;
use super::index::FormerIndex;
use super::path::nul_separated;
use super::{Error, Oid, Repo, RepoPath, Staged, ThrowAway};

/// What tells the commits of git-proq's own from a person's.
pub(super) const KEEPER_EMAIL: &str = "git-proq@localhost";

/// Their name.
const KEEPER_NAME: &str = "git-proq";

/// Who signs commits that are only a way to keep things, so that no identity needs to be configured.
const KEEPER: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", KEEPER_NAME),
    ("GIT_AUTHOR_EMAIL", KEEPER_EMAIL),
    ("GIT_COMMITTER_NAME", KEEPER_NAME),
    ("GIT_COMMITTER_EMAIL", KEEPER_EMAIL),
];

/// A commit to be written.
#[derive(Debug, Clone)]
pub(crate) struct NewCommit<'a> {
    /// Its tree.
    pub(crate) tree: Oid,
    /// Its parents, in order.
    pub(crate) parents: &'a [Oid],
    /// Its whole message.
    pub(crate) message: &'a str,
}

impl NewCommit<'_> {
    /// Writes it in the user's name, signed when `commit.gpgSign` asks for it.
    pub(crate) fn write(&self, repo: &Repo, into: Option<&ThrowAway>) -> Result<Oid, Error> {
        let sign = repo.setting_bool("commit.gpgSign") == Some(true);
        if let (false, None, Some((author, committer))) = (sign, into, repo.people()) {
            return self.write_as(repo, author, committer);
        }
        let call = ThrowAway::apply(into, repo.git()).args(["commit-tree"]);
        let call = if sign && into.is_none() { call.arg("-S") } else { call };
        self.finish(call).map_err(FailedProgram::signature)
    }

    /// Writes it in git-proq's own name: for snapshots and anchors.
    pub(crate) fn write_as_keeper(&self, repo: &Repo, into: Option<&ThrowAway>) -> Result<Oid, Error> {
        if let (None, Some((author, committer))) = (into, repo.people_named(KEEPER_NAME, KEEPER_EMAIL)) {
            return self.write_as(repo, author, committer);
        }
        self.finish(ThrowAway::apply(into, as_keeper(repo.git())).arg("commit-tree"))
    }

    /// Writes it in process, as `git commit-tree` would.
    fn write_as(&self, repo: &Repo, author: Signature, committer: Signature) -> Result<Oid, Error> {
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

    fn finish(&self, mut call: super::Command) -> Result<Oid, Error> {
        for parent in self.parents {
            call = call.arg("-p").arg(parent.to_string());
        }
        let call = call.args(["-F", "-"]).arg(self.tree.to_string()).input(self.message);
        call.changes().durable().run_for_id()
    }
}

fn as_keeper(call: super::Command) -> super::Command {
    KEEPER.iter().fold(call, |call, (key, value)| call.env(key, value))
}

/// Stages exactly `paths` of a worktree, as they are there: added, changed or removed.
pub(crate) fn stage(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> Result<(), Error> {
    add(repo, dir, paths, None)
}

fn add(repo: &Repo, dir: &Path, paths: &[RepoPath], more: Option<&str>) -> Result<(), Error> {
    let (there, gone): (Vec<_>, Vec<_>) =
        paths.iter().cloned().partition(|path| path.under(dir).symlink_metadata().is_ok());
    // git refuses a path of which nothing is left: one whose removal is staged already.
    let staged = Staged::read(repo, dir, &gone)?;
    let paths: Vec<RepoPath> =
        there.into_iter().chain(gone.into_iter().filter(|path| staged.has(path))).collect();
    // Without a path git would take them all.
    if paths.is_empty() {
        return Ok(());
    }
    repo.git_in(dir)
        .args(["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"])
        .args(more)
        .env("GIT_LITERAL_PATHSPECS", "1")
        .input(nul_separated(&paths))
        .changes()
        .run()
        .map(drop)
}

/// How long the repository's own hooks may take at a commit that nobody waits for in front of a terminal.
const PATIENCE: Duration = Duration::from_mins(30);

/// Commits what is staged in a worktree. The repository's own commit hooks run, as for any commit; they are ended when it
/// `is_unwanted`. The message that a person may be writing there just now stays.
pub(crate) fn commit_staged(
    repo: &Repo,
    dir: &Path,
    message: &str,
    is_unwanted: Unwanted<'_>,
) -> Result<(), Error> {
    let draft = repo.git_dir_of(dir)?.join("COMMIT_EDITMSG");
    let former = std::fs::read(&draft);
    let call = repo.git_in(dir).args(["commit", "--quiet", "-F", "-"]).input(message).changes();
    let done = call.run_within(PATIENCE, is_unwanted).map(drop).map_err(FailedProgram::signature);
    if let Ok(former) = former {
        // The commit is what counts.
        drop(std::fs::write(&draft, former));
    }
    done
}

/// Commits exactly `paths` of a lane's worktree (added, changed or removed) on top of what is staged already, in a sparse one
/// also what lies outside of its folders.
/// The repository's own commit hooks run, as for any commit.
pub(crate) fn stage_and_commit(
    repo: &Repo,
    dir: &Path,
    paths: &[RepoPath],
    message: &str,
    is_unwanted: Unwanted<'_>,
) -> Result<(), Error> {
    let (head, before) = (repo.head_of(dir)?, FormerIndex::of(&repo.git_dir_of(dir)?));
    let added = add(repo, dir, paths, Some("--sparse"));
    let after = staged(repo, dir);
    // What was staged may come to nothing with what is on top: git would refuse to commit that.
    let is_nothing = || head.is_some_and(|head| repo.index_is_at(dir, head).unwrap_or(false));
    let done = added.and_then(|()| match is_nothing() {
        true => Ok(()),
        false => commit_staged(repo, dir, message, is_unwanted),
    });
    // What somebody has staged there is theirs; that it was added on top is no part of a commit that was refused. One that was made in
    // spite of its failure, as before its last hook, has the index that belongs to it; and so has whoever staged something since.
    if let (Err(_), Ok(before), Some(after)) = (&done, before, after)
        && repo.head_of(dir).is_ok_and(|now| now == head)
    {
        before.put_back(repo, || staged(repo, dir).as_ref() == Some(&after));
    }
    done.map_err(|e| match &e {
        Error::Command { stderr, .. } if stderr.contains("index.lock': File exists") => {
            repo.index_lock(dir).unwrap_or(e)
        }
        _ => e,
    })
}

/// The entries of a worktree's index as `git ls-files --stage` lists them, so without the times of files; none when git fails.
fn staged(repo: &Repo, dir: &Path) -> Option<Vec<u8>> {
    Some(repo.git_in(dir).args(["ls-files", "--stage", "-z"]).run().ok()?.stdout)
}

impl Repo {
    /// Writes a commit of git-proq's own that has all of `tips` as parents: one ref to it keeps them all.
    pub(crate) fn keeper_of(&self, tips: &[Oid], message: &str) -> Result<Oid, Error> {
        let none = || Error::Answer { args: "commit-tree".into(), what: "nothing to keep".into() };
        let tree = self.tree_of(*tips.first().ok_or_else(none)?)?;
        NewCommit { tree, parents: tips, message }.write_as_keeper(self, None)
    }
}
