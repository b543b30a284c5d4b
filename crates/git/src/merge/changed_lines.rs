//! Size of the difference between two trees, counted without starting git.

use std::collections::BTreeSet;
use std::time::Instant;

use super::patch_id::{hunks, read_text};
use crate::history::tree_diff::{TreeChange, compare_in_process};
use crate::status::diff::{DiffStat, FileLineCounts};
use crate::{Oid, Repo, TreeId};

/// Number of files that are counted however late it is.
const MIN_FILES_COUNTED: usize = 32;

impl Repo {
    /// Returns the numbers of changed files and lines from one tree to another; otherwise as
    /// [`Repo::count_lines_by_file`].
    #[must_use]
    pub fn count_changed_lines(
        &self,
        from: TreeId,
        to: TreeId,
        deadline: Option<Instant>,
    ) -> Option<DiffStat> {
        Some(DiffStat::of_files(&self.count_lines_by_file(from, to, deadline)?))
    }

    /// Returns the changed files with their numbers of added and removed lines from one tree to another. A
    /// file that was only renamed counts as one file with no changed lines; the numbers are `None` for a
    /// file that is binary, very large or missing. None if a tree cannot be read, or if `deadline` passes
    /// before the last of many files.
    #[must_use]
    pub fn count_lines_by_file(
        &self,
        from: TreeId,
        to: TreeId,
        deadline: Option<Instant>,
    ) -> Option<Vec<FileLineCounts>> {
        let changes = compare_in_process(self, from.oid(), to.oid()).ok()?;
        let side = |take: fn(&TreeChange) -> Option<Oid>| changes.iter().filter_map(take).collect();
        let removed: BTreeSet<Oid> = side(|c| c.old.filter(|_| c.new.is_none()).map(|file| file.oid));
        let added: BTreeSet<Oid> = side(|c| c.new.filter(|_| c.old.is_none()).map(|file| file.oid));
        let mut files = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            if index >= MIN_FILES_COUNTED && deadline.is_some_and(|end| Instant::now() >= end) {
                return None;
            }
            if change.new.is_none() && change.old.is_some_and(|file| added.contains(&file.oid)) {
                continue;
            }
            let is_renamed = change.old.is_none() && change.new.is_some_and(|f| removed.contains(&f.oid));
            let is_same_content = change.old.map(|file| file.oid) == change.new.map(|file| file.oid);
            let counts = match is_renamed || is_same_content {
                true => Some((0, 0)),
                false => read_text(self, change.old).zip(read_text(self, change.new)).map(|(old, new)| {
                    hunks(&old, &new)
                        .iter()
                        .fold((0, 0), |sum, (before, after)| (sum.0 + after.len(), sum.1 + before.len()))
                }),
            };
            let (added, removed) = counts.unzip();
            files.push(FileLineCounts { path: change.path.clone(), added, removed });
        }
        Some(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommitId;
    use crate::base::test_repo::TestRepo;

    #[test]
    fn counts_lines_as_git_does() {
        let test = TestRepo::new();
        let script = r"
            printf '1\n2\n3\n4\n' >edited; printf 'a\nb\n' >moved; echo x >gone
            git add . && git commit -qm before
            printf '1\n2 new\n3\n4\n5\n' >edited; printf 'one\ntwo' >new; printf '\0\n\0\n' >binary
            mv moved elsewhere; rm gone; git add -A . && git commit -qm after
            for n in $(seq 40); do echo $n >many$n; done; git add . && git commit -qm many
            git rev-parse HEAD~2 HEAD~ HEAD";
        let ids = test.run_script("repo", script);
        let repo = Repo::discover(&test.parent_dir.join("repo")).unwrap();
        let trees: Vec<TreeId> =
            ids.lines().map(|id| repo.tree_of(CommitId::from_hex(id.as_bytes()).unwrap()).unwrap()).collect();
        let many = trees[2];
        let trees = [trees[0], trees[1]];
        let counted = repo.count_changed_lines(trees[0], trees[1], None).unwrap();
        assert_eq!(counted, repo.diff_stats(&[trees], None).unwrap()[0]);
        assert_eq!(counted, DiffStat { files: 5, insertions: 4, deletions: 2 });
        let late = Some(Instant::now());
        assert_eq!(repo.count_changed_lines(trees[0], trees[1], late), Some(counted));
        assert_eq!(repo.count_changed_lines(trees[1], many, late), None);
    }
}
