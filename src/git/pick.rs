//! Owns applying one commit on top of another in memory: what a rebase does, without a checkout.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::bstr::BString;

use super::tree_merge::merge_trees;
use super::{Error, Oid, Repo, RepoPath, ThrowAway};

/// What came of a commit on top of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Picked {
    /// It is this commit now, with this tree.
    Commit(Oid, Oid),
    /// All that it changed was there already.
    Empty,
    /// It conflicts in these paths.
    Conflict(Vec<RepoPath>),
}

/// A commit and its parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ancestry {
    /// The commit.
    pub(crate) id: Oid,
    /// Its parents, in order.
    pub(crate) parents: Vec<Oid>,
}

/// What of a commit outlives a change of its parent.
struct Kept {
    author: gix::actor::Signature,
    message: BString,
    encoding: Option<BString>,
}

/// Puts what `commit` changed of `parent` on top of `onto`, whose tree is `tree`: with the same author, date and message,
/// committed by the user now, and signed when `commit.gpgSign` asks for it. With `into`, nothing is written to the
/// repository.
///
/// # Errors
/// When an object cannot be read, or git cannot merge.
pub(crate) fn pick(
    repo: &Repo,
    (parent, commit): (Oid, Oid),
    (onto, tree): (Oid, Oid),
    scratch: &Path,
    into: Option<&ThrowAway>,
) -> Result<Picked, Error> {
    let merged = merge_trees(repo, (repo.tree_of(parent)?, tree, repo.tree_of(commit)?), scratch, into)?;
    if !merged.clean {
        return Ok(Picked::Conflict(merged.paths()));
    }
    if merged.tree == tree {
        return Ok(Picked::Empty);
    }
    let kept = Kept::of(repo, commit)?;
    kept.write(repo, merged.tree, onto, into).map(|id| Picked::Commit(id, merged.tree))
}

impl Kept {
    fn of(repo: &Repo, commit: Oid) -> Result<Kept, Error> {
        let what = || format!("commit {}", commit.short());
        let found = repo.gix.find_commit(commit.0).map_err(Error::object(what()))?;
        let decoded = found.decode().map_err(Error::object(what()))?;
        let author = decoded.author().map_err(Error::object(what()))?;
        Ok(Kept {
            author: author.to_owned().map_err(Error::object(what()))?,
            message: decoded.message.to_owned(),
            encoding: decoded.encoding.map(ToOwned::to_owned),
        })
    }

    fn write(self, repo: &Repo, tree: Oid, parent: Oid, into: Option<&ThrowAway>) -> Result<Oid, Error> {
        let sign = repo.setting_bool("commit.gpgSign") == Some(true) && into.is_none();
        if let (false, None, Some((_, committer))) = (sign, into, repo.people()) {
            return repo.write_durably(&gix::objs::Commit {
                tree: tree.0,
                parents: std::iter::once(parent.0).collect(),
                author: self.author,
                committer,
                encoding: self.encoding,
                message: self.message,
                extra_headers: Vec::new(),
            });
        }
        let encoding = self.encoding.map_or_else(|| "UTF-8".into(), |name| name.to_string());
        let mut call = repo.git().arg("-c").arg(format!("i18n.commitEncoding={encoding}"));
        let date = format!("@{} {}", self.author.time.seconds, offset(self.author.time.offset));
        call = ThrowAway::apply(into, call)
            .env("GIT_AUTHOR_NAME", OsStr::from_bytes(&self.author.name))
            .env("GIT_AUTHOR_EMAIL", OsStr::from_bytes(&self.author.email))
            .env("GIT_AUTHOR_DATE", date)
            .arg("commit-tree");
        call = if sign { call.arg("-S") } else { call };
        call = call.args(["-p", &parent.to_string(), "-F", "-", &tree.to_string()]);
        call.input(Vec::from(self.message)).changes().durable().run_for_id()
    }
}

/// Seconds east of Greenwich as git writes them: `+0130`.
fn offset(seconds: i32) -> String {
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

impl Repo {
    /// The commits of `tip` that `base` lacks, each after its parents. The base may be in `into` only.
    pub(crate) fn commits_since(
        &self,
        base: Oid,
        tip: Oid,
        into: Option<&ThrowAway>,
    ) -> Result<Vec<Ancestry>, Error> {
        let call =
            ThrowAway::apply(into, self.git()).args(["rev-list", "--reverse", "--topo-order", "--parents"]);
        let out = call.args([format!("{base}..{tip}"), "--".to_owned()]).run()?;
        let line = |line: &[u8]| {
            let mut ids = line.split(|b| *b == b' ').filter_map(Oid::from_hex);
            Some(Ancestry { id: ids.next()?, parents: ids.collect() })
        };
        Ok(out.stdout.split(|b| *b == b'\n').filter_map(line).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::offset;

    #[test]
    fn offsets_are_written_as_git_does() {
        assert_eq!(offset(0), "+0000");
        assert_eq!(offset(5400), "+0130");
        assert_eq!(offset(-12_600), "-0330");
    }
}
