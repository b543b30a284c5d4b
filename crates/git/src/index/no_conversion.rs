//! Check that git would write files byte for byte as their blobs, and the index in its default format: no
//! setting, attribute or hook requires more. If the result is not certain, the check fails and git does the
//! work.

use std::collections::BTreeSet;
use std::path::Path;

use crate::history::tree_diff::{TreeChange, TreeFile};
use crate::repository::attributes::{attribute_files_outside_tree, attribute_paths_for};
use crate::repository::open_settings;
use crate::repository::settings::has_build_specific_config;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Repo, RepoPath};

/// Limits for handling files in process: number of paths, and size of one blob in bytes. Beyond them git does
/// the work, and its start-up time does not matter.
const MAX_PATHS_IN_PROCESS: usize = 500;
pub(crate) const MAX_BLOB_BYTES: u64 = 4 << 20;

/// Settings of which any value but `false` makes git write files or the index in a special way.
const KEYS_REQUIRED_OFF: &[&str] = &[
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

/// Attributes that do not affect the contents of a file in a worktree. `-text` and `-filter` are the
/// defaults.
const HARMLESS_ATTRIBUTES: &[&str] = &[
    "merge",
    "diff",
    "binary",
    "whitespace",
    "conflict-marker-size",
    "delta",
    "export-ignore",
    "export-subst",
];

/// Returns whether `changes` to a worktree without local changes can be applied by writing blobs to files and
/// updating the index.
pub(crate) fn needs_no_conversion(tree: &WorktreeContext<'_>, changes: &[TreeChange]) -> bool {
    // On other systems git reads its settings from more places than are known here.
    cfg!(target_os = "linux")
        && changes.len() <= MAX_PATHS_IN_PROCESS
        && changes.iter().all(|change| is_portable_path(&change.path))
        && changes.iter().flat_map(|c| [c.old, c.new]).flatten().all(TreeFile::is_file)
        && changes
            .iter()
            .filter_map(|c| c.new)
            .all(|side| tree.repo.object_size(side.oid).is_some_and(|n| n <= MAX_BLOB_BYTES))
        && !has_nested_paths(changes)
        && !has_conversion_settings(tree.repo, tree.dir)
        && all_attribute_files_pass(
            tree.repo,
            tree.dir,
            changes.iter().map(|change| &change.path),
            is_verbatim_attribute_file,
        )
}

/// Condition under which git stores the files of a worktree as blobs with the same bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VerbatimRule {
    /// Whether the rule holds only for files whose line endings are all LF.
    requires_lf: bool,
}

impl VerbatimRule {
    /// Returns whether git would store a file with these bytes unchanged as a blob.
    pub fn accepts(self, bytes: &[u8]) -> bool {
        !(self.requires_lf && bytes.contains(&b'\r'))
    }
}

/// Returns the rule under which git adds the files of `paths` unchanged; `None` if that is not certain.
/// Neither `paths` nor other edited files may include an attribute file.
pub(crate) fn verbatim_rule(repo: &Repo, dir: &Path, paths: &[RepoPath]) -> Option<VerbatimRule> {
    let is_certain = cfg!(target_os = "linux")
        && paths.len() <= MAX_PATHS_IN_PROCESS
        && paths.iter().all(is_portable_path)
        && !has_conversion_settings(repo, dir)
        && all_attribute_files_pass(repo, dir, paths.iter(), is_verbatim_attribute_file);
    let requires_lf = || {
        !all_attribute_files_pass(repo, dir, paths.iter(), |text| lines(text).all(is_harmless_attribute_line))
    };
    is_certain.then(|| VerbatimRule { requires_lf: requires_lf() })
}

/// Returns whether a path has no special meaning for any file system or for a setting that protects one.
pub(crate) fn is_portable_path(path: &RepoPath) -> bool {
    let is_safe_byte = |b: &u8| matches!(b, b' '..=b'~') && !b"\\:~\"<>|?*".contains(b);
    let is_safe_component = |name: &[u8]| {
        let is_git_file = [&b".git"[..], b".gitattributes", b".gitmodules"].contains(&name);
        !name.is_empty() && !is_git_file && !name.ends_with(b".") && !name.ends_with(b" ")
    };
    path.as_bytes().iter().all(is_safe_byte)
        && path.as_bytes().to_ascii_lowercase().split(|b| *b == b'/').all(is_safe_component)
}

/// Returns whether one path is a parent folder of another: a file becomes a folder, or vice versa.
fn has_nested_paths(changes: &[TreeChange]) -> bool {
    let paths: BTreeSet<&RepoPath> = changes.iter().map(|c| &c.path).collect();
    paths.iter().any(|path| path.parents().any(|folder| paths.contains(&folder)))
}

/// Returns whether settings, attributes sources or hooks of the worktree require git. The settings are read
/// again, because a landing may have waited for a long time and worktrees may differ.
fn has_conversion_settings(repo: &Repo, dir: &Path) -> bool {
    let Some(local_repo) = open_settings::open(dir) else { return true };
    let config = local_repo.config_snapshot();
    // A key without a value is true and has no text.
    let is_on =
        |key: &&str| config.boolean(*key) == Some(true) || config.string(*key).is_some_and(|v| v != "false");
    // A relative path is relative to the directory in which git runs.
    let hooks = match config.trusted_path("core.hooksPath") {
        Ok(Some(path)) => dir.join(path),
        Ok(None) => repo.common_dir().join("hooks"),
        Err(_) => return true,
    };
    let eol = config.string("core.eol").map(|v| v.to_string().to_lowercase());
    KEYS_REQUIRED_OFF.iter().any(is_on)
        || eol.is_some_and(|eol| !matches!(eol.as_str(), "lf" | "native"))
        || config.boolean("core.fileMode") == Some(false)
        || config.string("core.attributesFile").is_some()
        || config.string("attr.tree").is_some()
        || std::env::var_os("GIT_ATTR_SOURCE").is_some()
        || hooks.join("post-index-change").exists()
        || has_build_specific_config(repo.program().path())
}

/// Returns whether `passes` holds for all attribute files that can affect these paths: the global ones, and
/// those in the folders of the paths and above. Attribute files in the index are checked with the index; one
/// that is part of a change is not a portable path.
fn all_attribute_files_pass<'p>(
    repo: &Repo,
    dir: &Path,
    paths: impl Iterator<Item = &'p RepoPath>,
    passes: impl Fn(&[u8]) -> bool,
) -> bool {
    let nearby = attribute_paths_for(paths);
    let nearby = nearby.iter().map(|file| file.to_fs_path(dir));
    nearby.chain(attribute_files_outside_tree(repo)).all(|file| match std::fs::read(&file) {
        Ok(text) => passes(&text),
        Err(e) => matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory),
    })
}

/// Returns whether an attribute file lets git write all blobs to files unchanged.
pub(crate) fn is_verbatim_attribute_file(text: &[u8]) -> bool {
    lines(text).all(is_verbatim_attribute_line)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n')
}

/// Returns whether a line of an attribute file sets, besides harmless attributes, only that files are text
/// with the line endings that they have in the repository. git writes such a file unchanged, though it may
/// convert it when it is added.
pub(crate) fn is_verbatim_attribute_line(line: &[u8]) -> bool {
    if is_harmless_attribute_line(line) {
        return true;
    }
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let mut words = line.split_ascii_whitespace();
    let Some(pattern) = words.next() else { return true };
    let keeps_line_endings =
        |word: &str| matches!(word, "text" | "text=auto" | "!text" | "eol=lf" | "-eol" | "!eol");
    !pattern.starts_with(['"', '[', '\u{feff}'])
        && words.all(|word| {
            keeps_line_endings(word) || is_harmless_attribute_line(format!("x {word}").as_bytes())
        })
}

/// Returns whether a line of an attribute file does not affect the contents of files.
fn is_harmless_attribute_line(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return true;
    }
    // A quoted pattern may contain blanks, and a macro sets other attributes.
    if line.starts_with(['"', '[', '\u{feff}']) {
        return false;
    }
    line.split_ascii_whitespace().skip(1).all(|word| {
        let name = word.trim_start_matches(['-', '!']).split('=').next().unwrap_or(word);
        matches!(word, "-text" | "-filter")
            || name.starts_with("linguist-")
            || HARMLESS_ATTRIBUTES.contains(&name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_lines_convert_nothing() {
        for line in [
            "",
            "  # text",
            "*.md merge=union",
            "*.rs diff=rust -text",
            "x linguist-generated=true",
            "*.o binary",
        ] {
            assert!(is_harmless_attribute_line(line.as_bytes()), "{line}");
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
            assert!(!is_harmless_attribute_line(line.as_bytes()), "{line}");
        }
        assert!(!is_harmless_attribute_line(b"\xff merge"));
    }

    #[test]
    fn rejects_special_path_names() {
        for name in ["a", "a/b c/d.txt", ".gitignore", ".github/x", "x.GIT", "-dash", "a..b"] {
            assert!(is_portable_path(&RepoPath::new(name)), "{name}");
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
            assert!(!is_portable_path(&RepoPath::new(name)), "{name}");
        }
    }

    #[test]
    fn detects_nested_paths() {
        let change = |path: &str| TreeChange { path: RepoPath::new(path), old: None, new: None };
        assert!(has_nested_paths(&[change("a/b"), change("c"), change("a")]));
        assert!(!has_nested_paths(&[change("a/b"), change("a-b"), change("ab")]));
    }
}
