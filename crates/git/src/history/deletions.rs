//! Detection of mass deletions: changes that delete most of a commit's files, which is rarely intended.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use super::tree_diff::tree_files;
use crate::{CommitId, Error, Repo, RepoPath};

/// Minimum number of files in a commit for a mass deletion: with few files, half are easily deleted.
pub(crate) const MIN_FILES_FOR_MASS_DELETION: usize = 10;

/// Deletion of more than half of a commit's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MassDeletion {
    deleted: usize,
    total: usize,
}

impl fmt::Display for MassDeletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} files", self.deleted, self.total)
    }
}

/// Returns the mass deletion that a change makes among the files of `commit`, if it is one. `changed` has the
/// paths that the change touches, each with whether the file exists afterwards. A deleted and an added file
/// with the same name form a move, not a deletion; folder and extension may differ.
///
/// # Errors
/// Fails when the commit cannot be read.
pub fn detect_mass_deletion<'p>(
    repo: &Repo,
    commit: CommitId,
    changed: impl Iterator<Item = (&'p RepoPath, bool)> + Clone,
) -> Result<Option<MassDeletion>, Error> {
    if changed.clone().filter(|(_, stays)| !stays).count() <= MIN_FILES_FOR_MASS_DELETION / 2 {
        return Ok(None);
    }
    let files: BTreeSet<RepoPath> =
        tree_files(repo, commit, &BTreeSet::new())?.into_iter().map(|(path, _)| path).collect();
    let mut added: HashMap<&[u8], usize> = HashMap::new();
    for (path, _) in changed.clone().filter(|(path, stays)| *stays && !files.contains(*path)) {
        *added.entry(stem(path)).or_default() += 1;
    }
    let removed = changed.filter(|(path, stays)| !stays && files.contains(*path));
    let deleted = removed.filter(|(path, _)| match added.get_mut(stem(path)) {
        Some(remaining) if *remaining > 0 => {
            *remaining -= 1;
            false
        }
        _ => true,
    });
    let (deleted, total) = (deleted.count(), files.len());
    Ok((total >= MIN_FILES_FOR_MASS_DELETION && deleted * 2 > total)
        .then_some(MassDeletion { deleted, total }))
}

/// Returns a file's name without folder and extension.
fn stem(path: &RepoPath) -> &[u8] {
    let bytes = path.as_bytes();
    let name = bytes.rsplit(|b| *b == b'/').next().unwrap_or(bytes);
    match name.iter().rposition(|b| *b == b'.') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    #[test]
    fn detects_over_half_deleted_and_ignores_moves() {
        let test_repo = TestRepo::new();
        test_repo
            .run_script("repo", "for n in 0 1 2 3 4 5 6 7 8 9; do mkdir -p src; echo $n > src/f$n.js; done");
        test_repo.run_script("repo", "git add -A; git -c user.name=a -c user.email=a@b commit -qm x");
        let repo = Repo::discover(&test_repo.parent_dir.join("repo")).unwrap();
        let head = repo.head_commit(&test_repo.parent_dir.join("repo")).unwrap().unwrap();
        let path = |text: String| RepoPath::new(text);
        let removed: Vec<RepoPath> = (0..10).map(|n| path(format!("src/f{n}.js"))).collect();
        let added: Vec<RepoPath> = (0..5).map(|n| path(format!("lib/f{n}.ts"))).collect();
        let detect = |removed: &[RepoPath], added: &[RepoPath]| {
            let removed = removed.iter().map(|path| (path, false));
            let changes: Vec<_> = removed.chain(added.iter().map(|path| (path, true))).collect();
            detect_mass_deletion(&repo, head, changes.into_iter()).unwrap().map(|found| found.to_string())
        };
        assert_eq!(detect(&removed[..5], &[]), None);
        assert_eq!(detect(&removed[..6], &[]).as_deref(), Some("6 of 10 files"));
        assert_eq!(detect(&removed, &added), None);
        assert_eq!(detect(&removed, &added[..4]).as_deref(), Some("6 of 10 files"));
        assert_eq!(detect(&removed, &[path("x".into())]).as_deref(), Some("10 of 10 files"));
    }
}
