//! Owns filling placeholders in arguments, variables and files. What is filled in is never looked at again.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// What a placeholder may be called, and what it stands for.
pub(crate) const NAMES: &[(&str, &str)] = &[
    ("attempt", "the run's number in its lane"),
    ("budget", "what it may cost, in US dollars"),
    ("check", "one of the lane's checks; the argument is repeated for each"),
    ("common_dir", "the shared git directory"),
    ("exe", "this program"),
    ("git_dir", "the worktree's own git directory"),
    ("hook_timeout", "how many seconds a hook of the agent's may take"),
    ("hook_timeout_ms", "the same in milliseconds"),
    ("lane", "the lane's name"),
    ("lane_dir", "the folder that the agent works in"),
    ("max_turns", "how many turns it may take"),
    ("mcp_config", "the file of this name that the profile has"),
    ("model", "the model's name"),
    ("plugin", "the file of this name that the profile has"),
    ("plugin_url", "the same as an address"),
    ("prompt", "what the agent is told"),
    ("prompt_file", "the file that holds it"),
    ("records_dir", "a folder of the lane's that stays between runs"),
    ("run_dir", "a folder for this run only"),
    ("session", "the session's id: the one to go on in, or a new one"),
    ("settings", "the file of this name that the profile has"),
    ("system_prompt", "the lane's rules, for agents that take them apart from the prompt"),
    ("system_prompt_file", "the file that holds them"),
    ("tool", "a lane tool that needs no leave; the argument is repeated for each"),
    (
        "trusted_dir",
        "the main checkout, where it holds nothing that counts only in a folder that a person trusts",
    ),
    ("usage_file", "where an agent that can may write what it used"),
    ("variables", "the names of the variables that are there, as a list of quoted strings"),
];

/// Placeholders that have a list of values: an argument is repeated for each.
const REPEATED: &[&str] = &["check", "tool"];

/// What stands behind a placeholder's name to have the value as a quoted string, as JSON and TOML write one.
const QUOTED: &str = ":quoted";

/// What placeholders stand for in one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    values: BTreeMap<&'static str, OsString>,
    lists: BTreeMap<&'static str, Vec<String>>,
}

impl Values {
    /// Gives a placeholder a value.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.values.insert(name, value.into());
    }

    /// Gives a placeholder a value, or none.
    pub(crate) fn set_if(&mut self, name: &'static str, value: Option<impl Into<OsString>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Gives a placeholder the values that an argument is repeated for.
    pub(crate) fn set_all(&mut self, name: &'static str, values: Vec<String>) {
        self.lists.insert(name, values);
    }

    /// Fills one text; none when a placeholder in it has no value. Whatever else stands in braces stays as it is.
    pub(crate) fn fill(&self, text: &OsStr) -> Option<OsString> {
        let Some(text) = text.to_str() else { return Some(text.to_owned()) };
        let mut out = OsString::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            out.push(&rest[..open]);
            rest = &rest[open..];
            let Some((name, quoted, after)) = placeholder(rest) else {
                out.push("{");
                rest = &rest[1..];
                continue;
            };
            let value = self.values.get(name)?;
            if quoted {
                out.push(as_quoted(&value.to_string_lossy()));
            } else {
                out.push(value);
            }
            rest = after;
        }
        out.push(rest);
        Some(out)
    }

    /// Fills a group of words that stay together: nothing of it is left when a placeholder in it has no value.
    pub(crate) fn fill_group<S: AsRef<OsStr>>(&self, words: &[S]) -> Vec<OsString> {
        let mut out = Vec::new();
        for word in words {
            let Some(list) = REPEATED.iter().find(|name| mentions(word.as_ref(), name)) else {
                match self.fill(word.as_ref()) {
                    Some(word) => out.push(word),
                    None => return Vec::new(),
                }
                continue;
            };
            for value in self.lists.get(list).into_iter().flatten() {
                let mut with = self.clone();
                with.set(list, value);
                out.extend(with.fill(word.as_ref()));
            }
        }
        out
    }
}

/// Whether a text has a placeholder of this name.
pub(crate) fn mentions(text: &OsStr, name: &str) -> bool {
    let Some(text) = text.to_str() else { return false };
    let mut opens = text.match_indices('{');
    opens.any(|(at, _)| placeholder(&text[at..]).is_some_and(|(found, ..)| found == name))
}

/// Takes a placeholder off the front of a text: its name, whether its value is to be quoted, what follows.
fn placeholder(text: &str) -> Option<(&'static str, bool, &str)> {
    let (inside, after) = text.strip_prefix('{')?.split_once('}')?;
    let (name, quoted) = match inside.strip_suffix(QUOTED) {
        Some(name) => (name, true),
        None => (inside, false),
    };
    let known = NAMES.iter().find(|(known, _)| *known == name)?;
    Some((known.0, quoted, after))
}

/// A text as a string of JSON that is one of TOML too, which wants one character more escaped.
fn as_quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
impl Values {
    /// Takes a placeholder's value away.
    pub(super) fn unset(&mut self, name: &str) {
        self.values.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        let mut values = Values::default();
        values.set("prompt", "say {git_dir} \"'$(id)");
        values.set("git_dir", "/g \"x\"\n\u{7f}");
        values.set_all("check", vec!["make test".to_owned(), "x {prompt}".to_owned()]);
        values
    }

    fn filled(text: &str) -> Option<String> {
        values().fill(text.as_ref()).map(|text| text.into_string().unwrap())
    }

    #[test]
    fn placeholders_are_filled_once() {
        assert_eq!(filled("x{prompt}y").unwrap(), "xsay {git_dir} \"'$(id)y");
        assert_eq!(filled("{other}{{}{prompt").unwrap(), "{other}{{}{prompt");
        assert_eq!(filled("{model}"), None);
    }

    #[test]
    fn a_quoted_value_is_a_string_in_json_and_in_toml() {
        let text = filled("{\"a\":{git_dir:quoted}}").unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["a"], "/g \"x\"\n\u{7f}");
        let table: toml::Table = toml::from_str(&filled("a={b={git_dir:quoted}}").unwrap()).unwrap();
        assert_eq!(table["a"]["b"].as_str(), Some("/g \"x\"\n\u{7f}"));
    }

    #[test]
    fn a_group_stays_together_and_checks_are_repeated() {
        let values = values();
        assert_eq!(values.fill_group(&["--model", "{model}"]), [""; 0]);
        assert_eq!(values.fill_group(&["a", "B({check})", "c"]), ["a", "B(make test)", "B(x {prompt})", "c"]);
    }

    #[test]
    fn names_are_sorted() {
        assert!(NAMES.is_sorted());
    }
}
