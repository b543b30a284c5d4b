//! Owns what a partial clone has not got: files that git fetches when they are needed.

use std::collections::BTreeSet;

use gix::bstr::ByteSlice;

use super::{Error, Oid, Repo, tree_files};

impl Repo {
    /// What it means that git could not make the files of a commit, where this is a partial clone that lacks some of them.
    pub(super) fn not_fetched(&self, error: Error, commit: Oid) -> Error {
        let Some(remote) = self.promisor() else { return error };
        let lacks = |id: Oid| self.size_of(id).is_none();
        let files = tree_files(self, commit, &BTreeSet::new()).unwrap_or_default();
        let count = files.iter().filter(|(_, side)| !side.is_gitlink() && lacks(side.oid)).count();
        match count {
            0 => error,
            count => Error::NotFetched { count, remote, source: Box::new(error) },
        }
    }

    /// The remote that has promised what is not here; none where everything is.
    fn promisor(&self) -> Option<String> {
        let set = self.gix.config_snapshot();
        let remotes = set.sections_by_name("remote").into_iter().flatten();
        let promises = |name: &&gix::bstr::BStr| {
            set.boolean(format!("remote.{}.promisor", name.to_str_lossy()).as_str()) == Some(true)
        };
        let mut names = remotes.filter_map(|section| section.header().subsection_name());
        names.find(promises).map(|name| name.to_str_lossy().into_owned())
    }
}
