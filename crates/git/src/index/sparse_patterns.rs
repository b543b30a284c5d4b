//! Patterns of a sparse checkout, and the exceptions to them.

use std::collections::HashSet;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::glob::Pattern;
use gix::glob::pattern::Case;
use gix::glob::wildmatch::Mode;

use super::index_flags;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, Repo, RepoPath};

/// Patterns of a sparse checkout and whether they ignore case.
pub(crate) struct SparsePatterns {
    patterns: Vec<Pattern>,
    case: Case,
}

impl SparsePatterns {
    /// Loads the patterns in force in a worktree; `None` if the checkout is not sparse.
    pub(crate) fn load_for_tree(tree: &WorktreeContext<'_>) -> Result<Option<SparsePatterns>, Error> {
        SparsePatterns::load(tree.repo, tree.dir, &tree.git_dir)
    }

    /// Loads the patterns in force in the worktree at `dir`, whose git directory is `git_dir`; `None` if the
    /// checkout is not sparse.
    pub fn load(repo: &Repo, dir: &Path, git_dir: &Path) -> Result<Option<SparsePatterns>, Error> {
        if !index_flags::is_sparse_active(repo, dir, git_dir)? {
            return Ok(None);
        }
        let file = git_dir.join("info/sparse-checkout");
        let bytes = std::fs::read(&file).map_err(Error::io("read", &file))?;
        let ignores_case = repo.setting_bool("core.ignoreCase") == Some(true);
        Ok(Some(SparsePatterns::parse(&bytes, if ignores_case { Case::Fold } else { Case::Sensitive })))
    }

    fn parse(bytes: &[u8], case: Case) -> SparsePatterns {
        SparsePatterns {
            patterns: gix::ignore::parse(bytes, false).map(|(pattern, ..)| pattern).collect(),
            case,
        }
    }

    /// Returns whether the sparse checkout excludes a file. The last matching pattern decides. If none
    /// matches, the patterns are applied to its parent folder, and so on; without any match the file is
    /// excluded.
    pub fn excludes(&self, path: &RepoPath) -> bool {
        let (mut current, mut is_folder) = (path.as_bytes(), false);
        loop {
            let name = current.rfind_byte(b'/').map(|slash| slash + 1);
            let matches = |pattern: &&Pattern| {
                pattern.matches_repo_relative_path(
                    current.as_bstr(),
                    name,
                    Some(is_folder),
                    self.case,
                    Mode::NO_MATCH_SLASH_LITERAL,
                )
            };
            if let Some(pattern) = self.patterns.iter().rev().find(matches) {
                return pattern.is_negative();
            }
            let Some(name) = name else { return true };
            (current, is_folder) = (&current[..name - 1], true);
        }
    }
}

/// Exceptions of a sparse checkout to its patterns.
#[derive(Default)]
pub(crate) struct SparseExceptions<'p> {
    /// Files that are present against the patterns.
    pub shown_against_patterns: HashSet<&'p RepoPath>,
    /// New files that are absent against the patterns.
    pub absent_against_patterns: HashSet<&'p RepoPath>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    const SPARSE_COMMANDS: &[&str] = &[
        "git sparse-checkout set --cone d/e",
        "git sparse-checkout set --cone d k",
        "git sparse-checkout set --no-cone '/*' '!*-s*'",
        "git sparse-checkout set --no-cone '/*' '!/*/' '/d/' '!/d/e/' '/d/e/c'",
        "git sparse-checkout set --no-cone '*.txt' '!k.txt' '# no' 'd/'",
        "git sparse-checkout set --no-cone 'd/*' '!d/?'",
        "git sparse-checkout set --no-cone '**/e/**' '!**/c'",
    ];

    #[test]
    fn excludes_same_files_as_git() {
        for command in SPARSE_COMMANDS {
            let fixture = TestRepo::new();
            fixture.run_script(
                "repo",
                "mkdir -p d/e/f d-s/e k; for f in a a-s k.txt d/b d/x-s d/e/c d/e/f/g d/e/t.txt d-s/e/h k/l; do echo $f >$f; done
                git add -A; git commit -qm first",
            );
            fixture.run_script("repo", command);
            let patterns = SparsePatterns::parse(
                &std::fs::read(fixture.parent_dir.join("repo/.git/info/sparse-checkout")).unwrap(),
                Case::Sensitive,
            );
            let listed = fixture.run_script("repo", "git ls-files -t");
            for line in listed.lines() {
                let (tag, path) = line.split_once(' ').unwrap();
                assert_eq!(patterns.excludes(&RepoPath::new(path)), tag == "S", "{command}: {path}");
            }
        }
    }
}
