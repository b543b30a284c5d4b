//! Owns what the index of a worktree says of some paths, to be put back there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gix::index::File;
use gix::index::entry::{Flags, Stage};

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
        let index = repo.git_dir_of(dir)?.join("index");
        let read = File::at(index, repo.gix.object_hash(), true, gix::index::decode::Options::default());
        match read {
            Ok(read) if !read.is_sparse() => Ok(Staged::of(&read, paths)),
            // There is none, or folders of it stand for files, or the library cannot read it.
            _ => Staged::listed(repo, dir, paths),
        }
    }

    /// Whether the index has this one of the paths.
    pub(super) fn has(&self, path: &RepoPath) -> bool {
        self.lines.get(path).is_some_and(Option::is_some)
    }

    /// Looks each path up in the index file, without starting git.
    fn of(index: &File, paths: &[RepoPath]) -> Staged {
        let line = |path: &RepoPath| {
            let entry = index.entry_by_path_and_stage(path.as_bytes().into(), Stage::Unconflicted)?;
            let announced = entry.flags.contains(Flags::INTENT_TO_ADD);
            let mut line = format!("{:06o} {} 0\t", entry.mode.bits(), entry.id).into_bytes();
            line.extend(path.as_bytes());
            (!announced).then_some(line)
        };
        Staged { lines: paths.iter().map(|path| (path.clone(), line(path))).collect() }
    }

    /// The same by git, which lists all that there is.
    fn listed(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> Result<Staged, Error> {
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

#[cfg(test)]
mod tests {
    use super::super::place::Place;
    use super::*;

    #[test]
    fn the_index_says_the_same_as_git_does() {
        let place = Place::new();
        place.sh(
            "repo",
            "echo a > a; echo x > x; chmod +x x; ln -s a link; mkdir -p d; echo e > 'd/e f'; git add .",
        );
        place.sh("repo", "git commit -qm a; echo later > later; git add -N later; echo b >> a; git add a; git rm -q --cached x");
        let dir = place.top.join("repo");
        let repo = Repo::discover(&dir).unwrap();
        let names = ["a", "x", "link", "d/e f", "later", "d", "none"];
        let paths: Vec<RepoPath> = names.iter().map(|name| RepoPath::new(name.as_bytes())).collect();
        for setting in ["git update-index --index-version=4", "git update-index --split-index"] {
            place.sh("repo", setting);
            let read = Staged::read(&repo, &dir, &paths).unwrap();
            assert_eq!(read, Staged::listed(&repo, &dir, &paths).unwrap(), "{setting}");
            assert_eq!(read.lines.values().flatten().count(), 3, "{setting}");
        }
        place.sh("repo", "rm .git/index");
        assert!(Staged::read(&repo, &dir, &paths).unwrap().lines.values().all(Option::is_none));
    }
}
