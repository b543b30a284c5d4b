//! Owns whether the files of some paths are byte for byte their blobs, and the index is one that anybody may write: no
//! setting, attribute or hook asks for more. It errs on one side: where that is not certain, git is left to do it.

use std::collections::BTreeSet;
use std::path::Path;

use super::merge_rules::attribute_files;
use super::transition::{Tree, attribute_paths};
use super::{Change, Repo, RepoPath, Side, settings};

/// More files than this, and larger ones, are git's: beside them the time that it takes to start does not count.
const MANY: usize = 500;
pub(super) const LARGEST: u64 = 4 << 20;

/// Settings of which any value but `false` makes git write files or the index in a way of its own.
const OFF: &[&str] = &[
    "core.autocrlf",
    "core.ignoreCase",
    "core.precomposeUnicode",
    "core.sparseCheckout",
    "core.splitIndex",
    "core.untrackedCache",
    "feature.manyFiles",
    "index.skipHash",
    "index.version",
];

/// Attributes that say nothing about what a file looks like in a worktree. `-text` and `-filter` are the default.
const HARMLESS: &[&str] = &[
    "merge",
    "diff",
    "binary",
    "whitespace",
    "conflict-marker-size",
    "delta",
    "export-ignore",
    "export-subst",
];

/// Whether `changes` to a worktree without local changes can be made by writing blobs to files, and noting that in the index.
pub(super) fn is_plain(tree: &Tree<'_>, changes: &[Change]) -> bool {
    // Elsewhere git keeps its settings in more places than are known here.
    cfg!(target_os = "linux")
        && changes.len() <= MANY
        && changes.iter().all(|change| is_ordinary(&change.path))
        && changes.iter().flat_map(|c| [c.old, c.new]).flatten().all(Side::is_file)
        && changes
            .iter()
            .filter_map(|c| c.new)
            .all(|side| tree.repo.size_of(side.oid).is_some_and(|n| n <= LARGEST))
        && !nests(changes)
        && !asks_for_more(tree.repo, tree.dir)
        && attributes_are(
            tree.repo,
            tree.dir,
            changes.iter().map(|change| &change.path),
            says_nothing_of_files,
        )
}

/// How git takes in files of a worktree whose blobs are their bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct AsIs {
    /// That is so only of files whose lines end in LF alone.
    by_line_feed: bool,
}

impl AsIs {
    /// Whether the blob of a file with these bytes has them, too.
    pub(super) fn takes(self, bytes: &[u8]) -> bool {
        !(self.by_line_feed && bytes.contains(&b'\r'))
    }
}

/// Whether git changes nothing in the files of `paths` when it takes them in; none where that is not certain. No file with
/// attributes may be among them, nor among what else was edited.
pub(super) fn as_is(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> Option<AsIs> {
    let plain = cfg!(target_os = "linux")
        && paths.len() <= MANY
        && paths.iter().all(is_ordinary)
        && !asks_for_more(repo, dir)
        && attributes_are(repo, dir, paths.iter(), says_nothing_of_files);
    let by_line_feed = || !attributes_are(repo, dir, paths.iter(), |text| lines(text).all(is_harmless));
    plain.then(|| AsIs { by_line_feed: by_line_feed() })
}

/// Whether a name is one that no file system, and no setting that protects one, sees anything in.
pub(super) fn is_ordinary(path: &RepoPath) -> bool {
    let ordinary = |b: &u8| matches!(b, b' '..=b'~') && !b"\\:~\"<>|?*".contains(b);
    let component = |name: &[u8]| {
        let of_git = [&b".git"[..], b".gitattributes", b".gitmodules"].contains(&name);
        !name.is_empty() && !of_git && !name.ends_with(b".") && !name.ends_with(b" ")
    };
    path.as_bytes().iter().all(ordinary)
        && path.as_bytes().to_ascii_lowercase().split(|b| *b == b'/').all(component)
}

/// Whether one of the paths is a folder of another: something is a file before and a folder after, or the other way round.
fn nests(changes: &[Change]) -> bool {
    let all: BTreeSet<&RepoPath> = changes.iter().map(|c| &c.path).collect();
    all.iter().any(|path| path.parents().any(|folder| all.contains(&folder)))
}

/// What is set is read anew, where the change happens: a landing may have waited for long, and worktrees may differ.
fn asks_for_more(repo: &Repo, dir: &Path) -> bool {
    let Some(here) = settings::open(dir) else { return true };
    let set = here.config_snapshot();
    // A key without a value is true, and no text.
    let on = |key: &&str| set.boolean(*key) == Some(true) || set.string(*key).is_some_and(|v| v != "false");
    // Where a relative one leads is decided by where git runs.
    let hooks = match set.trusted_path("core.hooksPath") {
        Ok(Some(path)) => dir.join(path),
        Ok(None) => repo.common_dir().join("hooks"),
        Err(_) => return true,
    };
    let ends = set.string("core.eol").map(|v| v.to_string().to_lowercase());
    OFF.iter().any(on)
        || ends.is_some_and(|ends| !matches!(ends.as_str(), "lf" | "native"))
        || set.boolean("core.fileMode") == Some(false)
        || set.string("core.attributesFile").is_some()
        || set.string("attr.tree").is_some()
        || std::env::var_os("GIT_ATTR_SOURCE").is_some()
        || hooks.join("post-index-change").exists()
        || has_settings_of_its_own(repo.program().path())
}

/// Whether a git that was not installed with the system has settings or attributes for everybody: where it looks for them was
/// decided when it was built.
pub(super) fn has_settings_of_its_own(git: &Path) -> bool {
    let own = |program: &Path| {
        let prefix = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let folder = prefix.join("etc");
        folder != Path::new("/usr/etc")
            && ["gitconfig", "gitattributes"].iter().any(|f| folder.join(f).exists())
    };
    own(git) || git.canonicalize().is_ok_and(|real| own(&real))
}

/// Whether all files with attributes that can speak about these paths are harmless: those that everybody has, and those beside and
/// above the paths. Those in the index are looked at with it; one that comes with a change is not ordinary.
fn attributes_are<'p>(
    repo: &Repo,
    dir: &Path,
    paths: impl Iterator<Item = &'p RepoPath>,
    harmless: impl Fn(&[u8]) -> bool,
) -> bool {
    let beside = attribute_paths(paths);
    let beside = beside.iter().map(|file| file.under(dir));
    beside.chain(attribute_files(repo)).all(|file| match std::fs::read(&file) {
        Ok(text) => harmless(&text),
        Err(e) => matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory),
    })
}

/// Whether git writes each blob that a file with attributes speaks of as it is.
pub(super) fn says_nothing_of_files(text: &[u8]) -> bool {
    lines(text).all(is_written_as_is)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n')
}

/// Whether a line of a file with attributes says no more, besides what is harmless, than that files are text with the ends of
/// lines that they have in the repository. Git changes nothing in such a file when it writes it, though it does when it takes
/// it in.
pub(super) fn is_written_as_is(line: &[u8]) -> bool {
    if is_harmless(line) {
        return true;
    }
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let mut words = line.split_ascii_whitespace();
    let Some(first) = words.next() else { return true };
    let about = |word: &str| matches!(word, "text" | "text=auto" | "!text" | "eol=lf" | "-eol" | "!eol");
    !first.starts_with(['"', '[', '\u{feff}'])
        && words.all(|word| about(word) || is_harmless(format!("x {word}").as_bytes()))
}

/// Whether a line of a file with attributes says nothing about what files look like.
fn is_harmless(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return true;
    }
    // What is quoted may hold blanks, and a macro brings other attributes along.
    if line.starts_with(['"', '[', '\u{feff}']) {
        return false;
    }
    line.split_ascii_whitespace().skip(1).all(|word| {
        let name = word.trim_start_matches(['-', '!']).split('=').next().unwrap_or(word);
        matches!(word, "-text" | "-filter") || name.starts_with("linguist-") || HARMLESS.contains(&name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_ask_for_nothing_are_harmless() {
        for line in [
            "",
            "  # text",
            "*.md merge=union",
            "*.rs diff=rust -text",
            "x linguist-generated=true",
            "*.o binary",
        ] {
            assert!(is_harmless(line.as_bytes()), "{line}");
        }
        let lines = [
            "* text=auto",
            "*.txt eol=crlf",
            "*.c ident",
            "*.bin filter=lfs diff=lfs merge=lfs -text",
            "a !text",
        ];
        for line in lines.into_iter().chain([
            "\"a b\" merge",
            "[attr]mine -text",
            "a working-tree-encoding=UTF-16",
            "a crlf",
        ]) {
            assert!(!is_harmless(line.as_bytes()), "{line}");
        }
        assert!(!is_harmless(b"\xff merge"));
    }

    #[test]
    fn only_names_that_nobody_sees_anything_in_are_ordinary() {
        for name in ["a", "a/b c/d.txt", ".gitignore", ".github/x", "x.GIT", "-dash", "a..b"] {
            assert!(is_ordinary(&RepoPath::new(name)), "{name}");
        }
        for name in [
            "",
            "a//b",
            ".gitattributes",
            "a/.Git/x",
            "a\\b",
            "git~1",
            "a:b",
            "gr\u{fc}n",
            "a\nb",
            "../x",
            "a ",
            ".git./x",
        ] {
            assert!(!is_ordinary(&RepoPath::new(name)), "{name}");
        }
    }

    #[test]
    fn a_git_with_a_folder_of_its_own_may_have_settings_there() {
        let dir = tempfile::tempdir().unwrap();
        let (prefix, elsewhere) = (dir.path().join("opt"), dir.path().join("git"));
        std::fs::create_dir_all(prefix.join("bin")).unwrap();
        std::fs::create_dir_all(prefix.join("etc")).unwrap();
        let git = prefix.join("bin/git");
        std::fs::write(&git, "").unwrap();
        std::os::unix::fs::symlink(&git, &elsewhere).unwrap();
        for file in ["gitconfig", "gitattributes"] {
            assert!(!has_settings_of_its_own(&git) && !has_settings_of_its_own(&elsewhere));
            std::fs::write(prefix.join("etc").join(file), "").unwrap();
            assert!(has_settings_of_its_own(&git) && has_settings_of_its_own(&elsewhere), "{file}");
            std::fs::remove_file(prefix.join("etc").join(file)).unwrap();
        }
    }

    #[test]
    fn a_path_below_another_is_seen() {
        let change = |path: &str| Change { path: RepoPath::new(path), old: None, new: None };
        assert!(nests(&[change("a/b"), change("c"), change("a")]));
        assert!(!nests(&[change("a/b"), change("a-b"), change("ab")]));
    }
}
