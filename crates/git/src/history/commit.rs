//! Commit creation without a checkout.

use gix::actor::Signature;

use crate::base::failed_program::FailedProgram;
use crate::repository::objects::TempObjectStore;
use crate::{CommitId, Error, Repo, TreeId};

/// E-mail address that marks git-proq's own commits.
pub(crate) const PROQ_EMAIL: &str = "git-proq@localhost";

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
pub struct NewCommit<'a> {
    /// Tree of the commit.
    pub tree: TreeId,
    /// Parents of the commit, in order.
    pub parents: &'a [CommitId],
    /// Full commit message.
    pub message: &'a str,
}

impl NewCommit<'_> {
    /// Writes the commit in the user's name, signed when `commit.gpgSign` is set. With `temp_objects`, the
    /// commit goes to that store and is not signed.
    pub fn write(&self, repo: &Repo, temp_objects: Option<&TempObjectStore>) -> Result<CommitId, Error> {
        let sign = repo.setting_bool("commit.gpgSign") == Some(true);
        if let (false, None, Some((author, committer))) = (sign, temp_objects, repo.author_and_committer()) {
            return self.write_in_process(repo, author, committer);
        }
        let command = TempObjectStore::redirect_writes(temp_objects, repo.git()).args(["commit-tree"]);
        let command = if sign && temp_objects.is_none() { command.arg("-S") } else { command };
        self.run_commit_tree(command).map_err(map_commit_error)
    }

    /// Writes the commit in git-proq's name, as for snapshots and keeper commits. With `temp_objects`, it
    /// goes to that store.
    pub fn write_as_proq(
        &self,
        repo: &Repo,
        temp_objects: Option<&TempObjectStore>,
    ) -> Result<CommitId, Error> {
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
    fn write_in_process(
        &self,
        repo: &Repo,
        author: Signature,
        committer: Signature,
    ) -> Result<CommitId, Error> {
        let written = repo.write_durably(&gix::objs::Commit {
            tree: self.tree.0,
            parents: self.parents.iter().map(|id| id.0).collect(),
            author,
            committer,
            encoding: None,
            message: self.message.into(),
            extra_headers: Vec::new(),
        });
        written.map(CommitId::from_oid)
    }

    /// Runs `command`, a `git commit-tree` without its parents and tree, and returns the new commit.
    fn run_commit_tree(&self, mut command: crate::program::command::Command) -> Result<CommitId, Error> {
        for parent in self.parents {
            command = command.arg("-p").arg(parent.to_string());
        }
        let command = command.args(["-F", "-"]).arg(self.tree.to_string()).input(self.message);
        command.mutating().durable().run_for_id().map(CommitId::from_oid)
    }
}

/// Makes git-proq the author and committer of the commit that `command` writes.
fn with_proq_identity(command: crate::program::command::Command) -> crate::program::command::Command {
    PROQ_IDENTITY_ENV.iter().fold(command, |command, (key, value)| command.env(key, value))
}

impl Repo {
    /// Writes a keeper commit: a commit in git-proq's name with all of `tips` as parents. One ref to the
    /// keeper commit keeps all of them reachable.
    pub fn write_keeper_commit(&self, tips: &[CommitId], message: &str) -> Result<CommitId, Error> {
        let no_tips = || Error::UnexpectedOutput {
            args: "commit-tree".into(),
            fault_or_output: "nothing to keep".into(),
        };
        let tree = self.tree_of(*tips.first().ok_or_else(no_tips)?)?;
        NewCommit { tree, parents: tips, message }.write_as_proq(self, None)
    }
}

/// Converts the error of a failed signature to [`FailedProgram::Signature`], and that of a missing name to
/// [`FailedProgram::NoIdentity`]; returns any other error unchanged.
pub(crate) fn map_commit_error(error: Error) -> Error {
    let signing_failure = match &error {
        Error::Command { stderr, .. } => FailedProgram::from_signing_program(stderr)
            .or_else(|| FailedProgram::from_missing_identity(stderr)),
        _ => None,
    };
    signing_failure.map_or(error, Error::UserProgram)
}
