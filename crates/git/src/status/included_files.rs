//! Files of the main checkout to include in a worktree: those that patterns match, that are not committed,
//! and that git ignores in the worktree. Patterns have the syntax of `.gitignore`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, ByteSlice};
use gix::glob::pattern::{Case, Mode};
use gix::ignore::Search;
use gix::ignore::search::Ignore;
use gix::index::File;

use super::ignore_rules::IgnoreRules;
use crate::{Error, Repo, RepoPath};

/// Bytes that end the literal part of a pattern.
const GLOB_BYTES: &[u8] = br"*?[\";

/// Names that are never included: a repository's git directory or the file that points to it, and lanes.
const NEVER_INCLUDED: [&[u8]; 2] = [b".git", b".proq-worktrees"];

/// Include patterns in order: the last match decides, and a pattern with `!` excludes.
#[derive(Debug)]
pub struct IncludePatterns {
    search: Search,
    /// Literal leading components of each anchored pattern, up to the first component with a wildcard.
    literal_prefixes: Vec<Vec<u8>>,
    has_negative: bool,
    lines: Vec<Vec<u8>>,
    /// Numbers of the lines that have matched so far, counted from one.
    matched_lines: RefCell<BTreeSet<usize>>,
}

impl IncludePatterns {
    /// Parses patterns, one on each line.
    pub fn parse(text: &[u8]) -> IncludePatterns {
        let mut search = Search::default();
        // Parsing from memory cannot fail.
        let _read = search.add_patterns_buffer(text, PathBuf::new(), None, Ignore::default());
        let all = || search.patterns.iter().flat_map(|list| &list.patterns).map(|mapping| &mapping.pattern);
        let is_anchored = |mode: Mode| !mode.contains(Mode::NEGATIVE) && !mode.contains(Mode::NO_SUB_DIR);
        let literal_prefixes =
            all().filter(|p| is_anchored(p.mode)).map(|p| literal_prefix(p.text.as_bytes())).collect();
        let has_negative = all().any(gix::glob::Pattern::is_negative);
        let lines = text.lines().map(<[u8]>::to_vec).collect();
        IncludePatterns { search, literal_prefixes, has_negative, lines, matched_lines: RefCell::default() }
    }

    /// Returns the first `max_count` lines that match nothing, each with its number from zero. A line also
    /// counts as used if it would match without the lines below it.
    fn unmatched_lines(
        &self,
        max_count: usize,
        matches_any: impl Fn(&IncludePatterns) -> bool,
    ) -> Vec<(usize, String)> {
        let all = self.search.patterns.iter().flat_map(|list| &list.patterns);
        let numbers = all.filter(|mapping| !mapping.pattern.is_negative()).map(|one| one.sequence_number);
        let matched = self.matched_lines.borrow();
        let unmatched = numbers.filter(|number| !matched.contains(number)).filter_map(|number| {
            let line = self.lines.get(number.checked_sub(1)?)?;
            Some((number - 1, line))
        });
        unmatched
            .filter(|(_, line)| !matches_any(&IncludePatterns::parse(line)))
            .take(max_count)
            .map(|(at, line)| (at, String::from_utf8_lossy(line.trim()).into_owned()))
            .collect()
    }

    /// Returns whether there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.search.patterns.iter().all(|list| list.patterns.is_empty())
    }

    /// Returns whether a negative pattern excludes a path although a parent folder is included.
    pub fn excludes(&self, path: &RepoPath, is_folder: bool) -> bool {
        self.has_negative && self.last_match(path.as_bytes(), is_folder) == Some(false)
    }

    /// Returns whether the last pattern that matches a path itself includes it; `None` if no pattern matches.
    fn last_match(&self, path: &[u8], is_folder: bool) -> Option<bool> {
        let found =
            self.search.pattern_matching_relative_path(BStr::new(path), Some(is_folder), Case::Sensitive);
        found.map(|found| {
            if !found.pattern.is_negative() {
                self.matched_lines.borrow_mut().insert(found.sequence_number);
            }
            !found.pattern.is_negative()
        })
    }

    /// Returns whether any pattern is negative: it excludes paths that other patterns match.
    pub fn has_negative_patterns(&self) -> bool {
        self.has_negative
    }

    /// Returns whether a path is included, directly or through a parent folder.
    pub fn includes(&self, path: &RepoPath, is_folder: bool) -> bool {
        let is_parent_included = path.parents().fold(false, |is_included, folder| {
            self.last_match(folder.as_bytes(), true).unwrap_or(is_included)
        });
        self.last_match(path.as_bytes(), is_folder).unwrap_or(is_parent_included)
    }

    /// Returns whether an anchored pattern may match a path below a folder. A bare name such as `.env` is not
    /// searched for in a folder that git ignores entirely: in `node_modules` it would belong to another
    /// project.
    pub fn may_match_below(&self, folder: &[u8]) -> bool {
        self.literal_prefixes
            .iter()
            .any(|prefix| prefix.is_empty() || is_within(prefix, folder) || is_within(folder, prefix))
    }
}

/// Returns the leading components of a pattern, up to the first one with a wildcard.
fn literal_prefix(pattern: &[u8]) -> Vec<u8> {
    let components = pattern.split_str("/").take_while(|word| word.find_byteset(GLOB_BYTES).is_none());
    components.collect::<Vec<_>>().join(&b'/')
}

fn is_within(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first().is_none_or(|b| *b == b'/'))
}

/// File or entire folder to include in a worktree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IncludedPath {
    /// Path in both worktrees.
    pub path: RepoPath,
    /// Whether the path is a folder.
    pub is_folder: bool,
}

/// Result of matching include patterns against the main checkout.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct IncludeMatches {
    /// Paths to include, sorted.
    pub included: Vec<IncludedPath>,
    /// Matched paths that git does not ignore in the worktree, where they would appear as untracked.
    pub not_ignored: Vec<RepoPath>,
}

/// Main checkout whose files are matched for inclusion in a target worktree.
pub struct IncludeSource<'a> {
    main_dir: &'a Path,
    main_index: File,
    target_dir: &'a Path,
    target_index: File,
    /// Untracked paths of the main checkout; a folder without tracked files is one item.
    untracked: Vec<IncludedPath>,
    off_limits: BTreeSet<RepoPath>,
}

impl<'a> IncludeSource<'a> {
    /// Lists the untracked paths of the main checkout. Nothing at or below `off_limits` is ever included.
    ///
    /// # Errors
    /// Fails if git fails, or if an index cannot be read.
    pub fn new(
        repo: &Repo,
        main_dir: &'a Path,
        target_dir: &'a Path,
        off_limits: impl IntoIterator<Item = PathBuf>,
    ) -> Result<IncludeSource<'a>, Error> {
        let out = repo.git_in(main_dir).args(["ls-files", "-z", "--others", "--directory"]).run()?;
        let entry = |text: &[u8]| match text.strip_suffix(b"/") {
            Some(folder) => IncludedPath { path: RepoPath::new(folder), is_folder: true },
            None => IncludedPath { path: RepoPath::new(text), is_folder: false },
        };
        let relative = |path: PathBuf| RepoPath::from_path(path.strip_prefix(main_dir).ok()?);
        Ok(IncludeSource {
            main_dir,
            main_index: read_index(repo, main_dir)?,
            target_dir,
            target_index: read_index(repo, target_dir)?,
            untracked: out.nul_separated_fields().map(entry).collect(),
            off_limits: off_limits.into_iter().filter_map(relative).collect(),
        })
    }

    /// Returns whether a path is never included, even if a pattern matches.
    pub fn is_off_limits(&self, path: &RepoPath) -> bool {
        NEVER_INCLUDED.iter().any(|name| path.ends_with_name(name)) || self.off_limits.contains(path)
    }

    /// Returns whether the target worktree tracks a path.
    pub fn is_tracked(&self, path: &RepoPath) -> bool {
        self.target_index.entry_by_path(BStr::new(path.as_bytes())).is_some()
    }

    /// Returns the pattern lines, counted from zero, that match nothing here. Call
    /// [`IncludeSource::find_included`] with the patterns first.
    pub fn unmatched_lines(
        &self,
        patterns: &IncludePatterns,
        as_links: bool,
        max_count: usize,
    ) -> Vec<(usize, String)> {
        patterns.unmatched_lines(max_count, |line_patterns| {
            // Only whether the line matches counts, not whether the match is committed.
            drop(self.find_included(line_patterns, as_links));
            !line_patterns.matched_lines.borrow().is_empty()
        })
    }

    /// Returns the untracked paths of the main checkout that `patterns` match. `as_links` is whether they
    /// will be linked: git does not treat a link as a folder, so it is enough that the main checkout's rules
    /// ignore the folder.
    pub fn find_included(&self, patterns: &IncludePatterns, as_links: bool) -> IncludeMatches {
        let mut search = IncludeSearch {
            source: self,
            patterns,
            as_links,
            main_rules: IgnoreRules::new(self.main_dir, &self.main_index),
            target_rules: IgnoreRules::new(self.target_dir, &self.target_index),
            matches: IncludeMatches::default(),
        };
        for item in &self.untracked {
            search.include_matching(item.clone());
        }
        let mut matches = search.matches;
        matches.included.sort();
        matches
    }
}

/// Search of the main checkout for paths to include, with the matches so far.
struct IncludeSearch<'a> {
    source: &'a IncludeSource<'a>,
    patterns: &'a IncludePatterns,
    as_links: bool,
    main_rules: IgnoreRules<'a>,
    target_rules: IgnoreRules<'a>,
    matches: IncludeMatches,
}

impl IncludeSearch<'_> {
    /// Includes an untracked path if the patterns match it; otherwise visits its contents.
    fn include_matching(&mut self, item: IncludedPath) {
        if self.source.is_off_limits(&item.path) {
            return;
        }
        if self.patterns.includes(&item.path, item.is_folder) {
            self.include_if_ignored(item);
        } else if item.is_folder {
            self.include_matching_below(&item.path);
        }
    }

    /// Visits the children of a folder that is not included as a whole, unless it is a nested repository, or
    /// is ignored and no anchored pattern may match below it.
    fn include_matching_below(&mut self, folder: &RepoPath) {
        let folder_path = folder.to_fs_path(self.source.main_dir);
        let is_ignored_folder = self.main_rules.is_ignored(&folder_path, true);
        // A nested repository has its own ignore rules.
        if folder_path.join(".git").symlink_metadata().is_ok()
            || (is_ignored_folder && !self.patterns.may_match_below(folder.as_bytes()))
        {
            return;
        }
        for item in folder_children(folder, &folder_path) {
            if !is_ignored_folder || self.patterns.may_match_below(item.path.as_bytes()) {
                self.include_matching(item);
            }
        }
    }

    /// Adds a matched path to the matches: to include if it is ignored in the worktree; otherwise its ignored
    /// children, or to the paths that git does not ignore.
    fn include_if_ignored(&mut self, item: IncludedPath) {
        if self.source.is_tracked(&item.path) {
            return;
        }
        let target_path = item.path.to_fs_path(self.source.target_dir);
        let is_ignored = match self.as_links {
            false => self.target_rules.is_ignored(&target_path, item.is_folder),
            true => self.main_rules.is_ignored(&item.path.to_fs_path(self.source.main_dir), item.is_folder),
        };
        if is_ignored {
            self.matches.included.push(item);
        } else if item.is_folder && !self.as_links {
            // All children may be ignored.
            for child in folder_children(&item.path, &item.path.to_fs_path(self.source.main_dir)) {
                if !self.source.is_off_limits(&child.path)
                    && !self.patterns.excludes(&child.path, child.is_folder)
                {
                    self.include_if_ignored(child);
                }
            }
        } else if target_path.symlink_metadata().is_err() {
            self.matches.not_ignored.push(item.path);
        }
    }
}

/// Returns the direct children of a folder.
pub fn folder_children(folder: &RepoPath, folder_path: &Path) -> impl Iterator<Item = IncludedPath> {
    let entries = std::fs::read_dir(folder_path).into_iter().flatten().flatten();
    entries.map(|entry| IncludedPath {
        path: folder.join(entry.file_name().as_bytes()),
        is_folder: entry.file_type().is_ok_and(|kind| kind.is_dir()),
    })
}

fn read_index(repo: &Repo, dir: &Path) -> Result<File, Error> {
    let path = repo.worktree_git_dir(dir)?.join("index");
    let options = gix::index::decode::Options::default();
    File::at_or_default(&path, repo.gix.object_hash(), true, options)
        .map_err(|e| Error::io("read", &path)(std::io::Error::other(e.to_string())))
}

/// Returns the line of an exclude file that matches exactly one path from the top.
pub fn exact_exclude_line(path: &RepoPath) -> Vec<u8> {
    let mut line = b"/".to_vec();
    for byte in path.as_bytes() {
        if GLOB_BYTES.contains(byte) || *byte == b' ' {
            line.push(b'\\');
        }
        line.push(*byte);
    }
    line
}

/// Returns whether git ignores a file in a worktree. The file need not exist.
///
/// # Errors
/// Fails if the index cannot be read.
pub fn is_ignored(repo: &Repo, dir: &Path, path: &RepoPath) -> Result<bool, Error> {
    let index = read_index(repo, dir)?;
    Ok(IgnoreRules::new(dir, &index).is_ignored(&dir.join(OsStr::from_bytes(path.as_bytes())), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(text: &str) -> IncludePatterns {
        IncludePatterns::parse(text.as_bytes())
    }

    fn includes(text: &str, path: &str) -> bool {
        let (path, is_folder) = path.strip_suffix('/').map_or((path, false), |folder| (folder, true));
        patterns(text).includes(&RepoPath::new(path), is_folder)
    }

    #[test]
    fn patterns_are_read_as_in_gitignore() {
        assert!(includes(".env", ".env") && includes(".env", "a/b/.env") && !includes("/.env", "a/.env"));
        assert!(
            includes("target/", "target/")
                && !includes("target/", "target")
                && includes("target/", "target/x/y")
        );
        assert!(includes("*.key\n!public.key", "a.key") && !includes("*.key\n!public.key", "x/public.key"));
        assert!(includes("data/*.db", "data/a.db") && !includes("data/*.db", "x/data/a.db"));
        assert!(!includes("# .env\n\n", ".env") && patterns("# .env\n \n").is_empty());
        let tested = patterns("cache/\n!cache/tmp/\n");
        assert!(tested.excludes(&RepoPath::new("cache/tmp"), true));
        assert!(!tested.excludes(&RepoPath::new("cache/tmp"), false));
        assert!(!tested.excludes(&RepoPath::new("cache/x"), true));
    }

    #[test]
    fn skips_bare_names_in_ignored_folders() {
        let below = |text: &str, folder: &str| patterns(text).may_match_below(folder.as_bytes());
        assert!(!below(".env", "node_modules") && !below("/.env", "node_modules"));
        assert!(below("node_modules/.cache/", "node_modules") && !below("node_modules/.cache/", "target"));
        assert!(below("node_modules/.cache/", "node_modules/.cache") && below("a/*/c", "a/b"));
        assert!(below("**/cache/x", "anything/at/all") && !below("ab/c", "a") && !below("!a/b", "a"));
    }

    #[test]
    fn an_exclude_line_names_one_path() {
        assert_eq!(exact_exclude_line(&RepoPath::new("a b/[x]*.env ")), b"/a\\ b/\\[x]\\*.env\\ ");
    }
}
