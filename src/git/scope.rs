//! Owns globs that say which files of a repository something is about, and whether two lists of them meet.

use std::collections::BTreeSet;

use gix::bstr::{BStr, ByteSlice};
use gix::glob::{Pattern, wildmatch::Mode};

use super::{Error, RepoPath};

/// What makes more of a word than the name of a file. A backslash takes the meaning of the others away.
const SPECIAL: &[u8] = br"*?[\";

/// Globs, each from the top of the repository as `git diff -- GLOB` takes it there: a file, a folder with all below it, or a
/// pattern. `*` and `?` stand for a slash too, and `**/` for no folder as well. Upper and lower case are the same, since they
/// are on some disks.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    globs: Vec<Glob>,
}

#[derive(Debug, Clone)]
struct Glob {
    /// As it was given.
    text: String,
    /// A path that it matches, or that lies below a folder that it matches, is in it. Without one, all paths are.
    pattern: Option<Pattern>,
    /// Whether it ends in a slash: then a file of that name is not in it.
    only_below: bool,
    /// The folder, or the file, that is in it as a whole, if that is all that it says; empty for the top.
    whole: Option<Vec<u8>>,
    /// The deepest folder that all of it lies in; the file where it names one.
    home: Vec<u8>,
}

impl Scope {
    /// Reads globs.
    ///
    /// # Errors
    /// [`Error::Glob`] for the first one that is none.
    pub(crate) fn read(globs: &[String]) -> Result<Scope, Error> {
        let globs = globs.iter().map(|text| Glob::read(text)).collect::<Result<_, _>>()?;
        Ok(Scope { globs })
    }

    /// The first glob that a path is in.
    pub(crate) fn holds(&self, path: &RepoPath) -> Option<&str> {
        self.globs.iter().find(|glob| glob.holds(path.as_bytes())).map(|glob| glob.text.as_str())
    }

    /// The folders that what it names lies in, or would lie in, none within another. What is at the top has none.
    pub(crate) fn folders(&self, files: &[RepoPath]) -> Vec<RepoPath> {
        let above = |path: &[u8]| path.rfind_byte(b'/').map(|at| path[..at].to_vec());
        let held = files.iter().filter(|path| self.holds(path).is_some());
        let mut found: BTreeSet<Vec<u8>> = held.filter_map(|path| above(path.as_bytes())).collect();
        for glob in &self.globs {
            let below = [glob.home.as_slice(), b"/"].concat();
            let is_folder = glob.only_below || files.iter().any(|path| path.as_bytes().starts_with(&below));
            let folder = if is_folder { Some(glob.home.clone()) } else { above(&glob.home) };
            found.extend(folder.filter(|folder| !folder.is_empty()));
        }
        let is_within = |path: &[u8]| {
            let mut slashes = path.iter().enumerate().filter(|(_, b)| **b == b'/');
            slashes.any(|(at, _)| found.contains(&path[..at]))
        };
        found.iter().filter(|path| !is_within(path)).map(|path| RepoPath::new(path.clone())).collect()
    }

    /// Whether what it shares with others cannot always be told by names alone.
    pub(crate) fn has_patterns(&self) -> bool {
        self.globs.iter().any(|glob| glob.whole.is_none())
    }

    /// The first that it names without a wildcard and that is neither among these files nor a folder that one of them is in.
    pub(crate) fn absent_from(&self, files: &[RepoPath]) -> Option<&str> {
        let is_there = |glob: &Glob| {
            let mut rests =
                files.iter().filter_map(|path| path.as_bytes().strip_prefix(glob.home.as_slice()));
            rests.any(|rest| rest.first().map_or(!glob.only_below, |next| *next == b'/'))
        };
        let mut names = self.globs.iter().filter(|glob| glob.is_name());
        names.find(|glob| !is_there(glob)).map(|glob| glob.text.as_str())
    }

    /// Two globs of which one is a folder or a file as a whole and the other lies in it: `(of this one, of the other one)`.
    /// What they share need not exist yet.
    ///
    /// Together with [`Scope::meets_at`] no file is missed that is in both and exists: it is looked at there. What neither
    /// tells is whether two patterns such as `src/*.rs` and `*test*` will both match a file that somebody makes one day.
    pub(crate) fn meets<'a>(&'a self, other: &'a Scope) -> Option<(&'a str, &'a str)> {
        let pairs = self.globs.iter().flat_map(|one| other.globs.iter().map(move |two| (one, two)));
        let mut met = pairs.filter(|(one, two)| one.encloses(two) || two.encloses(one));
        met.next().map(|(one, two)| (one.text.as_str(), two.text.as_str()))
    }

    /// The globs of both that the first of these files is in that is in both.
    pub(crate) fn meets_at<'a>(&'a self, other: &'a Scope, files: &[RepoPath]) -> Option<(&'a str, &'a str)> {
        files.iter().find_map(|path| Some((self.holds(path)?, other.holds(path)?)))
    }
}

impl Glob {
    fn read(text: &str) -> Result<Glob, Error> {
        let refused = |why| Err(Error::Glob { glob: text.to_owned(), why });
        if text.trim().is_empty() {
            return refused("it names nothing");
        }
        if text.starts_with(['!', ':']) {
            return refused("a scope knows no exceptions and no pathspec magic");
        }
        if text.chars().any(char::is_control) {
            return refused("it holds a control character");
        }
        let words: Vec<&str> = text.split('/').filter(|word| !word.is_empty() && *word != ".").collect();
        if words.contains(&"..") {
            return refused("it is read from the top of the repository and cannot leave it");
        }
        let path = words.join("/").into_bytes();
        Ok(Glob {
            text: text.to_owned(),
            pattern: Pattern::from_bytes_without_negation(&path),
            only_below: text.ends_with('/') && !path.is_empty(),
            whole: whole(&path),
            home: home(&words),
        })
    }

    fn holds(&self, path: &[u8]) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        let matches = |path: &[u8]| {
            // What `**/` means to most people, it means only where `*` stays within a folder.
            let ways = [Mode::empty(), Mode::NO_MATCH_SLASH_LITERAL];
            ways.into_iter().any(|way| pattern.matches(BStr::new(path), way | Mode::IGNORE_CASE))
        };
        let mut folders = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &path[..at]);
        (!self.only_below && matches(path)) || folders.any(matches)
    }

    /// Whether it names one file or one folder, and is no pattern.
    fn is_name(&self) -> bool {
        self.pattern.is_some() && self.text.as_bytes().find_byteset(SPECIAL).is_none()
    }

    /// Whether this one is a folder, or a file, in which all of the other one lies.
    fn encloses(&self, other: &Glob) -> bool {
        self.whole.as_ref().is_some_and(|whole| is_within(&other.home, whole))
    }
}

/// The folder or file that a pattern is about as a whole.
fn whole(path: &[u8]) -> Option<Vec<u8>> {
    let mut rest = path;
    while let Some(folder) = rest.strip_suffix(b"/**").or_else(|| rest.strip_suffix(b"/*")) {
        rest = folder;
    }
    match rest {
        b"*" | b"**" => Some(Vec::new()),
        _ if rest.find_byteset(SPECIAL).is_some() => None,
        _ => Some(rest.to_vec()),
    }
}

/// The words of a pattern up to the first that could match more than itself.
fn home(words: &[&str]) -> Vec<u8> {
    let plain = words.iter().take_while(|word| word.as_bytes().find_byteset(SPECIAL).is_none());
    plain.copied().collect::<Vec<_>>().join("/").into_bytes()
}

fn is_within(path: &[u8], folder: &[u8]) -> bool {
    folder.is_empty()
        || path.get(..folder.len()).is_some_and(|start| start.eq_ignore_ascii_case(folder))
            && matches!(path.get(folder.len()), None | Some(b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(globs: &[&str]) -> Scope {
        Scope::read(&globs.iter().map(|g| (*g).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn holds(glob: &str, path: &str) -> bool {
        scope(&[glob]).holds(&RepoPath::new(path)).is_some()
    }

    fn meets(one: &str, other: &str) -> bool {
        scope(&[one]).meets(&scope(&[other])).is_some()
    }

    #[test]
    fn a_glob_is_read_from_the_top() {
        for glob in ["src/pay", "src/pay/", "/src/pay", "./src//pay/", "src/pay/**", "src/pay/*", "SRC/Pay"] {
            assert!(holds(glob, "src/pay/api.rs") && holds(glob, "src/pay/x/y"), "{glob}");
            assert!(!holds(glob, "src/payments") && !holds(glob, "x/src/pay/api.rs"), "{glob}");
        }
        assert!(holds("src/pay", "src/pay") && !holds("src/pay/", "src/pay"));
        assert!(holds("README.md", "README.md") && !holds("README.md", "docs/README.md"));
        assert!(holds("*.md", "README.md") && holds("*.md", "docs/deep/a.md") && !holds("*.md", "a.rs"));
        assert!(holds("**/test", "test") && holds("**/test", "a/b/test/c") && !holds("**/test", "tests"));
        for path in ["src/a.rs", "src/a/b/c.rs"] {
            assert!(holds("src/**/*.rs", path) && holds("**/*.rs", path) && holds("src/**", path), "{path}");
        }
        assert!(holds("src/[ab]?.rs", "src/a1.rs") && holds(r"odd\*", "odd*") && !holds(r"odd\*", "odd1"));
        for all in [".", "/", "./", "*", "**", "**/*"] {
            assert!(holds(all, "a") && holds(all, "a/b"), "{all}");
        }
    }

    #[test]
    fn what_is_no_glob_is_refused() {
        for bad in ["", "  ", "!src", ":(exclude)src", "../x", "a/../b", "a\nb"] {
            assert!(Scope::read(&[bad.to_owned()]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_named_and_not_there_is_found() {
        let files = ["src/pay/api.rs", "README.md"].map(RepoPath::new);
        let absent = |globs: &[&str]| scope(globs).absent_from(&files).map(ToOwned::to_owned);
        for there in [
            &["README.md"][..],
            &["./src/pay/api.rs", "src/pay/", "new/*.md"],
            &["src"],
            &["*.new"],
            &["."],
            &[],
        ] {
            assert_eq!(absent(there), None, "{there:?}");
        }
        for lacking in ["new.rs", "src/pa", "src/pay/api", "README.md/", "docs/"] {
            assert_eq!(absent(&["README.md", lacking, "other"]).as_deref(), Some(lacking));
        }
    }

    #[test]
    fn folders_meet_with_what_lies_in_them() {
        for (one, other) in [
            ("src/pay/", "src/pay/**"),
            ("src", "src/pay/*.rs"),
            ("src/**", "src/pay/api.rs"),
            (".", "*.md"),
            ("README.md", "readme.MD"),
            ("src/pay/*", "src/pay/*.rs"),
        ] {
            assert!(meets(one, other) && meets(other, one), "{one} {other}");
        }
        for (one, other) in
            [("src/pay/", "src/payments/"), ("src/*.rs", "src/*.md"), ("src/pay", "*.md"), ("a", "b")]
        {
            assert!(!meets(one, other) && !meets(other, one), "{one} {other}");
        }
        let (one, other) = (scope(&["docs", "*.rs"]), scope(&["src/p*/"]));
        let files = ["a.rs", "src/pay/a.md", "src/pay/a.rs"].map(RepoPath::new);
        assert_eq!(one.meets_at(&other, &files), Some(("*.rs", "src/p*/")));
        assert_eq!(one.meets_at(&other, &files[..2]), None);
    }

    #[test]
    fn folders_are_those_that_what_is_named_lies_in() {
        let files = ["top", "a/x", "a/b/y", "a-b/z", "c/d/e/w.md"].map(RepoPath::new);
        let folders = |globs: &[&str]| {
            let found = scope(globs).folders(&files);
            found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        for (globs, expected) in [
            (&["a/x"][..], "a"),
            (&["a/b"], "a/b"),
            (&["a/b/y", "a/x"], "a"),
            (&["a/b", "a-b/"], "a-b a/b"),
            (&["*.md"], "c/d/e"),
            (&["A/B/*"], "a/b A"),
            (&["new/there/f"], "new/there"),
            (&["new/"], "new"),
            (&["top", "f"], ""),
            (&["**"], "a a-b c/d/e"),
        ] {
            let mut expected: Vec<&str> = expected.split_whitespace().collect();
            expected.sort_unstable();
            let found = folders(globs);
            let mut found: Vec<&str> = found.split_whitespace().collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{globs:?}");
        }
    }
}
