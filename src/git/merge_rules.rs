//! Owns which paths of a repository may be merged by anything but git's own text merge, by attributes and settings.
//!
//! It errs on one side: a path that some rule could give a merge driver counts as special, whichever rule would win.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use gix::bstr::{BStr, ByteSlice};
use gix::glob::{Pattern, pattern::Case, wildmatch::Mode};

use super::trees::Reader;
use super::{Error, Repo};

/// The file in a folder that gives its paths attributes.
const FILE: &[u8] = b".gitattributes";

/// Where git looks for everybody's attributes.
const SYSTEM: &str = "/etc/gitattributes";

/// A pattern whose paths are special; none where it cannot be read here, which is all paths.
pub(super) type Rule = Option<Pattern>;

/// What holds for all trees of one repository.
#[derive(Debug, Clone, Default)]
pub(super) struct Everywhere {
    rules: Vec<Rule>,
    /// The settings and files that this was read from, for comparing.
    pub(super) source: Vec<u8>,
}

impl Everywhere {
    /// Reads the settings about merges, and the attributes that no tree holds.
    pub(super) fn read(repo: &Repo) -> Everywhere {
        let mut out = Everywhere::default();
        for (key, value) in repo.merge_settings() {
            out.source.extend_from_slice(format!("{key}={value}\0").as_bytes());
            let by_setting = match key.as_str() {
                "merge.default" => value != "text",
                "merge.renormalize" => value != "false",
                // Other styles refine a conflict in another way.
                "merge.conflictstyle" => value != "merge",
                _ => false,
            };
            if by_setting {
                out.rules.push(None);
            }
        }
        for file in attribute_files(repo) {
            if let Ok(text) = std::fs::read(&file) {
                out.rules.extend(parse(&text));
                out.source.extend_from_slice(&text);
                out.source.push(0);
            }
        }
        out
    }
}

/// The files with attributes that belong to no tree.
pub(super) fn attribute_files(repo: &Repo) -> Vec<PathBuf> {
    let user = repo.gix.config_snapshot().trusted_path("core.attributesFile").ok().flatten();
    // git looks from where it stands, which is the top of a checkout.
    let user = user.map(|path| repo.home().join(path));
    let user = user.or_else(|| {
        let own = std::env::var_os("XDG_CONFIG_HOME").filter(|v| !v.is_empty()).map(PathBuf::from);
        Some(own.or_else(|| Some(std::env::home_dir()?.join(".config")))?.join("git/attributes"))
    });
    let mut out = vec![PathBuf::from(SYSTEM), repo.common_dir().join("info/attributes")];
    out.extend(user);
    out
}

/// The rules of some trees, each file of theirs read once.
pub(super) struct Rules {
    everywhere: Everywhere,
    files: RefCell<HashMap<gix::ObjectId, Rc<Vec<Rule>>>>,
}

impl Rules {
    /// On top of what holds everywhere.
    pub(super) fn new(everywhere: Everywhere) -> Rules {
        Rules { everywhere, files: RefCell::default() }
    }

    /// Whether `path` of the tree `root` may be merged by something else than git's text merge.
    pub(super) fn is_special(
        &self,
        reader: &Reader,
        root: gix::ObjectId,
        path: &[u8],
    ) -> Result<bool, Error> {
        if any_matches(&self.everywhere.rules, path) {
            return Ok(true);
        }
        let (mut folder, mut below) = (root, path);
        loop {
            let items = reader.tree(folder)?;
            if let Some(file) = items.get(FILE).filter(|item| item.mode.is_blob())
                && any_matches(&self.of_file(reader, file.id)?, below)
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

    fn of_file(&self, reader: &Reader, id: gix::ObjectId) -> Result<Rc<Vec<Rule>>, Error> {
        if let Some(known) = self.files.borrow().get(&id) {
            return Ok(Rc::clone(known));
        }
        let rules = Rc::new(parse(&reader.blob(id)?));
        self.files.borrow_mut().insert(id, Rc::clone(&rules));
        Ok(rules)
    }
}

pub(super) fn any_matches(rules: &[Rule], path: &[u8]) -> bool {
    let name = path.rfind_byte(b'/').map(|at| at + 1);
    rules.iter().any(|rule| match rule {
        None => true,
        Some(pattern) => pattern.matches_repo_relative_path(
            BStr::new(path),
            name,
            Some(false),
            Case::Fold,
            Mode::NO_MATCH_SLASH_LITERAL,
        ),
    })
}

/// The lines of a file with attributes that say something about merging.
fn parse(text: &[u8]) -> Vec<Rule> {
    let mut out = Vec::new();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in text.lines().map(<[u8]>::trim).filter(|line| !line.starts_with(b"#")) {
        let quoted = line.starts_with(b"\"");
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(first) = words.next() else { continue };
        // Where a quoted pattern ends is git's to know; a word of it that looks like an attribute does no harm.
        if !words.any(is_about_merging) {
            continue;
        }
        // A macro is a word for attributes, on whatever lines it is used.
        let whole = quoted || first.starts_with(b"[attr]");
        out.push(if whole { None } else { Pattern::from_bytes_without_negation(first) });
    }
    out
}

/// `merge`, `-merge`, `merge=union`, and `binary`, which is a word for `-merge` among others.
fn is_about_merging(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"!")).unwrap_or(word);
    let name = word.split(|b| *b == b'=').next().unwrap_or(word);
    name == b"merge" || name == b"binary"
}

impl Repo {
    /// The settings that a merge goes by, in git's order.
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

    fn special(text: &str, path: &str) -> bool {
        any_matches(&parse(text.as_bytes()), path.as_bytes())
    }

    #[test]
    fn only_lines_about_merging_count() {
        assert!(!special("* text=auto\n*.rs diff=rust\n# *.rs merge=union\n", "a.rs"));
        assert!(special("*.md merge=union\n", "docs/a.md") && !special("*.md merge=union\n", "a.rs"));
        assert!(special("/CHANGES -merge", "CHANGES") && !special("/CHANGES -merge", "docs/CHANGES"));
        assert!(special("*.bin binary", "a.bin") && special("*.txt !merge", "a.txt"));
        assert!(special("docs/** merge", "docs/x/y") && !special("docs/** merge", "x/y"));
    }

    #[test]
    fn what_cannot_be_told_here_is_special() {
        assert!(special("[attr]mine merge=ours\n*.x mine", "whatever"));
        assert!(special("\"a b\" merge=union", "whatever"));
        assert!(special("\u{feff}*.md merge=union", "a.md"));
    }
}
