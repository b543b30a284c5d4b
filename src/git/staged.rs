//! Owns what the index of a worktree says of some paths, to be put back there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Error, Repo, RepoPath};

/// What an index said of some paths.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) struct Staged {
    /// Of each path its line, as `update-index --index-info` reads it; none for one that the index does not have.
    lines: BTreeMap<RepoPath, Option<Vec<u8>>>,
}

impl Staged {
    /// Reads what is staged of `paths`, none of which is unmerged, in a worktree that is at a commit. A file that is only
    /// announced (`git add -N`) counts as one that the index does not have.
    pub(crate) fn read(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> Result<Staged, Error> {
        let announced: BTreeSet<RepoPath> = repo.announced(dir, None)?.into_iter().collect();
        let mut lines: BTreeMap<RepoPath, Option<Vec<u8>>> =
            paths.iter().map(|path| (path.clone(), None)).collect();
        // All are listed: a command line has no room for many paths.
        let listed = repo.git_in(dir).args(["ls-files", "--stage", "-z"]).run()?;
        for line in listed.fields() {
            let Some(path) = line.splitn(2, |b| *b == b'\t').nth(1).map(RepoPath::new) else { continue };
            if let Some(said) = lines.get_mut(&path).filter(|_| !announced.contains(&path)) {
                *said = Some(line.to_vec());
            }
        }
        Ok(Staged { lines })
    }

    /// Makes the index say this again of those paths of which it still says `since`, and of nothing else. No file is touched. The
    /// others, of which somebody has staged something else meanwhile, are the answer.
    pub(crate) fn put_back(&self, repo: &Repo, dir: &Path, since: &Staged) -> Result<Vec<RepoPath>, Error> {
        let paths: Vec<RepoPath> = self.lines.keys().cloned().collect();
        let now = Staged::read(repo, dir, &paths)?;
        let (mut gone, mut there): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        let mut others = Vec::new();
        let none = repo.gix.object_hash().null();
        for (path, line) in &self.lines {
            let is = now.lines.get(path);
            if is == Some(line) {
                continue;
            }
            if is != since.lines.get(path) {
                others.push(path.clone());
                continue;
            }
            if let Some(line) = line {
                there.extend(line.iter().chain(&[0]));
            } else {
                gone.extend(format!("0 {none}\t").into_bytes());
                gone.extend(path.as_bytes().iter().chain(&[0]));
            }
        }
        // What goes makes room first.
        gone.extend(there);
        if !gone.is_empty() {
            let call = repo.git_in(dir).args(["update-index", "-z", "--replace", "--index-info"]);
            call.input(gone).changes().run()?;
        }
        Ok(others)
    }
}
