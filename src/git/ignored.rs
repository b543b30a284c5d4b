//! Owns what may lie in a worktree: the names that its index has, and what git ignores.

use std::path::Path;

use gix::index::File;
use gix::index::entry::Mode;
use gix::worktree::stack::state::ignore::Source;

/// The names that the index has in one folder. Folders list theirs in the order in which they were made, or the other way
/// round, more often than not.
pub(super) struct Names<'a> {
    sorted: Vec<&'a [u8]>,
    /// Where the last one that was found is.
    last: usize,
}

impl<'a> Names<'a> {
    /// Takes them in any order.
    pub(super) fn new(mut names: Vec<&'a [u8]>) -> Names<'a> {
        names.sort_unstable();
        Names { sorted: names, last: 0 }
    }

    /// Whether this is one of them.
    pub(super) fn has(&mut self, name: &[u8]) -> bool {
        let near = [self.last.wrapping_add(1), self.last.wrapping_sub(1)];
        let found = near.into_iter().find(|at| self.sorted.get(*at) == Some(&name));
        let found = found.or_else(|| self.sorted.binary_search(&name).ok());
        self.last = found.unwrap_or(self.last);
        found.is_some()
    }
}

/// What git ignores in one worktree. The rules are read once they are needed.
pub(super) struct Ignored<'a> {
    /// The top of the worktree.
    dir: &'a Path,
    index: &'a File,
    source: Source,
    rules: Option<(gix::Repository, gix::worktree::Stack)>,
}

impl<'a> Ignored<'a> {
    /// For the worktree whose top is `dir`, with its index.
    pub(super) fn new(dir: &'a Path, index: &'a File) -> Ignored<'a> {
        Ignored { dir, index, source: Source::WorktreeThenIdMappingIfNotSkipped, rules: None }
    }

    /// For a worktree whose files are not there yet and that will have those of the index.
    pub(super) fn in_index(dir: &'a Path, index: &'a File) -> Ignored<'a> {
        Ignored { source: Source::IdMapping, ..Ignored::new(dir, index) }
    }

    /// Whether a rule says that a file or folder is ignored, by itself or with a folder that it lies in; false when that cannot be
    /// told.
    pub(super) fn names(&mut self, path: &Path, is_folder: bool) -> bool {
        let Ok(relative) = path.strip_prefix(self.dir) else { return false };
        if self.rules.is_none() {
            self.rules = rules(self.dir, self.index, self.source);
        }
        let Some((repo, stack)) = &mut self.rules else { return false };
        let mode = if is_folder { Mode::DIR } else { Mode::FILE };
        stack.at_path(relative, Some(mode), &repo.objects).is_ok_and(|found| found.is_excluded())
    }

    /// Whether a file or folder that is not in the index is ignored, or is a folder in which everything is; false when that
    /// cannot be told.
    pub(super) fn covers(&mut self, path: &Path, is_folder: bool) -> bool {
        if self.names(path, is_folder) {
            return true;
        }
        // A folder that is a repository of its own is one thing to git.
        if !is_folder || path.join(".git").symlink_metadata().is_ok() {
            return false;
        }
        let Ok(mut inside) = std::fs::read_dir(path) else { return false };
        inside.all(|entry| {
            let Ok(entry) = entry else { return false };
            entry.file_type().is_ok_and(|kind| self.covers(&entry.path(), kind.is_dir()))
        })
    }
}

fn rules(dir: &Path, index: &File, source: Source) -> Option<(gix::Repository, gix::worktree::Stack)> {
    let mut repo = gix::open(dir).ok()?;
    super::settings::add_from_command_line(&mut repo);
    let stack = repo.excludes(index, None, source).ok()?.detach();
    Some((repo, stack))
}
