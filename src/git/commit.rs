//! Owns writing commits without a checkout, and committing named paths in one.

use std::path::Path;

use gix::actor::Signature;

use super::path::nul_separated;
use super::{Error, Oid, Repo, RepoPath, Side, ThrowAway};

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
        self.finish(call)
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

/// Commits exactly `paths` of a worktree (added, changed or removed) on top of what is staged already.
/// The repository's own commit hooks run, as for any commit.
pub(crate) fn stage_and_commit(
    repo: &Repo,
    dir: &Path,
    paths: &[RepoPath],
    message: &str,
) -> Result<(), Error> {
    repo.git_in(dir)
        .args(["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"])
        .env("GIT_LITERAL_PATHSPECS", "1")
        .input(nul_separated(paths))
        .changes()
        .run()?;
    repo.git_in(dir).args(["commit", "--quiet", "-F", "-"]).input(message).changes().run().map(drop)
}

/// Commits these files, each with what it is to be or none for one that goes, on top of `head`, where a worktree is; whatever else is staged
/// there stays so and is not committed. `index` is where an index for that is made. The repository's own commit hooks run,
/// with an index like that of any commit.
///
/// They are staged first, so that a commit that nobody came to finish leaves them staged, and HEAD's files are never shown as
/// taken back.
///
/// # Errors
/// When git refuses. Then they are not staged.
pub(crate) fn commit_apart(
    repo: &Repo,
    dir: &Path,
    index: &Path,
    (head, files): (Oid, &[(RepoPath, Option<Side>)]),
    message: &str,
) -> Result<(), Error> {
    let list = index_lines(head.null(), files);
    let update = |call: super::Command| {
        call.args(["update-index", "-z", "--replace", "--index-info"]).input(list.clone()).changes().run()
    };
    repo.git_in(dir).arg("read-tree").arg(head.to_string()).index(index).changes().run()?;
    update(repo.git_in(dir).index(index))?;
    let paths: Vec<RepoPath> = files.iter().map(|(path, _)| path.clone()).collect();
    let as_in_head = || {
        repo.git_in(dir)
            .args(["reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"])
            .env("GIT_LITERAL_PATHSPECS", "1")
            .input(nul_separated(&paths))
            .changes()
            .run()
            .map(drop)
    };
    update(repo.git_in(dir))?;
    let done =
        repo.git_in(dir).args(["commit", "--quiet", "-F", "-"]).index(index).input(message).changes().run();
    // A hook may have committed them otherwise than they were staged.
    let tidied = as_in_head();
    done.and(tidied)
}

/// What `update-index --index-info` reads. What goes makes room first.
fn index_lines(null: Oid, files: &[(RepoPath, Option<Side>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let (gone, there): (Vec<_>, Vec<_>) = files.iter().partition(|(_, side)| side.is_none());
    for (path, side) in gone.into_iter().chain(there) {
        let (mode, id) = side.map_or_else(|| (0, null.to_string()), |side| (side.mode, side.oid.to_string()));
        out.extend_from_slice(format!("{mode:06o} {id}\t").as_bytes());
        out.extend_from_slice(path.as_bytes());
        out.push(0);
    }
    out
}

impl Repo {
    /// Writes a commit of git-proq's own that has all of `tips` as parents: one ref to it keeps them all.
    pub(crate) fn keeper_of(&self, tips: &[Oid], message: &str) -> Result<Oid, Error> {
        let none = || Error::Answer { args: "commit-tree".into(), what: "nothing to keep".into() };
        let tree = self.tree_of(*tips.first().ok_or_else(none)?)?;
        NewCommit { tree, parents: tips, message }.write_as_keeper(self, None)
    }
}
