//! Owns what the index of a worktree says of some paths, to be put back there.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Error, Repo, RepoPath};

/// What an index said of some paths.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) struct Staged {
    /// Lines as `update-index --index-info` reads them. What goes makes room first.
    lines: Vec<u8>,
}

impl Staged {
    /// Reads what is staged of `paths`, none of which is unmerged, in a worktree that is at a commit. A file that is only
    /// announced (`git add -N`) counts as one that the index does not have.
    pub(crate) fn read(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> Result<Staged, Error> {
        let announced = repo.announced(dir, None)?;
        let announced: BTreeSet<&[u8]> = announced.iter().map(RepoPath::as_bytes).collect();
        let mut wanted: BTreeSet<&[u8]> = paths.iter().map(RepoPath::as_bytes).collect();
        // All are listed: a command line has no room for many paths.
        let listed = repo.git_in(dir).args(["ls-files", "--stage", "-z"]).run()?;
        let mut there = Vec::new();
        for line in listed.fields() {
            let Some(path) = line.splitn(2, |b| *b == b'\t').nth(1) else { continue };
            if !announced.contains(path) && wanted.remove(path) {
                there.extend_from_slice(line);
                there.push(0);
            }
        }
        let none = repo.gix.object_hash().null().to_string();
        let mut lines = Vec::new();
        for path in wanted {
            lines.extend_from_slice(format!("0 {none}\t").as_bytes());
            lines.extend_from_slice(path);
            lines.push(0);
        }
        lines.extend(there);
        Ok(Staged { lines })
    }

    /// Makes the index say this again of these paths, and of nothing else. No file is touched.
    pub(crate) fn put_back(&self, repo: &Repo, dir: &Path) -> Result<(), Error> {
        let call = repo.git_in(dir).args(["update-index", "-z", "--replace", "--index-info"]);
        call.input(self.lines.clone()).changes().run().map(drop)
    }
}
