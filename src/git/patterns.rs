//! Owns the patterns of a sparse checkout, and what is to be there, or not, in spite of them.

use std::collections::HashSet;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::glob::Pattern;
use gix::glob::pattern::Case;
use gix::glob::wildmatch::Mode;

use super::transition::Tree;
use super::{Error, Repo, RepoPath, flags};

/// The patterns of a sparse checkout.
pub(super) struct Patterns {
    all: Vec<Pattern>,
    case: Case,
}

impl Patterns {
    /// The patterns that are in force in a worktree; none where all files are to be there.
    pub(super) fn of(tree: &Tree<'_>) -> Result<Option<Patterns>, Error> {
        Patterns::in_force(tree.repo, tree.dir, &tree.git_dir)
    }

    /// The patterns that are in force in the worktree at `dir`, whose git directory is `git_dir`; none where all files are to be
    /// there.
    pub(super) fn in_force(repo: &Repo, dir: &Path, git_dir: &Path) -> Result<Option<Patterns>, Error> {
        if !flags::is_sparse_now(repo, dir, git_dir)? {
            return Ok(None);
        }
        let file = git_dir.join("info/sparse-checkout");
        let bytes = std::fs::read(&file).map_err(Error::io("read", &file))?;
        let folds = repo.setting_bool("core.ignoreCase") == Some(true);
        Ok(Some(Patterns::parse(&bytes, if folds { Case::Fold } else { Case::Sensitive })))
    }

    fn parse(bytes: &[u8], case: Case) -> Patterns {
        Patterns { all: gix::ignore::parse(bytes, false).map(|(pattern, ..)| pattern).collect(), case }
    }

    /// Whether a file is left out: the last pattern that matches decides, and where none does, that of the folder above it.
    pub(super) fn leave_out(&self, path: &RepoPath) -> bool {
        let (mut at, mut is_folder) = (path.as_bytes(), false);
        loop {
            let name = at.rfind_byte(b'/').map(|slash| slash + 1);
            let matches = |pattern: &&Pattern| {
                pattern.matches_repo_relative_path(
                    at.as_bstr(),
                    name,
                    Some(is_folder),
                    self.case,
                    Mode::NO_MATCH_SLASH_LITERAL,
                )
            };
            if let Some(pattern) = self.all.iter().rev().find(matches) {
                return pattern.is_negative();
            }
            let Some(name) = name else { return true };
            (at, is_folder) = (&at[..name - 1], true);
        }
    }
}

/// What a sparse checkout is to have otherwise than its patterns say.
#[derive(Default)]
pub(super) struct Against<'p> {
    /// Files that are to be there.
    pub(super) shown: HashSet<&'p RepoPath>,
    /// New files that are to be left out.
    pub(super) left_out: HashSet<&'p RepoPath>,
}

#[cfg(test)]
mod tests {
    use super::super::place::Place;
    use super::*;

    const SETS: &[&str] = &[
        "git sparse-checkout set --cone d/e",
        "git sparse-checkout set --cone d k",
        "git sparse-checkout set --no-cone '/*' '!*-s*'",
        "git sparse-checkout set --no-cone '/*' '!/*/' '/d/' '!/d/e/' '/d/e/c'",
        "git sparse-checkout set --no-cone '*.txt' '!k.txt' '# no' 'd/'",
        "git sparse-checkout set --no-cone 'd/*' '!d/?'",
        "git sparse-checkout set --no-cone '**/e/**' '!**/c'",
    ];

    #[test]
    fn patterns_leave_out_what_git_leaves_out() {
        for set in SETS {
            let place = Place::new();
            place.sh(
                "repo",
                "mkdir -p d/e/f d-s/e k; for f in a a-s k.txt d/b d/x-s d/e/c d/e/f/g d/e/t.txt d-s/e/h k/l; do echo $f >$f; done
                git add -A; git commit -qm first",
            );
            place.sh("repo", set);
            let patterns = Patterns::parse(
                &std::fs::read(place.top.join("repo/.git/info/sparse-checkout")).unwrap(),
                Case::Sensitive,
            );
            let listed = place.sh("repo", "git ls-files -t");
            for line in listed.lines() {
                let (tag, path) = line.split_once(' ').unwrap();
                assert_eq!(patterns.leave_out(&RepoPath::new(path)), tag == "S", "{set}: {path}");
            }
        }
    }
}
