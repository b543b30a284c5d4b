//! Owns the question whether a change deletes most of the files of a commit, which is rarely meant.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use super::{Error, Oid, Repo, RepoPath, tree_files};

/// A commit with fewer files than this may lose any of them: of a few files, half is soon gone.
pub(crate) const LEAST_FILES: usize = 10;

/// More than half of the files of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MassDeletion {
    deleted: usize,
    of: usize,
}

impl fmt::Display for MassDeletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} files", self.deleted, self.of)
    }
}

/// Judges the paths that a change touches, each with whether a file is there after it. A file that goes and one of the same name,
/// but for the folder and what follows its last point, that comes make a move, not a deletion.
///
/// # Errors
/// When the commit cannot be read.
pub(crate) fn mass_deletion<'p>(
    repo: &Repo,
    commit: Oid,
    changed: impl Iterator<Item = (&'p RepoPath, bool)> + Clone,
) -> Result<Option<MassDeletion>, Error> {
    if changed.clone().filter(|(_, stays)| !stays).count() <= LEAST_FILES / 2 {
        return Ok(None);
    }
    let files: BTreeSet<RepoPath> =
        tree_files(repo, commit, &BTreeSet::new())?.into_iter().map(|(path, _)| path).collect();
    let mut come: HashMap<&[u8], usize> = HashMap::new();
    for (path, _) in changed.clone().filter(|(path, stays)| *stays && !files.contains(*path)) {
        *come.entry(stem(path)).or_default() += 1;
    }
    let goes = changed.filter(|(path, stays)| !stays && files.contains(*path));
    let deleted = goes.filter(|(path, _)| match come.get_mut(stem(path)) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    });
    let (deleted, of) = (deleted.count(), files.len());
    Ok((of >= LEAST_FILES && deleted * 2 > of).then_some(MassDeletion { deleted, of }))
}

/// A file's name without its folder and its ending.
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
    use crate::git::place::Place;

    #[test]
    fn more_than_half_is_too_much_and_a_move_is_none() {
        let place = Place::new();
        place.sh("repo", "for n in 0 1 2 3 4 5 6 7 8 9; do mkdir -p src; echo $n > src/f$n.js; done");
        place.sh("repo", "git add -A; git -c user.name=a -c user.email=a@b commit -qm x");
        let repo = Repo::discover(&place.top.join("repo")).unwrap();
        let head = repo.head_of(&place.top.join("repo")).unwrap().unwrap();
        let path = |text: String| RepoPath::new(text);
        let gone: Vec<RepoPath> = (0..10).map(|n| path(format!("src/f{n}.js"))).collect();
        let come: Vec<RepoPath> = (0..5).map(|n| path(format!("lib/f{n}.ts"))).collect();
        let judge = |gone: &[RepoPath], come: &[RepoPath]| {
            let gone = gone.iter().map(|path| (path, false));
            let all: Vec<_> = gone.chain(come.iter().map(|path| (path, true))).collect();
            mass_deletion(&repo, head, all.into_iter()).unwrap().map(|found| found.to_string())
        };
        assert_eq!(judge(&gone[..5], &[]), None);
        assert_eq!(judge(&gone[..6], &[]).as_deref(), Some("6 of 10 files"));
        assert_eq!(judge(&gone, &come), None);
        assert_eq!(judge(&gone, &come[..4]).as_deref(), Some("6 of 10 files"));
        assert_eq!(judge(&gone, &[path("x".into())]).as_deref(), Some("10 of 10 files"));
    }
}
