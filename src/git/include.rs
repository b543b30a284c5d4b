//! Owns which files of the main checkout a worktree is to be given: those that patterns name, that nobody has committed, and
//! that git ignores in the worktree. Patterns are those of `.gitignore`.

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

use super::ignored::Ignored;
use super::{Error, Repo, RepoPath};

/// What ends the part of a pattern that is a plain name.
const SPECIAL: &[u8] = br"*?[\";

/// What is never given: a repository's own folder or the file that leads to it, and lanes.
const NEVER: [&[u8]; 2] = [b".git", b".proq-worktrees"];

/// Patterns of files, in order: the last one that matches counts, and one with `!` takes out.
#[derive(Debug)]
pub(crate) struct Patterns {
    search: Search,
    /// The first words of each pattern that names a place, up to the first that could match more than itself.
    places: Vec<Vec<u8>>,
    takes_out: bool,
    lines: Vec<Vec<u8>>,
    /// Which lines have named something so far, counted from one.
    named: RefCell<BTreeSet<usize>>,
}

impl Patterns {
    /// Reads patterns, one on each line.
    pub(crate) fn read(text: &[u8]) -> Patterns {
        let mut search = Search::default();
        // In memory nothing can fail.
        let _read = search.add_patterns_buffer(text, PathBuf::new(), None, Ignore::default());
        let all = || search.patterns.iter().flat_map(|list| &list.patterns).map(|mapping| &mapping.pattern);
        let is_place = |mode: Mode| !mode.contains(Mode::NEGATIVE) && !mode.contains(Mode::NO_SUB_DIR);
        let places = all().filter(|p| is_place(p.mode)).map(|p| home(p.text.as_bytes())).collect();
        let takes_out = all().any(gix::glob::Pattern::is_negative);
        let lines = text.lines().map(<[u8]>::to_vec).collect();
        Patterns { search, places, takes_out, lines, named: RefCell::default() }
    }

    /// The first `most` lines that name nothing, each with its number from zero: not by themselves either, without the lines below
    /// them.
    fn unused(&self, most: usize, names: impl Fn(&Patterns) -> bool) -> Vec<(usize, String)> {
        let all = self.search.patterns.iter().flat_map(|list| &list.patterns);
        let numbers = all.filter(|one| !one.pattern.is_negative()).map(|one| one.sequence_number);
        let named = self.named.borrow();
        let left = numbers.filter(|number| !named.contains(number)).filter_map(|number| {
            let line = self.lines.get(number.checked_sub(1)?)?;
            Some((number - 1, line))
        });
        left.filter(|(_, line)| !names(&Patterns::read(line)))
            .take(most)
            .map(|(at, line)| (at, String::from_utf8_lossy(line.trim()).into_owned()))
            .collect()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.search.patterns.iter().all(|list| list.patterns.is_empty())
    }

    /// Whether a path in a folder that is taken is taken out again.
    pub(crate) fn takes_out(&self, path: &RepoPath, is_folder: bool) -> bool {
        self.takes_out && self.says(path.as_bytes(), is_folder) == Some(false)
    }

    /// What the last pattern that matches a path itself says.
    fn says(&self, path: &[u8], is_folder: bool) -> Option<bool> {
        let found =
            self.search.pattern_matching_relative_path(BStr::new(path), Some(is_folder), Case::Sensitive);
        found.map(|found| {
            if !found.pattern.is_negative() {
                self.named.borrow_mut().insert(found.sequence_number);
            }
            !found.pattern.is_negative()
        })
    }

    /// Whether some take out what others name.
    pub(crate) fn has_exceptions(&self) -> bool {
        self.takes_out
    }

    /// Whether a path is named, by itself or by a folder that it lies in.
    pub(crate) fn names(&self, path: &RepoPath, is_folder: bool) -> bool {
        let above =
            path.parents().fold(false, |above, folder| self.says(folder.as_bytes(), true).unwrap_or(above));
        self.says(path.as_bytes(), is_folder).unwrap_or(above)
    }

    /// Whether a pattern that names a place may name one below this folder. One that is a mere name, as `.env`, is not looked for
    /// in what git ignores as a whole: in `node_modules` it would be somebody else's.
    pub(crate) fn may_name_below(&self, folder: &[u8]) -> bool {
        self.places
            .iter()
            .any(|place| place.is_empty() || is_within(place, folder) || is_within(folder, place))
    }
}

/// The words of a pattern up to the first that could match more than itself.
fn home(pattern: &[u8]) -> Vec<u8> {
    let words = pattern.split_str("/").take_while(|word| word.find_byteset(SPECIAL).is_none());
    words.collect::<Vec<_>>().join(&b'/')
}

fn is_within(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first().is_none_or(|b| *b == b'/'))
}

/// Something that a worktree is to be given whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Included {
    /// Where it lies, in both.
    pub(crate) path: RepoPath,
    /// Whether it is a folder.
    pub(crate) is_folder: bool,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// What is to be given, by path.
    pub(crate) all: Vec<Included>,
    /// What is named and would show up as new in the worktree, since git does not ignore it there.
    pub(crate) not_ignored: Vec<RepoPath>,
}

/// A main checkout in which files are looked for on behalf of a worktree.
pub(crate) struct Giver<'a> {
    main: &'a Path,
    main_index: File,
    to: &'a Path,
    to_index: File,
    /// All that is not committed in the main checkout, folders as a whole.
    loose: Vec<Included>,
    off_limits: BTreeSet<RepoPath>,
}

impl<'a> Giver<'a> {
    /// Looks at what there is. Nothing at or below `off_limits` is ever given.
    ///
    /// # Errors
    /// When git fails, or an index cannot be read.
    pub(crate) fn new(
        repo: &Repo,
        main: &'a Path,
        to: &'a Path,
        off_limits: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Giver<'a>, Error> {
        let out = repo.git_in(main).args(["ls-files", "-z", "--others", "--directory"]).run()?;
        let entry = |text: &[u8]| match text.strip_suffix(b"/") {
            Some(folder) => Included { path: RepoPath::new(folder), is_folder: true },
            None => Included { path: RepoPath::new(text), is_folder: false },
        };
        let below = |path: PathBuf| RepoPath::of(path.strip_prefix(main).ok()?);
        Ok(Giver {
            main,
            main_index: index_of(repo, main)?,
            to,
            to_index: index_of(repo, to)?,
            loose: out.fields().map(entry).collect(),
            off_limits: off_limits.into_iter().filter_map(below).collect(),
        })
    }

    /// Whether a path is never given, whatever names it.
    pub(crate) fn is_off_limits(&self, path: &RepoPath) -> bool {
        NEVER.iter().any(|name| path.ends_with_name(name)) || self.off_limits.contains(path)
    }

    /// Whether the worktree has a path committed, or about to be.
    pub(crate) fn is_tracked(&self, path: &RepoPath) -> bool {
        self.to_index.entry_by_path(BStr::new(path.as_bytes())).is_some()
    }

    /// The lines of patterns, counted from zero, that name nothing here. They have been looked for by [`Giver::find`] before.
    pub(crate) fn unused(&self, patterns: &Patterns, as_links: bool, most: usize) -> Vec<(usize, String)> {
        patterns.unused(most, |one| {
            // What it finds does not count, only whether it finds any, committed or not.
            drop(self.find(one, as_links));
            !one.named.borrow().is_empty()
        })
    }

    /// What patterns name. `as_links` looks for what is to be linked: a link is no folder to git, so where the main checkout's rules
    /// ignore a folder that is enough.
    pub(crate) fn find(&self, patterns: &Patterns, as_links: bool) -> Found {
        let mut search = Looking {
            giver: self,
            patterns,
            as_links,
            here: Ignored::new(self.main, &self.main_index),
            there: Ignored::new(self.to, &self.to_index),
            found: Found::default(),
        };
        for one in &self.loose {
            search.look_at(one.clone());
        }
        let mut found = search.found;
        found.all.sort();
        found
    }
}

struct Looking<'a> {
    giver: &'a Giver<'a>,
    patterns: &'a Patterns,
    as_links: bool,
    here: Ignored<'a>,
    there: Ignored<'a>,
    found: Found,
}

impl Looking<'_> {
    fn look_at(&mut self, one: Included) {
        if self.giver.is_off_limits(&one.path) {
            return;
        }
        if self.patterns.names(&one.path, one.is_folder) {
            self.take(one);
        } else if one.is_folder {
            self.look_into(&one.path);
        }
    }

    fn look_into(&mut self, folder: &RepoPath) {
        let place = folder.under(self.giver.main);
        let is_whole = self.here.names(&place, true);
        // A repository of its own has its own rules of what is new.
        if place.join(".git").symlink_metadata().is_ok()
            || (is_whole && !self.patterns.may_name_below(folder.as_bytes()))
        {
            return;
        }
        for one in inside(folder, &place) {
            if !is_whole || self.patterns.may_name_below(one.path.as_bytes()) {
                self.look_at(one);
            }
        }
    }

    fn take(&mut self, one: Included) {
        if self.giver.is_tracked(&one.path) {
            return;
        }
        let there = one.path.under(self.giver.to);
        let is_ignored = match self.as_links {
            false => self.there.names(&there, one.is_folder),
            true => self.here.names(&one.path.under(self.giver.main), one.is_folder),
        };
        if is_ignored {
            self.found.all.push(one);
        } else if one.is_folder && !self.as_links {
            // Perhaps all that is in it is.
            for one in inside(&one.path, &one.path.under(self.giver.main)) {
                if !self.giver.is_off_limits(&one.path) && !self.patterns.takes_out(&one.path, one.is_folder)
                {
                    self.take(one);
                }
            }
        } else if there.symlink_metadata().is_err() {
            self.found.not_ignored.push(one.path);
        }
    }
}

/// What a folder holds.
pub(crate) fn inside(folder: &RepoPath, place: &Path) -> impl Iterator<Item = Included> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    entries.map(|entry| Included {
        path: folder.join(entry.file_name().as_bytes()),
        is_folder: entry.file_type().is_ok_and(|kind| kind.is_dir()),
    })
}

fn index_of(repo: &Repo, dir: &Path) -> Result<File, Error> {
    let path = repo.git_dir_of(dir)?.join("index");
    let options = gix::index::decode::Options::default();
    File::at_or_default(&path, repo.gix.object_hash(), true, options)
        .map_err(|e| Error::io("read", &path)(std::io::Error::other(e.to_string())))
}

/// The line for an exclude file that names one path from the top, and nothing else.
pub(crate) fn exclude_line(path: &RepoPath) -> Vec<u8> {
    let mut line = b"/".to_vec();
    for byte in path.as_bytes() {
        if SPECIAL.contains(byte) || *byte == b' ' {
            line.push(b'\\');
        }
        line.push(*byte);
    }
    line
}

/// Whether git ignores a file in a worktree, which need not be there.
///
/// # Errors
/// When the index cannot be read.
pub(crate) fn is_ignored(repo: &Repo, dir: &Path, path: &RepoPath) -> Result<bool, Error> {
    let index = index_of(repo, dir)?;
    Ok(Ignored::new(dir, &index).names(&dir.join(OsStr::from_bytes(path.as_bytes())), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(text: &str) -> Patterns {
        Patterns::read(text.as_bytes())
    }

    fn names(text: &str, path: &str) -> bool {
        let (path, is_folder) = path.strip_suffix('/').map_or((path, false), |folder| (folder, true));
        patterns(text).names(&RepoPath::new(path), is_folder)
    }

    #[test]
    fn patterns_are_read_as_in_gitignore() {
        assert!(names(".env", ".env") && names(".env", "a/b/.env") && !names("/.env", "a/.env"));
        assert!(names("target/", "target/") && !names("target/", "target") && names("target/", "target/x/y"));
        assert!(names("*.key\n!public.key", "a.key") && !names("*.key\n!public.key", "x/public.key"));
        assert!(names("data/*.db", "data/a.db") && !names("data/*.db", "x/data/a.db"));
        assert!(!names("# .env\n\n", ".env") && patterns("# .env\n \n").is_empty());
        let some = patterns("cache/\n!cache/tmp/\n");
        assert!(some.takes_out(&RepoPath::new("cache/tmp"), true));
        assert!(!some.takes_out(&RepoPath::new("cache/tmp"), false));
        assert!(!some.takes_out(&RepoPath::new("cache/x"), true));
    }

    #[test]
    fn a_mere_name_is_not_looked_for_in_what_is_ignored_as_a_whole() {
        let below = |text: &str, folder: &str| patterns(text).may_name_below(folder.as_bytes());
        assert!(!below(".env", "node_modules") && !below("/.env", "node_modules"));
        assert!(below("node_modules/.cache/", "node_modules") && !below("node_modules/.cache/", "target"));
        assert!(below("node_modules/.cache/", "node_modules/.cache") && below("a/*/c", "a/b"));
        assert!(below("**/cache/x", "anything/at/all") && !below("ab/c", "a") && !below("!a/b", "a"));
    }

    #[test]
    fn an_exclude_line_names_one_path() {
        assert_eq!(exclude_line(&RepoPath::new("a b/[x]*.env ")), b"/a\\ b/\\[x]\\*.env\\ ");
    }
}
