//! Scopes: globs that select files of a repository, and the overlap of two scopes.

use std::collections::BTreeSet;

use gix::bstr::{BStr, ByteSlice};
use gix::glob::Pattern;
use gix::glob::wildmatch::Mode;

use crate::{Error, RepoPath};

/// Characters that make a glob a pattern instead of a file name. A backslash makes the next character
/// literal.
const GLOB_CHARS: &[u8] = br"*?[\";

/// Globs of a scope, each relative to the top of the repository, as `git diff -- GLOB` reads it there. A glob
/// is a file, a folder with everything below it, or a pattern. `*` and `?` also match a slash, and `**/` also
/// matches no folder. Case is ignored, since some disks ignore it.
#[derive(Debug, Clone)]
pub struct Scope {
    globs: Vec<Glob>,
}

/// One glob of a scope.
#[derive(Debug, Clone)]
struct Glob {
    /// Glob as the user wrote it.
    text: String,
    /// Pattern that matches each path of the glob or a folder above that path; none if the glob contains
    /// every path.
    pattern: Option<Pattern>,
    /// Whether the glob ends in a slash, so that it matches folders and no file of that name.
    matches_folders_only: bool,
    /// Path of the folder or file that the glob consists of, if it is one entirely; empty for the top of the
    /// repository.
    entire_path: Option<Vec<u8>>,
    /// Deepest folder that contains every match, or the file that the glob names.
    literal_prefix: Vec<u8>,
}

impl Scope {
    /// Parses globs.
    ///
    /// # Errors
    /// [`Error::InvalidGlob`] for the first invalid one.
    pub fn parse(globs: &[String]) -> Result<Scope, Error> {
        let globs = globs.iter().map(|text| Glob::parse(text)).collect::<Result<_, _>>()?;
        Ok(Scope { globs })
    }

    /// Returns the first glob that contains a path.
    pub fn matching_glob(&self, path: &RepoPath) -> Option<&str> {
        self.globs.iter().find(|glob| glob.contains(path.as_bytes())).map(|glob| glob.text.as_str())
    }

    /// Returns the folders that contain the matches of the scope among `files`, or that would contain them,
    /// without folders inside other returned ones. A match at the top has no such folder.
    pub fn containing_folders(&self, files: &[RepoPath]) -> Vec<RepoPath> {
        let parent = |path: &[u8]| path.rfind_byte(b'/').map(|at| path[..at].to_vec());
        let matching = files.iter().filter(|path| self.matching_glob(path).is_some());
        let mut folders: BTreeSet<Vec<u8>> = matching.filter_map(|path| parent(path.as_bytes())).collect();
        for glob in &self.globs {
            let folder_prefix = [glob.literal_prefix.as_slice(), b"/"].concat();
            let is_folder = glob.matches_folders_only
                || files.iter().any(|path| path.as_bytes().starts_with(&folder_prefix));
            let folder =
                if is_folder { Some(glob.literal_prefix.clone()) } else { parent(&glob.literal_prefix) };
            folders.extend(folder.filter(|folder| !folder.is_empty()));
        }
        let is_within = |path: &[u8]| {
            let mut slashes = path.iter().enumerate().filter(|(_, b)| **b == b'/');
            slashes.any(|(at, _)| folders.contains(&path[..at]))
        };
        folders.iter().filter(|path| !is_within(path)).map(|path| RepoPath::new(path.clone())).collect()
    }

    /// Returns whether a glob has a pattern, so that names alone do not always decide whether the scope
    /// overlaps others.
    pub fn has_patterns(&self) -> bool {
        self.globs.iter().any(|glob| glob.entire_path.is_none())
    }

    /// Returns the first glob without a wildcard that is neither one of `files` nor a folder above one of
    /// them.
    pub fn first_absent_glob(&self, files: &[RepoPath]) -> Option<&str> {
        let exists = |glob: &Glob| {
            let mut suffixes =
                files.iter().filter_map(|path| path.as_bytes().strip_prefix(glob.literal_prefix.as_slice()));
            suffixes.any(|suffix| {
                suffix.first().map_or(!glob.matches_folders_only, |next_byte| *next_byte == b'/')
            })
        };
        let mut names = self.globs.iter().filter(|glob| glob.is_literal_path());
        names.find(|glob| !exists(glob)).map(|glob| glob.text.as_str())
    }

    /// Returns two globs of which one is an entire folder or file and the other lies in it. The first is of
    /// this scope, the second of `other`. The shared files need not exist yet.
    ///
    /// Together with [`Scope::overlapping_globs_at`], which checks existing files, no existing file in both
    /// scopes is missed. Neither method reports that two patterns such as `src/*.rs` and `*test*` may both
    /// match a future file.
    pub fn overlapping_globs<'a>(&'a self, other: &'a Scope) -> Option<(&'a str, &'a str)> {
        let pairs = self.globs.iter().flat_map(|one| other.globs.iter().map(move |two| (one, two)));
        let mut overlaps = pairs.filter(|(one, two)| one.encloses(two) || two.encloses(one));
        overlaps.next().map(|(one, two)| (one.text.as_str(), two.text.as_str()))
    }

    /// Returns one glob of each scope, both of which contain the first of `files` that is in both scopes.
    pub fn overlapping_globs_at<'a>(
        &'a self,
        other: &'a Scope,
        files: &[RepoPath],
    ) -> Option<(&'a str, &'a str)> {
        files.iter().find_map(|path| Some((self.matching_glob(path)?, other.matching_glob(path)?)))
    }
}

impl Glob {
    fn parse(text: &str) -> Result<Glob, Error> {
        let refuse = |why| Err(Error::InvalidGlob { glob: text.to_owned(), reason: why });
        if text.trim().is_empty() {
            return refuse("it is empty");
        }
        if text.starts_with(['!', ':']) {
            return refuse("a scope has neither exceptions nor pathspec magic");
        }
        if text.chars().any(char::is_control) {
            return refuse("it has a control character");
        }
        let components: Vec<&str> = text.split('/').filter(|word| !word.is_empty() && *word != ".").collect();
        if components.contains(&"..") {
            return refuse("it must stay inside the repository");
        }
        let path = components.join("/").into_bytes();
        Ok(Glob {
            text: text.to_owned(),
            pattern: Pattern::from_bytes_without_negation(&path),
            matches_folders_only: text.ends_with('/') && !path.is_empty(),
            entire_path: entire_path(&path),
            literal_prefix: literal_prefix(&components),
        })
    }

    /// Returns whether a path is part of the glob.
    fn contains(&self, path: &[u8]) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        let matches = |path: &[u8]| {
            // The common meaning of `**/` holds only where `*` stays within a folder.
            let modes = [Mode::empty(), Mode::NO_MATCH_SLASH_LITERAL];
            modes.into_iter().any(|mode| pattern.matches(BStr::new(path), mode | Mode::IGNORE_CASE))
        };
        let mut folders = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &path[..at]);
        (!self.matches_folders_only && matches(path)) || folders.any(matches)
    }

    /// Returns whether the glob is the path of one file or folder, without pattern characters.
    fn is_literal_path(&self) -> bool {
        self.pattern.is_some() && self.text.as_bytes().find_byteset(GLOB_CHARS).is_none()
    }

    /// Returns whether this glob is a folder or file that contains every match of the other one.
    fn encloses(&self, other: &Glob) -> bool {
        self.entire_path.as_ref().is_some_and(|whole| is_within(&other.literal_prefix, whole))
    }
}

/// Returns the folder or file of which the pattern `path` includes everything; empty for the top, none if it
/// includes only some files.
fn entire_path(path: &[u8]) -> Option<Vec<u8>> {
    let mut prefix = path;
    while let Some(folder) = prefix.strip_suffix(b"/**").or_else(|| prefix.strip_suffix(b"/*")) {
        prefix = folder;
    }
    match prefix {
        b"*" | b"**" => Some(Vec::new()),
        _ if prefix.find_byteset(GLOB_CHARS).is_some() => None,
        _ => Some(prefix.to_vec()),
    }
}

/// Returns the path components of a pattern before the first one with a glob character.
fn literal_prefix(components: &[&str]) -> Vec<u8> {
    let literal = components.iter().take_while(|word| word.as_bytes().find_byteset(GLOB_CHARS).is_none());
    literal.copied().collect::<Vec<_>>().join("/").into_bytes()
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
        Scope::parse(&globs.iter().map(|g| (*g).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn contains(glob: &str, path: &str) -> bool {
        scope(&[glob]).matching_glob(&RepoPath::new(path)).is_some()
    }

    fn overlaps(one: &str, other: &str) -> bool {
        scope(&[one]).overlapping_globs(&scope(&[other])).is_some()
    }

    #[test]
    fn matches_globs_from_repository_top() {
        for glob in ["src/pay", "src/pay/", "/src/pay", "./src//pay/", "src/pay/**", "src/pay/*", "SRC/Pay"] {
            assert!(contains(glob, "src/pay/api.rs") && contains(glob, "src/pay/x/y"), "{glob}");
            assert!(!contains(glob, "src/payments") && !contains(glob, "x/src/pay/api.rs"), "{glob}");
        }
        assert!(contains("src/pay", "src/pay") && !contains("src/pay/", "src/pay"));
        assert!(contains("README.md", "README.md") && !contains("README.md", "docs/README.md"));
        assert!(
            contains("*.md", "README.md") && contains("*.md", "docs/deep/a.md") && !contains("*.md", "a.rs")
        );
        assert!(
            contains("**/test", "test") && contains("**/test", "a/b/test/c") && !contains("**/test", "tests")
        );
        for path in ["src/a.rs", "src/a/b/c.rs"] {
            assert!(
                contains("src/**/*.rs", path) && contains("**/*.rs", path) && contains("src/**", path),
                "{path}"
            );
        }
        assert!(
            contains("src/[ab]?.rs", "src/a1.rs")
                && contains(r"odd\*", "odd*")
                && !contains(r"odd\*", "odd1")
        );
        for all in [".", "/", "./", "*", "**", "**/*"] {
            assert!(contains(all, "a") && contains(all, "a/b"), "{all}");
        }
    }

    #[test]
    fn refuses_invalid_globs() {
        for bad in ["", "  ", "!src", ":(exclude)src", "../x", "a/../b", "a\nb"] {
            assert!(Scope::parse(&[bad.to_owned()]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn finds_named_paths_that_are_absent() {
        let files = ["src/pay/api.rs", "README.md"].map(RepoPath::new);
        let first_absent = |globs: &[&str]| scope(globs).first_absent_glob(&files).map(ToOwned::to_owned);
        for existing in [
            &["README.md"][..],
            &["./src/pay/api.rs", "src/pay/", "new/*.md"],
            &["src"],
            &["*.new"],
            &["."],
            &[],
        ] {
            assert_eq!(first_absent(existing), None, "{existing:?}");
        }
        for missing in ["new.rs", "src/pa", "src/pay/api", "README.md/", "docs/"] {
            assert_eq!(first_absent(&["README.md", missing, "other"]).as_deref(), Some(missing));
        }
    }

    #[test]
    fn finds_overlap_of_folders_and_patterns() {
        for (one, other) in [
            ("src/pay/", "src/pay/**"),
            ("src", "src/pay/*.rs"),
            ("src/**", "src/pay/api.rs"),
            (".", "*.md"),
            ("README.md", "readme.MD"),
            ("src/pay/*", "src/pay/*.rs"),
        ] {
            assert!(overlaps(one, other) && overlaps(other, one), "{one} {other}");
        }
        for (one, other) in
            [("src/pay/", "src/payments/"), ("src/*.rs", "src/*.md"), ("src/pay", "*.md"), ("a", "b")]
        {
            assert!(!overlaps(one, other) && !overlaps(other, one), "{one} {other}");
        }
        let (one, other) = (scope(&["docs", "*.rs"]), scope(&["src/p*/"]));
        let files = ["a.rs", "src/pay/a.md", "src/pay/a.rs"].map(RepoPath::new);
        assert_eq!(one.overlapping_globs_at(&other, &files), Some(("*.rs", "src/p*/")));
        assert_eq!(one.overlapping_globs_at(&other, &files[..2]), None);
    }

    #[test]
    fn lists_folders_containing_named_paths() {
        let files = ["top", "a/x", "a/b/y", "a-b/z", "c/d/e/w.md"].map(RepoPath::new);
        let folders = |globs: &[&str]| {
            let found = scope(globs).containing_folders(&files);
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
