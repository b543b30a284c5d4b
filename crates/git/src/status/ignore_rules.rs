//! Ignore rules of a worktree, and sets of names to recognize paths that are not in the index.

use std::path::Path;

use gix::bstr::ByteSlice;
use gix::index::State;
use gix::index::entry::Mode;
use gix::worktree::stack::state::ignore::Source;

/// Names that the index has in one folder. Lookups expect names in sorted or reverse order, because file
/// systems often list a folder that way.
pub(crate) struct NameSet<'a> {
    sorted: Vec<&'a [u8]>,
    /// Position of the last name that was found.
    last_found_position: usize,
}

impl<'a> NameSet<'a> {
    /// Creates a set from names in any order.
    pub fn new(mut names: Vec<&'a [u8]>) -> NameSet<'a> {
        names.sort_unstable();
        NameSet { sorted: names, last_found_position: 0 }
    }

    /// Returns whether the set contains a name.
    pub fn contains(&mut self, name: &[u8]) -> bool {
        let neighbors = [self.last_found_position.wrapping_add(1), self.last_found_position.wrapping_sub(1)];
        let found = neighbors.into_iter().find(|at| self.sorted.get(*at) == Some(&name));
        let found = found.or_else(|| self.sorted.binary_search(&name).ok());
        self.last_found_position = found.unwrap_or(self.last_found_position);
        found.is_some()
    }
}

/// Kind of a path that the index does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnindexedKind {
    /// Regular file or symbolic link.
    File,
    /// Folder; its children follow one by one.
    Folder,
    /// File or folder that git ignores.
    Ignored,
}

/// Ignore rules of one worktree, loaded on first use.
pub(crate) struct IgnoreRules<'a> {
    /// Top of the worktree.
    dir: &'a Path,
    file_source: IgnoreFileSource<'a>,
    loaded: Option<LoadedRules>,
}

/// Place from which the `.gitignore` files of a worktree are read.
enum IgnoreFileSource<'a> {
    /// Worktree, and the index for files that the worktree lacks.
    WorktreeThenIndex(&'a State),
    /// Index only, even if the worktree has the file.
    IndexOnly(&'a State),
    /// Worktree only: no `.gitignore` is left out on purpose, as by a sparse checkout, and git does not use a
    /// missing one either. The value is the repository's hash kind.
    WorktreeOnly(gix::hash::Kind),
}

impl<'a> IgnoreRules<'a> {
    /// Creates the rules for the worktree at `dir` with its index.
    pub fn new(dir: &'a Path, index: &'a State) -> IgnoreRules<'a> {
        IgnoreRules { dir, file_source: IgnoreFileSource::WorktreeThenIndex(index), loaded: None }
    }

    /// Creates the rules for a worktree whose files do not exist yet and will be those of the index.
    pub(crate) fn from_index(dir: &'a Path, index: &'a State) -> IgnoreRules<'a> {
        IgnoreRules { dir, file_source: IgnoreFileSource::IndexOnly(index), loaded: None }
    }

    /// Creates the rules for a worktree in which no file is left out on purpose, as by a sparse checkout.
    pub(crate) fn with_all_files(dir: &'a Path, hash: gix::hash::Kind) -> IgnoreRules<'a> {
        IgnoreRules { dir, file_source: IgnoreFileSource::WorktreeOnly(hash), loaded: None }
    }

    /// Returns whether a rule ignores a file or folder, directly or through a parent folder; false if the
    /// rules cannot be read.
    pub fn is_ignored(&mut self, path: &Path, is_folder: bool) -> bool {
        self.match_rules(path, is_folder) == Some(true)
    }

    /// Returns whether a rule ignores a path; `None` if the rules cannot be read.
    fn match_rules(&mut self, path: &Path, is_folder: bool) -> Option<bool> {
        Some(self.match_rules_and_exactness(path, is_folder)?.0)
    }

    /// Returns whether a rule ignores a path, and whether git certainly applies the same rules.
    fn match_rules_and_exactness(&mut self, path: &Path, is_folder: bool) -> Option<(bool, bool)> {
        let relative = path.strip_prefix(self.dir).ok()?;
        if self.loaded.is_none() {
            self.loaded = match self.file_source {
                IgnoreFileSource::WorktreeThenIndex(index) => {
                    load_rules(self.dir, index, Source::WorktreeThenIdMappingIfNotSkipped)
                }
                IgnoreFileSource::IndexOnly(index) => load_rules(self.dir, index, Source::IdMapping),
                IgnoreFileSource::WorktreeOnly(hash) => {
                    load_rules(self.dir, &State::new(hash), Source::WorktreeThenIdMappingIfNotSkipped)
                }
            };
        }
        let LoadedRules { repo, stack, is_exact: sure } = self.loaded.as_mut()?;
        let mode = if is_folder { Mode::DIR } else { Mode::FILE };
        Some((stack.at_path(relative, Some(mode), &repo.objects).ok()?.is_excluded(), *sure))
    }

    /// Returns whether `accepts` rejects a path outside the index or anything below it. `accepts` is not
    /// called below ignored folders. Returns true also where the rules are uncertain, and for a nested
    /// repository.
    pub(crate) fn has_unaccepted(
        &mut self,
        path: &Path,
        is_folder: bool,
        accepts: &mut dyn FnMut(&Path, UnindexedKind) -> bool,
    ) -> bool {
        match self.match_rules_and_exactness(path, is_folder) {
            Some((true, true)) => return !accepts(path, UnindexedKind::Ignored),
            Some((false, true)) => {}
            Some((_, false)) | None => return true,
        }
        if path.components().count() > self.dir.components().count() + MAX_FOLDER_DEPTH {
            return true;
        }
        if !is_folder {
            let is_file_or_link =
                path.symlink_metadata().is_ok_and(|meta| meta.is_file() || meta.is_symlink());
            return !is_file_or_link || !accepts(path, UnindexedKind::File);
        }
        // Git treats a nested repository as a single item.
        if path.join(".git").symlink_metadata().is_ok() || !accepts(path, UnindexedKind::Folder) {
            return true;
        }
        let Ok(mut children) = std::fs::read_dir(path) else { return true };
        children.any(|entry| {
            let kind = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)));
            kind.map_or(true, |(path, kind)| self.has_unaccepted(&path, kind.is_dir(), accepts))
        })
    }
}

/// Maximum depth to which folders are read.
const MAX_FOLDER_DEPTH: usize = 200;

/// Ignore rules of a worktree, with the repository that they were read from.
struct LoadedRules {
    repo: gix::Repository,
    stack: gix::worktree::Stack,
    /// Whether git certainly reads the same rules.
    is_exact: bool,
}

fn load_rules(dir: &Path, index: &State, source: Source) -> Option<LoadedRules> {
    let repo = crate::repository::open_settings::open(dir)?;
    let is_exact = finds_same_excludes_file(&repo);
    let stack = repo.excludes(index, None, source).ok()?.detach();
    Some(LoadedRules { repo, stack, is_exact })
}

/// Returns whether gitoxide finds the global excludes file where git does. Git resolves a relative path from
/// the worktree's top and treats an empty one as unset. Git also matches a `gitdir` condition against the
/// worktree's own git directory.
fn finds_same_excludes_file(repo: &gix::Repository) -> bool {
    let config = repo.config_snapshot();
    let file = config.string("core.excludesFile");
    let is_absolute = |file: &[u8]| file.starts_with(b"/") || file.starts_with(b"~/");
    let has_usual_default = || std::env::var_os("XDG_CONFIG_HOME").is_none_or(|home| !home.is_empty());
    // Both git directories are below a folder if one of them is.
    let is_unambiguous = |condition: &[u8]| {
        !condition.starts_with(b"gitdir") || (condition.ends_with(b"/") && !condition.contains_str(".git"))
    };
    let sections = config.plumbing().sections_by_name("includeIf").into_iter().flatten();
    let mut conditions = sections.filter_map(|section| section.header().subsection_name());
    file.map_or_else(has_usual_default, |file| is_absolute(&file))
        && conditions.all(|condition| is_unambiguous(condition))
}
