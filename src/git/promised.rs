//! Owns what a partial clone has not got: files that git fetches when they are needed.

use std::collections::BTreeSet;

use gix::bstr::ByteSlice;

use super::{Error, Oid, Repo, tree_files};

impl Repo {
    /// What it means that git could not make the files of a commit: this may be a partial clone that lacks some of them, or a
    /// filter may have failed.
    pub(super) fn not_made(&self, error: Error, commit: Oid) -> Error {
        if let Some(remote) = self.promisor() {
            let lacks = |id: Oid| self.size_of(id).is_none();
            let files = tree_files(self, commit, &BTreeSet::new()).unwrap_or_default();
            let count = files.iter().filter(|(_, side)| !side.is_gitlink() && lacks(side.oid)).count();
            if count > 0 {
                return Error::NotFetched { count, remote, source: Box::new(error) };
            }
        }
        match error {
            Error::Command { stderr, .. } if is_of_filter(&stderr) => {
                let is_lfs = stderr.contains("lfs") || self.has_only_lfs();
                Error::Filter { stderr, is_lfs }
            }
            error => error,
        }
    }

    /// Whether git-lfs is the only filter that settings know.
    fn has_only_lfs(&self) -> bool {
        let set = self.gix.config_snapshot();
        let filters = set.sections_by_name("filter").into_iter().flatten();
        let mut names = filters.filter_map(|section| section.header().subsection_name()).peekable();
        names.peek().is_some() && names.all(|name| name == "lfs")
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

/// Whether git says of a filter that it failed. It talks to some as it does to a remote, and no other is asked here.
fn is_of_filter(stderr: &str) -> bool {
    let says = |text: &&str| stderr.contains(text);
    // A file may be called like that too.
    let words = ["external filter '", "smudge filter ", "clean filter ", "the remote end hung up"];
    words.iter().any(says) && !stderr.contains("No space left on device")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_name_speaks_of_filters_is_none() {
        for said in
            ["fatal: a: smudge filter lfs failed", "error: external filter 'git-lfs smudge %f' failed 1"]
        {
            assert!(is_of_filter(said), "{said}");
        }
        assert!(!is_of_filter("error: unable to create file src/filter.c: Permission denied"));
    }
}
