//! Application of one commit on top of another in memory: a rebase step without a checkout.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::bstr::{BString, ByteSlice};

use super::tree_merge::merge_trees;
use crate::repository::objects::TempObjectStore;
use crate::{CommitId, CommitWithTree, Error, Repo, RepoPath, TreeId};

/// Outcome of applying a commit on top of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickOutcome {
    /// The new commit and its tree.
    Commit(CommitWithTree),
    /// The target already contains all changes of the commit.
    Empty,
    /// The commit conflicts in these paths.
    Conflict(Vec<RepoPath>),
}

/// Commit and its parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitWithParents {
    /// Id of the commit.
    pub id: CommitId,
    /// Parents of the commit, in order.
    pub parents: Vec<CommitId>,
}

/// Parts of a commit that a change of its parent preserves.
struct CommitMetadata {
    author: gix::actor::Signature,
    message: BString,
    encoding: Option<BString>,
}

/// Commit to apply on top of another.
#[derive(Debug, Clone, Copy)]
pub struct PickedCommit<'a> {
    /// Its parent.
    pub parent: CommitId,
    /// The commit.
    pub commit: CommitId,
    /// Trailer to add at the end of its message, unless it is there; none to keep the message.
    pub sign_off: Option<&'a str>,
}

/// Applies the changes of a commit since its parent on top of `onto`. The new commit has the same author, date
/// and message; the user is its committer, and it is signed if `commit.gpgSign` is set. With `temp_store`,
/// nothing is written to the repository and nothing is signed.
///
/// # Errors
/// Fails if an object cannot be read, or git cannot merge.
pub fn pick(
    repo: &Repo,
    PickedCommit { parent, commit, sign_off }: PickedCommit<'_>,
    onto: CommitWithTree,
    scratch: &Path,
    temp_store: Option<&TempObjectStore>,
) -> Result<PickOutcome, Error> {
    let merged =
        merge_trees(repo, (repo.tree_of(parent)?, onto.tree, repo.tree_of(commit)?), scratch, temp_store)?;
    if !merged.is_clean {
        return Ok(PickOutcome::Conflict(merged.conflicted_paths()));
    }
    if merged.tree == onto.tree {
        return Ok(PickOutcome::Empty);
    }
    let mut metadata = CommitMetadata::read(repo, commit)?;
    if let Some(trailer) = sign_off {
        add_trailer(&mut metadata.message, trailer);
    }
    let commit = metadata.write_commit(repo, merged.tree, onto.commit, temp_store)?;
    Ok(PickOutcome::Commit(CommitWithTree { commit, tree: merged.tree }))
}

impl CommitMetadata {
    fn read(repo: &Repo, commit: CommitId) -> Result<CommitMetadata, Error> {
        let label = || format!("commit {}", commit.short());
        let found = repo.gix.find_commit(commit.0).map_err(Error::object(label()))?;
        let decoded = found.decode().map_err(Error::object(label()))?;
        let author = decoded.author().map_err(Error::object(label()))?;
        Ok(CommitMetadata {
            author: author.to_owned().map_err(Error::object(label()))?,
            message: decoded.message.to_owned(),
            encoding: decoded.encoding.map(ToOwned::to_owned),
        })
    }

    fn write_commit(
        self,
        repo: &Repo,
        tree: TreeId,
        parent: CommitId,
        temp_store: Option<&TempObjectStore>,
    ) -> Result<CommitId, Error> {
        let sign = repo.setting_bool("commit.gpgSign") == Some(true) && temp_store.is_none();
        if let (false, None, Some((_, committer))) = (sign, temp_store, repo.author_and_committer()) {
            let written = repo.write_durably(&gix::objs::Commit {
                tree: tree.0,
                parents: std::iter::once(parent.0).collect(),
                author: self.author,
                committer,
                encoding: self.encoding,
                message: self.message,
                extra_headers: Vec::new(),
            });
            return written.map(CommitId::from_oid);
        }
        let encoding = self.encoding.map_or_else(|| "UTF-8".into(), |name| name.to_string());
        let mut call = repo.git().arg("-c").arg(format!("i18n.commitEncoding={encoding}"));
        let date = format!("@{} {}", self.author.time.seconds, format_utc_offset(self.author.time.offset));
        call = TempObjectStore::redirect_writes(temp_store, call)
            .env("GIT_AUTHOR_NAME", OsStr::from_bytes(&self.author.name))
            .env("GIT_AUTHOR_EMAIL", OsStr::from_bytes(&self.author.email))
            .env("GIT_AUTHOR_DATE", date)
            .arg("commit-tree");
        call = if sign { call.arg("-S") } else { call };
        call = call.args(["-p", &parent.to_string(), "-F", "-", &tree.to_string()]);
        call.input(Vec::from(self.message)).mutating().durable().run_for_id().map(CommitId::from_oid)
    }
}

/// Adds a trailer at the end of a message, in one block with the trailers there, unless it has the line.
fn add_trailer(message: &mut BString, trailer: &str) {
    let is_trailer = |line: &[u8]| {
        line.split_once_str(": ").is_some_and(|(key, _)| {
            key.contains(&b'-') && key.iter().all(|c| c.is_ascii_alphanumeric() || *c == b'-')
        })
    };
    if message.lines().any(|line| line == trailer.as_bytes()) {
        return;
    }
    let length = message.trim_end().len();
    message.truncate(length);
    let block = message.rfind("\n\n").map(|at| &message[at + 2..]);
    let separator = if block.is_some_and(|block| block.lines().all(is_trailer)) { "\n" } else { "\n\n" };
    *message = [message.as_slice(), separator.as_bytes(), trailer.as_bytes(), b"\n"].concat().into();
}

/// Formats a UTC offset in seconds as git does: `+0130`.
fn format_utc_offset(seconds: i32) -> String {
    let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

impl Repo {
    /// Returns the commits of `tip` that `base` lacks, each after its parents. The base may exist only in
    /// `temp_store`.
    pub fn commits_since(
        &self,
        base: CommitId,
        tip: CommitId,
        temp_store: Option<&TempObjectStore>,
    ) -> Result<Vec<CommitWithParents>, Error> {
        let call = TempObjectStore::redirect_writes(temp_store, self.git()).args([
            "rev-list",
            "--reverse",
            "--topo-order",
            "--parents",
        ]);
        let out = call.args([format!("{base}..{tip}"), "--".to_owned()]).run()?;
        let parse_line = |line: &[u8]| {
            let mut ids = line.split(|b| *b == b' ').filter_map(CommitId::from_hex);
            Some(CommitWithParents { id: ids.next()?, parents: ids.collect() })
        };
        Ok(out.stdout.split(|b| *b == b'\n').filter_map(parse_line).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{BString, add_trailer, format_utc_offset};

    #[test]
    fn adds_trailer_once_and_to_the_block_at_the_end() {
        let signed = |text: &str| {
            let mut message = BString::from(text);
            add_trailer(&mut message, "Signed-off-by: A <a@b>");
            message.to_string()
        };
        assert_eq!(signed("subject\n"), "subject\n\nSigned-off-by: A <a@b>\n");
        assert_eq!(signed("s\n\nbody: x y\n"), "s\n\nbody: x y\n\nSigned-off-by: A <a@b>\n");
        assert_eq!(signed("s\n\nProq-Lane: x\n\n"), "s\n\nProq-Lane: x\nSigned-off-by: A <a@b>\n");
        for text in ["s\n\nSigned-off-by: A <a@b>\n", "s\n\nSigned-off-by: A <a@b>\nProq-Lane: x\n"] {
            assert_eq!(signed(text), text);
        }
    }

    #[test]
    fn formats_utc_offset_as_git_does() {
        assert_eq!(format_utc_offset(0), "+0000");
        assert_eq!(format_utc_offset(5400), "+0130");
        assert_eq!(format_utc_offset(-12_600), "-0330");
    }
}
