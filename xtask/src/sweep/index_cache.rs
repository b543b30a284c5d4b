//! Cache of git's listings of worktree indexes. Git lists each content once: a sweep reads the same contents
//! again and again, and every start of git costs time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::Outcome;
use super::fixture::{CommandOutput, Fixture};
use super::index_stat::Index;
use crate::checkout::LIST_INDEX;

/// Output of [`LIST_INDEX`], by everything that it depends on. Failures are not cached.
#[derive(Debug, Default)]
pub(super) struct IndexCache(RefCell<HashMap<CacheKey, Vec<u8>>>);

/// Worktree, and the contents of its index and of the files that git reads before it.
type CacheKey = (PathBuf, Vec<Vec<u8>>);

/// Files that decide what git uses as the index of a worktree: those in its own git directory, and those in
/// the repository's.
const WORKTREE_FILES: &[&str] = &["HEAD", "commondir", "gitdir", "config.worktree"];
const REPOSITORY_FILES: &[&str] = &["HEAD", "config"];

impl Fixture {
    /// Lists the entries of a worktree's index: git's output of [`LIST_INDEX`], or the cached output for the
    /// same index.
    ///
    /// # Errors
    /// Fails if git cannot be started.
    pub(crate) fn list_index(&self, tree: &Path) -> Outcome<CommandOutput> {
        let key = cache_key(self, tree);
        if let Some(stdout) = key.as_ref().and_then(|key| self.index_cache.0.borrow().get(key).cloned()) {
            return Ok(CommandOutput { code: 0, stdout, stderr: String::new(), pid: 0 });
        }
        let answer = self.output(self.command("git", tree).args(LIST_INDEX))?;
        if let Some(key) = key.filter(|_| answer.code == 0 && answer.stderr.is_empty()) {
            self.index_cache.0.borrow_mut().insert(key, answer.stdout.clone());
        }
        Ok(answer)
    }
}

/// Returns everything that git's listing of a worktree's index depends on; none if that is more than what is
/// read here.
fn cache_key(fixture: &Fixture, tree: &Path) -> Option<CacheKey> {
    let dot = tree.join(".git");
    let git_dir = match fs::read_to_string(&dot) {
        Ok(link) => tree.join(link.strip_prefix("gitdir: ")?.trim_end()),
        Err(_) => dot,
    };
    let index = Index::parse(fs::read(git_dir.join("index")).ok()?).ok()?;
    let common = fixture.repo().join(".git");
    let worktree_files = WORKTREE_FILES.iter().map(|name| git_dir.join(name));
    let read = worktree_files.chain(REPOSITORY_FILES.iter().map(|name| common.join(name)));
    // An existing file has one byte more than a missing one.
    let contents = read.map(|path| fs::read(path).map_or(Vec::new(), |content| [b"\n", &*content].concat()));
    let contents = [index.without_stat_data()?].into_iter().chain(contents).collect();
    Some((tree.to_owned(), contents))
}
