//! Owns what may lie in a worktree: the names that its index has, and what git ignores.

use std::path::Path;

use gix::bstr::ByteSlice;
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

/// What something is that the index does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// A file or a link.
    File,
    /// A folder, what is in it being told of next.
    Folder,
    /// Git was told to ignore it.
    Ignored,
}

/// What git ignores in one worktree. The rules are read once they are needed.
pub(super) struct Ignored<'a> {
    /// The top of the worktree.
    dir: &'a Path,
    index: Index<'a>,
    rules: Option<Rules>,
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
        Some(self.rules_for(path, is_folder)?.0)
    }

    /// The same, and whether git surely goes by the same rules.
    fn rules_for(&mut self, path: &Path, is_folder: bool) -> Option<(bool, bool)> {
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
        let Rules { repo, stack, sure } = self.rules.as_mut()?;
        let mode = if is_folder { Mode::DIR } else { Mode::FILE };
        Some((stack.at_path(relative, Some(mode), &repo.objects).ok()?.is_excluded(), *sure))
    }

    /// Whether there is more to a file or folder that is not in the index than what `takes` takes, which is told of all that is
    /// there, but for what lies in a folder that is ignored; true when that cannot be told.
    pub(super) fn lacks(
        &mut self,
        path: &Path,
        is_folder: bool,
        takes: &mut dyn FnMut(&Path, Beside) -> bool,
    ) -> bool {
        match self.rules_for(path, is_folder) {
            Some((true, true)) => return !takes(path, Beside::Ignored),
            Some((false, true)) => {}
            Some((_, false)) | None => return true,
        }
        if path.components().count() > self.dir.components().count() + DEEPEST {
            return true;
        }
        if !is_folder {
            let plain = path.symlink_metadata().is_ok_and(|meta| meta.is_file() || meta.is_symlink());
            return !plain || !takes(path, Beside::File);
        }
        // A folder that is a repository of its own is one thing to git.
        if path.join(".git").symlink_metadata().is_ok() || !takes(path, Beside::Folder) {
            return true;
        }
        let Ok(mut inside) = std::fs::read_dir(path) else { return true };
        inside.any(|entry| {
            let kind = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)));
            kind.map_or(true, |(path, kind)| self.lacks(&path, kind.is_dir(), takes))
        })
    }
}

/// How deep a folder is looked into.
const DEEPEST: usize = 200;

/// The rules of a worktree.
struct Rules {
    repo: gix::Repository,
    stack: gix::worktree::Stack,
    /// Whether git surely finds the same ones.
    sure: bool,
}

fn rules(dir: &Path, index: &State, source: Source) -> Option<Rules> {
    let repo = super::settings::open(dir)?;
    let sure = finds_the_same(&repo);
    let stack = repo.excludes(index, None, source).ok()?.detach();
    Some(Rules { repo, stack, sure })
}

/// Whether the library finds the file with rules for all repositories where git does. Git takes a relative name as one below
/// the worktree's top, an empty one as none, and a worktree's own git directory for that which a condition is about.
fn finds_the_same(repo: &gix::Repository) -> bool {
    let set = repo.config_snapshot();
    let file = set.string("core.excludesFile");
    let absolute = |file: &[u8]| file.starts_with(b"/") || file.starts_with(b"~/");
    let default = || std::env::var_os("XDG_CONFIG_HOME").is_none_or(|home| !home.is_empty());
    // Both directories are below a folder that is above one of them.
    let alike = |condition: &[u8]| {
        !condition.starts_with(b"gitdir") || (condition.ends_with(b"/") && !condition.contains_str(".git"))
    };
    let sections = set.plumbing().sections_by_name("includeIf").into_iter().flatten();
    let mut conditions = sections.filter_map(|section| section.header().subsection_name());
    file.map_or_else(default, |file| absolute(&file)) && conditions.all(|condition| alike(condition))
}
