//! Owns describing commits that are made anew for each landing, without what differs between two that are made of the same.

use gix::objs::FindExt;

use super::ahead::store_of;
use super::{Error, Oid, Repo, ThrowAway};

impl Repo {
    /// Describes the commits from `tip` down to the first of `known`, by first parents: their trees, parents, authors, committers
    /// and messages. Dates and signatures are left out, so that the same commits made again have the same description. New
    /// commits may be in `into` only.
    pub(crate) fn describe_remade(
        &self,
        tip: Oid,
        known: &[Oid],
        into: Option<&ThrowAway>,
    ) -> Result<Vec<u8>, Error> {
        let objects = store_of(self, into)?;
        let (mut out, mut buffer, mut at) = (Vec::new(), Vec::new(), Some(tip));
        while let Some(commit) = at {
            if known.contains(&commit) {
                out.extend_from_slice(commit.to_string().as_bytes());
                break;
            }
            let what = || format!("commit {}", commit.short());
            let found = objects.find_commit(&commit.0, &mut buffer).map_err(Error::object(what()))?;
            let author = found.author().map_err(Error::object(what()))?;
            let committer = found.committer().map_err(Error::object(what()))?;
            let parents: Vec<Oid> = found.parents().map(Oid).collect();
            out.extend_from_slice(format!("{}\0", found.tree()).as_bytes());
            for parent in parents.iter().skip(1) {
                out.extend_from_slice(format!("{parent}\0").as_bytes());
            }
            for part in [author.name, author.email, committer.name, committer.email, found.message] {
                out.extend_from_slice(part);
                out.push(0);
            }
            at = parents.first().copied();
        }
        Ok(out)
    }
}
