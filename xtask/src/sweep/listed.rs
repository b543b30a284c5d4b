//! Owns what git says of the indexes of worktrees. Git is asked once about each content: a sweep sees the same ones again and again,
//! and every start of git counts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::Outcome;
use super::place::{Answer, Place};
use super::stat::Index;
use crate::checkout::LIST_INDEX;

/// The answers of git to [`LIST_INDEX`], by all that each depends on. Those that failed are not kept.
#[derive(Debug, Default)]
pub(super) struct Listed(RefCell<HashMap<Key, Vec<u8>>>);

/// A worktree, and the contents of its index and of what git reads before it.
type Key = (PathBuf, Vec<Vec<u8>>);

/// The files that decide what git takes for the index of a worktree: in its own git directory, and in the repository's.
const OWN: &[&str] = &["HEAD", "commondir", "gitdir", "config.worktree"];
const COMMON: &[&str] = &["HEAD", "config"];

impl Place {
    /// Lists the entries of a worktree's index: git's answer to [`LIST_INDEX`] there, or what it answered to the same index before.
    ///
    /// # Errors
    /// When git cannot be started.
    pub(crate) fn list_index(&self, tree: &Path) -> Outcome<Answer> {
        let key = key(self, tree);
        if let Some(stdout) = key.as_ref().and_then(|key| self.listed.0.borrow().get(key).cloned()) {
            return Ok(Answer { code: 0, stdout, stderr: String::new(), pid: 0 });
        }
        let answer = self.answer(self.command("git", tree).args(LIST_INDEX))?;
        if let Some(key) = key.filter(|_| answer.code == 0 && answer.stderr.is_empty()) {
            self.listed.0.borrow_mut().insert(key, answer.stdout.clone());
        }
        Ok(answer)
    }
}

/// All that git's answer about a worktree's index depends on; none where that is more than what is read here.
fn key(place: &Place, tree: &Path) -> Option<Key> {
    let dot = tree.join(".git");
    let git_dir = match fs::read_to_string(&dot) {
        Ok(link) => tree.join(link.strip_prefix("gitdir: ")?.trim_end()),
        Err(_) => dot,
    };
    let index = Index::of(fs::read(git_dir.join("index")).ok()?).ok()?;
    let common = place.repo().join(".git");
    let own = OWN.iter().map(|name| git_dir.join(name));
    let read = own.chain(COMMON.iter().map(|name| common.join(name)));
    // One that is there has a byte more than one that is not.
    let contents = read.map(|path| fs::read(path).map_or(Vec::new(), |content| [b"\n", &*content].concat()));
    let contents = [index.without_stat_data()?].into_iter().chain(contents).collect();
    Some((tree.to_owned(), contents))
}
