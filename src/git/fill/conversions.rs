//! Owns whether git would write the files of a worktree as they are in the repository, byte for byte, and its index in the way
//! that is known here. It errs on one side: whatever is not known is git's.

use std::io::ErrorKind;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::glob::Pattern;
use gix::index::File;

use super::super::merge_rules::{Rule, any_matches, attribute_files};
use super::super::plain::{has_settings_of_its_own, is_written_as_is};
use super::super::{Error, Oid, Repo, settings};

/// What settings ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Nothing.
    Nothing,
    /// An index of another form: git goes over what was made here.
    OtherIndex,
    /// A part of the files only: the rest is git's.
    Part,
    /// Files of another form.
    OtherFiles,
}

/// Settings that change the form of the index only.
const INDEX: &[&str] = &[
    "core.fsmonitor",
    "core.splitIndex",
    "core.untrackedCache",
    "feature.manyFiles",
    "index.skipHash",
    "index.sparse",
    "index.version",
];

/// Settings of which any value but `false` changes the files.
const FILES: &[&str] = &["core.ignoreCase", "core.precomposeUnicode"];

/// Settings of which `false` changes the files.
const NOT: &[&str] = &["core.fileMode", "core.symlinks"];

/// What is set for the worktree at `dir`, read anew: worktrees may differ.
pub(super) fn wish(repo: &Repo, dir: &Path) -> Wish {
    let Some(here) = settings::open(dir) else { return Wish::OtherFiles };
    let set = here.config_snapshot();
    // A key without a value is true, and no text.
    let on = |key: &&str| set.boolean(*key) == Some(true) || set.string(*key).is_some_and(|v| v != "false");
    let is = |key: &str, allowed: &[&str]| {
        let value = set.string(key).map(|v| v.to_str_lossy().to_lowercase());
        value.is_none_or(|v| allowed.contains(&v.as_str())) && (set.boolean(key) != Some(true))
    };
    let converts = FILES.iter().any(on)
        || NOT.iter().any(|key| set.boolean(*key) == Some(false))
        || !is("core.autocrlf", &["false", "no", "off", "0", "input"])
        || !is("core.eol", &["lf", "native"])
        || set.string("attr.tree").is_some()
        || std::env::var_os("GIT_ATTR_SOURCE").is_some()
        || set
            .string("core.attributesFile")
            .is_some_and(|file| !file.starts_with(b"/") && !file.starts_with(b"~/"))
        || here.objects.store_ref().replacements().next().is_some()
        || has_settings_of_its_own(repo.program().path());
    // Where a relative one leads is decided by where git runs.
    let hooks = match set.trusted_path("core.hooksPath") {
        Ok(Some(path)) => dir.join(path),
        Ok(None) => repo.common_dir().join("hooks"),
        Err(_) => return Wish::OtherFiles,
    };
    match () {
        () if !cfg!(target_os = "linux") || converts => Wish::OtherFiles,
        () if on(&"core.sparseCheckout") => Wish::Part,
        () if INDEX.iter().any(on) || hooks.join("post-index-change").exists() => Wish::OtherIndex,
        () => Wish::Nothing,
    }
}

/// The rules by which git gives files another form than they have in the repository.
pub(super) struct Conversions(Vec<(Vec<u8>, Vec<Rule>)>);

impl Conversions {
    /// Reads the attributes of an index, and those that everybody has. None where they cannot be read.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub(super) fn of(repo: &Repo, index: &File) -> Result<Option<Conversions>, Error> {
        let mut all = Vec::new();
        for file in attribute_files(repo) {
            match std::fs::read(&file) {
                Ok(text) => all.push((Vec::new(), rules(&text))),
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(_) => return Ok(None),
            }
        }
        for entry in index.entries() {
            let path = entry.path(index).as_bytes();
            let Some(above) = path.strip_suffix(b".gitattributes") else { continue };
            if above.is_empty() || above.ends_with(b"/") {
                all.push((above.to_owned(), rules(&repo.blob(Oid(entry.id))?)));
            }
        }
        all.retain(|(_, rules)| !rules.is_empty());
        Ok(Some(Conversions(all)))
    }

    /// Whether a path may be given another form.
    pub(super) fn concern(&self, path: &[u8]) -> bool {
        self.0
            .iter()
            .any(|(above, rules)| path.strip_prefix(&above[..]).is_some_and(|p| any_matches(rules, p)))
    }
}

/// The lines of a file with attributes that may give files another form.
fn rules(text: &[u8]) -> Vec<Rule> {
    let lines = text.lines().filter(|line| !is_written_as_is(line));
    lines.map(pattern).collect()
}

/// The pattern of a line; none where it is not plain what it is for.
fn pattern(line: &[u8]) -> Rule {
    let first = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    // What is quoted may hold blanks, and a macro brings other attributes along, whatever line it is used on.
    if first.starts_with(b"\"") || first.starts_with(b"[") || !first.is_ascii() {
        return None;
    }
    Pattern::from_bytes_without_negation(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_change_nothing_in_what_is_written_are_told_from_those_that_do() {
        for line in
            ["* text=auto", "*.sh text eol=lf", "* eol=lf diff=x", "a -text", "b !eol linguist-vendored", ""]
        {
            assert_eq!(rules(line.as_bytes()), [], "{line}");
        }
        for line in [
            "*.bat eol=crlf",
            "*.bin filter=lfs diff=lfs merge=lfs -text",
            "*.c ident",
            "*.txt working-tree-encoding=UTF-16",
            "* crlf",
            "* text=whatever",
            "* mine",
        ] {
            assert!(matches!(&rules(line.as_bytes())[..], [Some(_)]), "{line}");
        }
        for line in ["[attr]mine filter=x", "\"a b\" ident", "\u{feff}* text"] {
            assert_eq!(rules(line.as_bytes()), [None], "{line}");
        }
    }

    #[test]
    fn a_rule_is_about_what_lies_below_its_file() {
        let all = Conversions(vec![(b"d/".to_vec(), rules(b"*.c ident\nsub/x filter=f"))]);
        for (path, concerned) in [
            ("d/a.c", true),
            ("d/e/a.c", true),
            ("a.c", false),
            ("d/sub/x", true),
            ("d/x", false),
            ("d/a.h", false),
        ] {
            assert_eq!(all.concern(path.as_bytes()), concerned, "{path}");
        }
    }
}
