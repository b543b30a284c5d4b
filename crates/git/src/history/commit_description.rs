//! Descriptions of commits that are created again for each landing, without the parts that differ between two
//! creations from the same input.

use gix::objs::FindExt;

use crate::repository::objects::{TempObjectStore, open_object_store};
use crate::{CommitId, Error, Repo};

impl Repo {
    /// Describes the commits from `tip` down to the first of `known_commits`, by first parents: trees,
    /// parents, authors, committers and messages. Dates and signatures are omitted, so that the same commits
    /// created again have the same description. New commits may exist only in `temp_store`.
    pub fn comparable_description(
        &self,
        tip: CommitId,
        known_commits: &[CommitId],
        temp_store: Option<&TempObjectStore>,
    ) -> Result<Vec<u8>, Error> {
        let objects = open_object_store(self, temp_store)?;
        let (mut out, mut buffer, mut next) = (Vec::new(), Vec::new(), Some(tip));
        while let Some(commit) = next {
            if known_commits.contains(&commit) {
                out.extend_from_slice(commit.to_string().as_bytes());
                break;
            }
            let label = || format!("commit {}", commit.short());
            let parsed = objects.find_commit(&commit.0, &mut buffer).map_err(Error::object(label()))?;
            let author = parsed.author().map_err(Error::object(label()))?;
            let committer = parsed.committer().map_err(Error::object(label()))?;
            let parents: Vec<CommitId> = parsed.parents().map(CommitId).collect();
            out.extend_from_slice(format!("{}\0", parsed.tree()).as_bytes());
            for parent in parents.iter().skip(1) {
                out.extend_from_slice(format!("{parent}\0").as_bytes());
            }
            for field in [author.name, author.email, committer.name, committer.email, parsed.message] {
                out.extend_from_slice(field);
                out.push(0);
            }
            next = parents.first().copied();
        }
        Ok(out)
    }
}
