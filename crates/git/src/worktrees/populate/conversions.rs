//! Detection of conversions: whether git would write the files of a worktree byte for byte as they are in the
//! repository, and its index in the known format. Every unknown case is left to git.

use std::io::ErrorKind;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::glob::Pattern;
use gix::index::File;

use crate::index::no_conversion::is_verbatim_attribute_line;
use crate::repository::attributes::{AttributePattern, any_rule_matches, attribute_files_outside_tree};
use crate::repository::open_settings;
use crate::repository::settings::has_build_specific_config;
use crate::{BlobId, Error, Repo};

/// Requirement that git's settings impose on populating a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckoutRequirement {
    /// No special requirement.
    Standard,
    /// An index of another format: git rewrites the index afterwards.
    OtherIndexFormat,
    /// A sparse set of files: git creates those that are not copied.
    SparseFiles,
    /// Files in another form than in the repository.
    ConvertedFiles,
}

/// Settings that change only the format of the index.
const INDEX_FORMAT_SETTINGS: &[&str] = &[
    "core.fsmonitor",
    "core.splitIndex",
    "core.untrackedCache",
    "feature.manyFiles",
    "index.skipHash",
    "index.sparse",
    "index.version",
];

/// Settings for which any value but `false` changes the files.
const FILE_FORMAT_SETTINGS: &[&str] = &["core.ignoreCase", "core.precomposeUnicode"];

/// Settings for which `false` changes the files.
const SETTINGS_EXPECTED_ON: &[&str] = &["core.fileMode", "core.symlinks"];

/// Determines the requirement of the worktree at `dir` from its settings, which are read again because
/// worktrees may differ.
pub(crate) fn checkout_requirement(repo: &Repo, dir: &Path) -> CheckoutRequirement {
    let Some(worktree_repo) = open_settings::open(dir) else { return CheckoutRequirement::ConvertedFiles };
    let config = worktree_repo.config_snapshot();
    // A key without a value is true and has no text.
    let is_on =
        |key: &&str| config.boolean(*key) == Some(true) || config.string(*key).is_some_and(|v| v != "false");
    let is_one_of = |key: &str, allowed: &[&str]| {
        let value = config.string(key).map(|v| v.to_str_lossy().to_lowercase());
        value.is_none_or(|v| allowed.contains(&v.as_str())) && (config.boolean(key) != Some(true))
    };
    let converts = FILE_FORMAT_SETTINGS.iter().any(is_on)
        || SETTINGS_EXPECTED_ON.iter().any(|key| config.boolean(*key) == Some(false))
        || !is_one_of("core.autocrlf", &["false", "no", "off", "0", "input"])
        || !is_one_of("core.eol", &["lf", "native"])
        || config.string("attr.tree").is_some()
        || std::env::var_os("GIT_ATTR_SOURCE").is_some()
        || config
            .string("core.attributesFile")
            .is_some_and(|file| !file.starts_with(b"/") && !file.starts_with(b"~/"))
        || worktree_repo.objects.store_ref().replacements().next().is_some()
        || has_build_specific_config(repo.program().path());
    // A relative path is resolved against the folder in which git runs.
    let hooks_dir = match config.trusted_path("core.hooksPath") {
        Ok(Some(path)) => dir.join(path),
        Ok(None) => repo.common_dir().join("hooks"),
        Err(_) => return CheckoutRequirement::ConvertedFiles,
    };
    match () {
        () if !cfg!(target_os = "linux") || converts => CheckoutRequirement::ConvertedFiles,
        () if is_on(&"core.sparseCheckout") => CheckoutRequirement::SparseFiles,
        () if INDEX_FORMAT_SETTINGS.iter().any(is_on) || hooks_dir.join("post-index-change").exists() => {
            CheckoutRequirement::OtherIndexFormat
        }
        () => CheckoutRequirement::Standard,
    }
}

/// Attribute rules by which git may write files in another form than in the repository, by folder.
pub(crate) struct ConversionRules(Vec<(Vec<u8>, Vec<AttributePattern>)>);

impl ConversionRules {
    /// Loads the rules from the attributes of an index and from the attribute files outside of it. `None`
    /// where one of those cannot be read.
    ///
    /// # Errors
    /// Fails when an object cannot be read.
    pub fn load(repo: &Repo, index: &File) -> Result<Option<ConversionRules>, Error> {
        let mut rules_by_folder = Vec::new();
        for file in attribute_files_outside_tree(repo) {
            match std::fs::read(&file) {
                Ok(text) => rules_by_folder.push((Vec::new(), parse_conversion_rules(&text))),
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(_) => return Ok(None),
            }
        }
        for entry in index.entries() {
            let path = entry.path(index).as_bytes();
            let Some(folder) = path.strip_suffix(b".gitattributes") else { continue };
            if folder.is_empty() || folder.ends_with(b"/") {
                rules_by_folder
                    .push((folder.to_owned(), parse_conversion_rules(&repo.blob(BlobId(entry.id))?)));
            }
        }
        rules_by_folder.retain(|(_, rules)| !rules.is_empty());
        Ok(Some(ConversionRules(rules_by_folder)))
    }

    /// Returns whether git may write the file at a path in another form.
    pub(crate) fn may_convert(&self, path: &[u8]) -> bool {
        self.0
            .iter()
            .any(|(folder, rules)| path.strip_prefix(&folder[..]).is_some_and(|p| any_rule_matches(rules, p)))
    }
}

/// Parses the lines of an attributes file that may make git convert files.
fn parse_conversion_rules(text: &[u8]) -> Vec<AttributePattern> {
    let lines = text.lines().filter(|line| !is_verbatim_attribute_line(line));
    lines.map(parse_pattern).collect()
}

/// Parses the pattern of a line; `None` where it is not certain which paths it matches.
fn parse_pattern(line: &[u8]) -> AttributePattern {
    let first = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    // A quoted pattern may contain blanks, and a macro adds attributes on every line that uses it.
    if first.starts_with(b"\"") || first.starts_with(b"[") || !first.is_ascii() {
        return None;
    }
    Pattern::from_bytes_without_negation(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_attribute_lines_that_convert_files() {
        for line in
            ["* text=auto", "*.sh text eol=lf", "* eol=lf diff=x", "a -text", "b !eol linguist-vendored", ""]
        {
            assert_eq!(parse_conversion_rules(line.as_bytes()), [], "{line}");
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
            assert!(matches!(&parse_conversion_rules(line.as_bytes())[..], [Some(_)]), "{line}");
        }
        for line in ["[attr]mine filter=x", "\"a b\" ident", "\u{feff}* text"] {
            assert_eq!(parse_conversion_rules(line.as_bytes()), [None], "{line}");
        }
    }

    #[test]
    fn applies_rules_below_their_attributes_file() {
        let conversions =
            ConversionRules(vec![(b"d/".to_vec(), parse_conversion_rules(b"*.c ident\nsub/x filter=f"))]);
        for (path, expected) in [
            ("d/a.c", true),
            ("d/e/a.c", true),
            ("a.c", false),
            ("d/sub/x", true),
            ("d/x", false),
            ("d/a.h", false),
        ] {
            assert_eq!(conversions.may_convert(path.as_bytes()), expected, "{path}");
        }
    }
}
