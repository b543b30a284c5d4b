//! Merge rules of a repository: which paths may be merged by something other than git's own text merge, by
//! attributes and settings.
//!
//! The result errs on one side: a path that some rule could give a merge driver counts as special, whichever
//! rule would win.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gix::bstr::ByteSlice;
use gix::glob::Pattern;

use crate::repository::attributes::{AttributePattern, any_rule_matches, attribute_files_outside_tree};
use crate::repository::tree_reader::TreeReader;
use crate::{Error, Repo};

/// Name of the file that sets the attributes of the paths in its folder.
const ATTRIBUTES_FILE: &[u8] = b".gitattributes";

/// Merge rules that hold for all trees of one repository.
#[derive(Debug, Clone, Default)]
pub(crate) struct GlobalMergeRules {
    rules: Vec<AttributePattern>,
    /// Text of the settings and files that these rules were read from; two sets of rules with equal text are
    /// equal.
    pub source_text: Vec<u8>,
}

impl GlobalMergeRules {
    /// Reads the merge settings and the attribute files that no tree contains.
    pub fn read(repo: &Repo) -> GlobalMergeRules {
        let mut out = GlobalMergeRules::default();
        for (key, value) in repo.merge_settings() {
            out.source_text.extend_from_slice(format!("{key}={value}\0").as_bytes());
            let is_special = match key.as_str() {
                "merge.default" => value != "text",
                "merge.renormalize" => value != "false",
                // Other conflict styles refine a conflict in another way.
                "merge.conflictstyle" => value != "merge",
                _ => false,
            };
            if is_special {
                out.rules.push(None);
            }
        }
        for file in attribute_files_outside_tree(repo) {
            if let Ok(text) = std::fs::read(&file) {
                out.rules.extend(parse_merge_rules(&text));
                out.source_text.extend_from_slice(&text);
                out.source_text.push(0);
            }
        }
        out
    }
}

/// Merge rules of trees: the global ones and a cache of parsed `.gitattributes` blobs, each read once.
pub(crate) struct MergeRules {
    global: GlobalMergeRules,
    rules_by_file: RefCell<HashMap<gix::ObjectId, Rc<Vec<AttributePattern>>>>,
}

impl MergeRules {
    /// Creates the rules from the global ones, with an empty cache.
    pub fn new(global: GlobalMergeRules) -> MergeRules {
        MergeRules { global, rules_by_file: RefCell::default() }
    }

    /// Returns whether `path` of the tree `root` may be merged by something other than git's text merge.
    pub(crate) fn may_use_merge_driver(
        &self,
        reader: &TreeReader,
        root: gix::ObjectId,
        path: &[u8],
    ) -> Result<bool, Error> {
        if any_rule_matches(&self.global.rules, path) {
            return Ok(true);
        }
        let (mut folder, mut below) = (root, path);
        loop {
            let items = reader.tree(folder)?;
            if let Some(file) = items.get(ATTRIBUTES_FILE).filter(|item| item.mode.is_blob())
                && any_rule_matches(&self.rules_of_file(reader, file.id)?, below)
            {
                return Ok(true);
            }
            let Some(slash) = below.iter().position(|b| *b == b'/') else { return Ok(false) };
            match items.get(&below[..slash]).filter(|item| item.is_tree()) {
                Some(item) => (folder, below) = (item.id, &below[slash + 1..]),
                None => return Ok(false),
            }
        }
    }

    fn rules_of_file(
        &self,
        reader: &TreeReader,
        id: gix::ObjectId,
    ) -> Result<Rc<Vec<AttributePattern>>, Error> {
        if let Some(known) = self.rules_by_file.borrow().get(&id) {
            return Ok(Rc::clone(known));
        }
        let rules = Rc::new(parse_merge_rules(&reader.blob(id)?));
        self.rules_by_file.borrow_mut().insert(id, Rc::clone(&rules));
        Ok(rules)
    }
}

/// Parses an attribute file and returns a rule for each line that sets a merge attribute.
fn parse_merge_rules(text: &[u8]) -> Vec<AttributePattern> {
    let mut out = Vec::new();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in text.lines().map(<[u8]>::trim).filter(|line| !line.starts_with(b"#")) {
        let quoted = line.starts_with(b"\"");
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(first) = words.next() else { continue };
        // Only git knows where a quoted pattern ends; a word of the pattern that reads like an attribute does
        // no harm.
        if !words.any(is_merge_attribute) {
            continue;
        }
        // A macro is a name for attributes and may be used on any line.
        let matches_all = quoted || first.starts_with(b"[attr]");
        out.push(if matches_all { None } else { Pattern::from_bytes_without_negation(first) });
    }
    out
}

/// Returns whether an attribute concerns merging: `merge`, `-merge`, `merge=union`, or `binary`, a macro that
/// includes `-merge`.
fn is_merge_attribute(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"!")).unwrap_or(word);
    let name = word.split(|b| *b == b'=').next().unwrap_or(word);
    name == b"merge" || name == b"binary"
}

impl Repo {
    /// Returns the settings that affect a merge as keys and values, in git's order.
    fn merge_settings(&self) -> Vec<(String, String)> {
        let snapshot = self.gix.config_snapshot();
        let mut out = Vec::new();
        for section in snapshot.sections_by_name("merge").into_iter().flatten() {
            let sub = section.header().subsection_name().map(|name| format!("{name}.")).unwrap_or_default();
            for name in section.body().value_names() {
                for value in section.body().values(name.as_ref()) {
                    let (key, value) = (name.to_lowercase(), value.to_string());
                    out.push((format!("merge.{sub}{key}"), value));
                }
            }
        }
        for key in ["diff.renames", "diff.renameLimit", "core.attributesFile", "core.autocrlf", "core.eol"] {
            out.extend(snapshot.string(key).map(|value| (key.to_owned(), value.to_string())));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_use_driver(text: &str, path: &str) -> bool {
        any_rule_matches(&parse_merge_rules(text.as_bytes()), path.as_bytes())
    }

    #[test]
    fn reads_only_merge_attributes() {
        assert!(!may_use_driver("* text=auto\n*.rs diff=rust\n# *.rs merge=union\n", "a.rs"));
        assert!(
            may_use_driver("*.md merge=union\n", "docs/a.md")
                && !may_use_driver("*.md merge=union\n", "a.rs")
        );
        assert!(
            may_use_driver("/CHANGES -merge", "CHANGES")
                && !may_use_driver("/CHANGES -merge", "docs/CHANGES")
        );
        assert!(may_use_driver("*.bin binary", "a.bin") && may_use_driver("*.txt !merge", "a.txt"));
        assert!(may_use_driver("docs/** merge", "docs/x/y") && !may_use_driver("docs/** merge", "x/y"));
    }

    #[test]
    fn unsupported_pattern_matches_all_paths() {
        assert!(may_use_driver("[attr]mine merge=ours\n*.x mine", "whatever"));
        assert!(may_use_driver("\"a b\" merge=union", "whatever"));
        assert!(may_use_driver("\u{feff}*.md merge=union", "a.md"));
    }
}
