//! Partial clones: missing objects that git fetches when they are needed, and filters that fail.

use std::collections::BTreeSet;

use gix::bstr::ByteSlice;

use super::tree_diff::tree_files;
use crate::{Error, Oid, Repo};

impl Repo {
    /// Converts the error of a failed checkout of a commit to a specific one: this may be a partial clone
    /// that lacks some of the files, or a filter may have failed.
    pub(crate) fn classify_checkout_error(&self, error: Error, commit: impl Into<Oid>) -> Error {
        if let Some(remote) = self.promisor_remote() {
            let is_missing = |id: Oid| self.object_size(id).is_none();
            let files = tree_files(self, commit, &BTreeSet::new()).unwrap_or_default();
            let count = files.iter().filter(|(_, side)| !side.is_gitlink() && is_missing(side.oid)).count();
            if count > 0 {
                return Error::NotFetched { missing_file_count: count, remote, source: Box::new(error) };
            }
        }
        match error {
            Error::Command { stderr, .. } if is_filter_failure(&stderr) => {
                let is_lfs = stderr.contains("lfs") || self.has_only_lfs_filter();
                Error::Filter { stderr, is_lfs }
            }
            error => error,
        }
    }

    /// Returns whether git-lfs is the only configured filter.
    fn has_only_lfs_filter(&self) -> bool {
        let config = self.gix.config_snapshot();
        let filters = config.sections_by_name("filter").into_iter().flatten();
        let mut names = filters.filter_map(|section| section.header().subsection_name()).peekable();
        names.peek().is_some() && names.all(|name| name == "lfs")
    }

    /// Returns the promisor remote of a partial clone; `None` for a full clone.
    fn promisor_remote(&self) -> Option<String> {
        let config = self.gix.config_snapshot();
        let remotes = config.sections_by_name("remote").into_iter().flatten();
        let is_promisor = |name: &&gix::bstr::BStr| {
            config.boolean(format!("remote.{}.promisor", name.to_str_lossy()).as_str()) == Some(true)
        };
        let mut names = remotes.filter_map(|section| section.header().subsection_name());
        names.find(is_promisor).map(|name| name.to_str_lossy().into_owned())
    }
}

/// Returns whether git reports the failure of a filter. git communicates with some filters as with a remote,
/// and no remote is used here.
fn is_filter_failure(stderr: &str) -> bool {
    let is_in_stderr = |text: &&str| stderr.contains(text);
    // A file name may contain such words too.
    let markers = ["external filter '", "smudge filter ", "clean filter ", "the remote end hung up"];
    markers.iter().any(is_in_stderr) && !stderr.contains("No space left on device")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_file_named_like_filter() {
        for stderr in
            ["fatal: a: smudge filter lfs failed", "error: external filter 'git-lfs smudge %f' failed 1"]
        {
            assert!(is_filter_failure(stderr), "{stderr}");
        }
        assert!(!is_filter_failure("error: unable to create file src/filter.c: Permission denied"));
    }
}
