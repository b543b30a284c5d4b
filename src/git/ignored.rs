//! Owns what may lie in a worktree: the names that its index has, and what git ignores.

use std::path::Path;

use gix::index::State;
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
    index: Index<'a>,
    rules: Option<(gix::Repository, gix::worktree::Stack)>,
}

/// Where rules are looked for that are not in the worktree.
enum Index<'a> {
    /// In an index, where the worktree lacks the file.
    Of(&'a State),
    /// In an index, whatever the worktree has.
    Only(&'a State),
    /// Nowhere: each file of the index is in the worktree, or is missed there by git, too.
    Nothing(gix::hash::Kind),
}

impl<'a> Ignored<'a> {
    /// For the worktree whose top is `dir`, with its index.
    pub(super) fn new(dir: &'a Path, index: &'a State) -> Ignored<'a> {
        Ignored { dir, index: Index::Of(index), rules: None }
    }

    /// For a worktree whose files are not there yet and that will have those of the index.
    pub(super) fn in_index(dir: &'a Path, index: &'a State) -> Ignored<'a> {
        Ignored { dir, index: Index::Only(index), rules: None }
    }

    /// The same for a worktree of which no file was left out on purpose.
    pub(super) fn with_all_files(dir: &'a Path, hash: gix::hash::Kind) -> Ignored<'a> {
        Ignored { dir, index: Index::Nothing(hash), rules: None }
    }

    /// Whether a rule says that a file or folder is ignored, by itself or with a folder that it lies in; false when that cannot be
    /// told.
    pub(super) fn names(&mut self, path: &Path, is_folder: bool) -> bool {
        self.said(path, is_folder) == Some(true)
    }

    /// The same; none when that cannot be told.
    fn said(&mut self, path: &Path, is_folder: bool) -> Option<bool> {
        let relative = path.strip_prefix(self.dir).ok()?;
        if self.rules.is_none() {
            self.rules = match self.index {
                Index::Of(index) => rules(self.dir, index, Source::WorktreeThenIdMappingIfNotSkipped),
                Index::Only(index) => rules(self.dir, index, Source::IdMapping),
                Index::Nothing(hash) => {
                    rules(self.dir, &State::new(hash), Source::WorktreeThenIdMappingIfNotSkipped)
                }
            };
        }
        let (repo, stack) = self.rules.as_mut()?;
        let mode = if is_folder { Mode::DIR } else { Mode::FILE };
        Some(stack.at_path(relative, Some(mode), &repo.objects).ok()?.is_excluded())
    }

    /// Whether there is more to a file or folder that is not in the index than what is ignored and what `takes` takes, which
    /// is given each file that is not; true when that cannot be told.
    pub(super) fn lacks(
        &mut self,
        path: &Path,
        is_folder: bool,
        takes: &mut dyn FnMut(&Path) -> bool,
    ) -> bool {
        match self.said(path, is_folder) {
            Some(true) => return false,
            Some(false) => {}
            None => return true,
        }
        if !is_folder {
            let plain = path.symlink_metadata().is_ok_and(|meta| meta.is_file() || meta.is_symlink());
            return !plain || !takes(path);
        }
        // A folder that is a repository of its own is one thing to git.
        if path.join(".git").symlink_metadata().is_ok() {
            return true;
        }
        let Ok(mut inside) = std::fs::read_dir(path) else { return true };
        inside.any(|entry| {
            let kind = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)));
            kind.map_or(true, |(path, kind)| self.lacks(&path, kind.is_dir(), takes))
        })
    }
}

fn rules(dir: &Path, index: &State, source: Source) -> Option<(gix::Repository, gix::worktree::Stack)> {
    let mut repo = gix::open(dir).ok()?;
    super::settings::add_from_command_line(&mut repo);
    let stack = repo.excludes(index, None, source).ok()?.detach();
    Some((repo, stack))
}
