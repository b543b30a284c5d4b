//! Index entries of some paths in a worktree, saved so that they can be restored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gix::index::File;
use gix::index::entry::{Flags, Stage};

use crate::{Error, Repo, RepoPath};

/// Index entries of some paths.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct StagedEntries {
    /// Line of each path, in the format that `update-index --index-info` reads; none for a path without an
    /// entry.
    lines: BTreeMap<RepoPath, Option<Vec<u8>>>,
}

impl StagedEntries {
    /// Reads the index entries of `paths`, none of which is unmerged. HEAD of the worktree is at a commit. A
    /// file with an intent-to-add entry (`git add -N`) counts as one without an entry.
    pub fn read(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> Result<StagedEntries, Error> {
        let index = repo.worktree_git_dir(dir)?.join("index");
        let index_file =
            File::at(index, repo.gix.object_hash(), true, gix::index::decode::Options::default());
        match index_file {
            Ok(index_file) if !index_file.is_sparse() => Ok(StagedEntries::from_index(&index_file, paths)),
            // The index is missing, is a sparse index, or cannot be read by the library.
            _ => StagedEntries::from_git(repo, dir, paths),
        }
    }

    /// Returns whether an entry was saved for this path.
    pub fn has_entry(&self, path: &RepoPath) -> bool {
        self.lines.get(path).is_some_and(Option::is_some)
    }

    /// Reads the entry of each path from the index file, without starting git.
    fn from_index(index: &File, paths: &[RepoPath]) -> StagedEntries {
        let line = |path: &RepoPath| {
            let entry = index.entry_by_path_and_stage(path.as_bytes().into(), Stage::Unconflicted)?;
            let is_intent_to_add = entry.flags.contains(Flags::INTENT_TO_ADD);
            let mut line = format!("{:06o} {} 0\t", entry.mode.bits(), entry.id).into_bytes();
            line.extend(path.as_bytes());
            (!is_intent_to_add).then_some(line)
        };
        StagedEntries { lines: paths.iter().map(|path| (path.clone(), line(path))).collect() }
    }

    /// Reads the entries of `paths` by `git ls-files`.
    fn from_git(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> Result<StagedEntries, Error> {
        let intent_to_add: BTreeSet<RepoPath> = repo.intent_to_add_paths(dir, None)?.into_iter().collect();
        let mut lines: BTreeMap<RepoPath, Option<Vec<u8>>> =
            paths.iter().map(|path| (path.clone(), None)).collect();
        // All entries are listed, since many paths would exceed the limit of a command line.
        let listed = repo.git_in(dir).args(["ls-files", "--stage", "-z"]).run()?;
        for line in listed.nul_separated_fields() {
            let Some(path) = line.splitn(2, |b| *b == b'\t').nth(1).map(RepoPath::new) else { continue };
            if let Some(recorded_line) = lines.get_mut(&path).filter(|_| !intent_to_add.contains(&path)) {
                *recorded_line = Some(line.to_vec());
            }
        }
        Ok(StagedEntries { lines })
    }

    /// Restores the saved entries in the index, for paths whose current entry is still the one in `expected`.
    /// No file is touched. Returns the skipped paths, whose entry another program has changed since.
    pub fn restore(&self, repo: &Repo, dir: &Path, expected: &StagedEntries) -> Result<Vec<RepoPath>, Error> {
        let paths: Vec<RepoPath> = self.lines.keys().cloned().collect();
        let current = StagedEntries::read(repo, dir, &paths)?;
        let (mut removed, mut added): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        let mut skipped = Vec::new();
        let null_id = repo.gix.object_hash().null();
        for (path, line) in &self.lines {
            let current_line = current.lines.get(path);
            if current_line == Some(line) {
                continue;
            }
            if current_line != expected.lines.get(path) {
                skipped.push(path.clone());
                continue;
            }
            if let Some(line) = line {
                added.extend(line.iter().chain(&[0]));
            } else {
                removed.extend(format!("0 {null_id}\t").into_bytes());
                removed.extend(path.as_bytes().iter().chain(&[0]));
            }
        }
        // Removed entries make room for added ones.
        removed.extend(added);
        if !removed.is_empty() {
            let command = repo.git_in(dir).args(["update-index", "-z", "--replace", "--index-info"]);
            command.input(removed).mutating().run()?;
        }
        Ok(skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    #[test]
    fn reads_index_like_git() {
        let test_repo = TestRepo::new();
        test_repo.run_script(
            "repo",
            "echo a > a; echo x > x; chmod +x x; ln -s a link; mkdir -p d; echo e > 'd/e f'; git add .",
        );
        test_repo.run_script("repo", "git commit -qm a; echo later > later; git add -N later; echo b >> a; git add a; git rm -q --cached x");
        let dir = test_repo.parent_dir.join("repo");
        let repo = Repo::discover(&dir).unwrap();
        let names = ["a", "x", "link", "d/e f", "later", "d", "none"];
        let paths: Vec<RepoPath> = names.iter().map(|name| RepoPath::new(name.as_bytes())).collect();
        for setting in ["git update-index --index-version=4", "git update-index --split-index"] {
            test_repo.run_script("repo", setting);
            let read = StagedEntries::read(&repo, &dir, &paths).unwrap();
            assert_eq!(read, StagedEntries::from_git(&repo, &dir, &paths).unwrap(), "{setting}");
            assert_eq!(read.lines.values().flatten().count(), 3, "{setting}");
        }
        test_repo.run_script("repo", "rm .git/index");
        assert!(StagedEntries::read(&repo, &dir, &paths).unwrap().lines.values().all(Option::is_none));
    }
}
