//! Expansion of placeholders in arguments, variables and files. An inserted value is never expanded again.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Names of all placeholders, each with a description of its value.
pub(crate) const PLACEHOLDERS: &[(&str, &str)] = &[
    ("allow", "the words of a command that may be run with any arguments; the argument is repeated for each"),
    ("allow_exact", "a command that may be run as it is; the argument is repeated for each"),
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
    ("prompt", "the agent's prompt"),
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

/// Placeholders that have a list of values. An argument with such a placeholder is repeated for each value.
const LIST_PLACEHOLDERS: &[&str] = &["allow", "allow_exact", "check", "tool"];

/// Suffix of a placeholder's name that inserts the value as a quoted string, valid in JSON and TOML.
const QUOTED_SUFFIX: &str = ":quoted";

/// Values of the placeholders in one run.
#[derive(Debug, Clone, Default)]
pub struct PlaceholderValues {
    values: BTreeMap<&'static str, OsString>,
    lists: BTreeMap<&'static str, Vec<String>>,
}

impl PlaceholderValues {
    /// Sets the value of a placeholder.
    pub fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.values.insert(name, value.into());
    }

    /// Sets the value of a placeholder if `value` is given.
    pub(crate) fn set_optional(&mut self, name: &'static str, value: Option<impl Into<OsString>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Sets the list of values that an argument with this placeholder is repeated for.
    pub(crate) fn set_list(&mut self, name: &'static str, values: Vec<String>) {
        self.lists.insert(name, values);
    }

    /// Expands the placeholders in a text. Returns `None` when one of them has no value. Text in braces that
    /// is no placeholder is not changed.
    pub(crate) fn expand(&self, text: &OsStr) -> Option<OsString> {
        let Some(text) = text.to_str() else { return Some(text.to_owned()) };
        let mut out = OsString::new();
        let mut remaining = text;
        while let Some(open) = remaining.find('{') {
            out.push(&remaining[..open]);
            remaining = &remaining[open..];
            let Some((name, quoted, after)) = split_placeholder(remaining) else {
                out.push("{");
                remaining = &remaining[1..];
                continue;
            };
            let value = self.values.get(name)?;
            if quoted {
                out.push(quote_string(&value.to_string_lossy()));
            } else {
                out.push(value);
            }
            remaining = after;
        }
        out.push(remaining);
        Some(out)
    }

    /// Expands a group of arguments that belong together. Returns no argument of the group when a placeholder
    /// in it has no value.
    pub(crate) fn expand_group<S: AsRef<OsStr>>(&self, args: &[S]) -> Vec<OsString> {
        let mut out = Vec::new();
        for arg in args {
            let Some(list) = list_placeholder(arg.as_ref()) else {
                match self.expand(arg.as_ref()) {
                    Some(expanded) => out.push(expanded),
                    None => return Vec::new(),
                }
                continue;
            };
            for value in self.lists.get(list).into_iter().flatten() {
                let mut with_value = self.clone();
                with_value.set(list, value);
                out.extend(with_value.expand(arg.as_ref()));
            }
        }
        out
    }
}

/// Returns the placeholder with a list of values that a text contains.
fn list_placeholder(text: &OsStr) -> Option<&'static str> {
    LIST_PLACEHOLDERS.iter().find(|name| has_placeholder(text, name)).copied()
}

/// Returns whether a text contains a placeholder with a list of values.
pub(crate) fn has_list_placeholder(text: &OsStr) -> bool {
    list_placeholder(text).is_some()
}

/// Returns whether a text contains the placeholder `name`.
pub(crate) fn has_placeholder(text: &OsStr, name: &str) -> bool {
    let Some(text) = text.to_str() else { return false };
    let mut opens = text.match_indices('{');
    opens.any(|(offset, _)| split_placeholder(&text[offset..]).is_some_and(|(found, ..)| found == name))
}

/// Splits a placeholder off the start of a text. Returns its name, whether its value is inserted as a quoted
/// string, and the text after it.
fn split_placeholder(text: &str) -> Option<(&'static str, bool, &str)> {
    let (inside, after) = text.strip_prefix('{')?.split_once('}')?;
    let (name, quoted) = match inside.strip_suffix(QUOTED_SUFFIX) {
        Some(name) => (name, true),
        None => (inside, false),
    };
    let known = PLACEHOLDERS.iter().find(|(known, _)| *known == name)?;
    Some((known.0, quoted, after))
}

/// Quotes a text as a JSON string that is also valid in TOML, which requires one more character to be
/// escaped.
fn quote_string(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
impl PlaceholderValues {
    /// Removes the value of a placeholder.
    pub fn unset(&mut self, name: &str) {
        self.values.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> PlaceholderValues {
        let mut values = PlaceholderValues::default();
        values.set("prompt", "say {git_dir} \"'$(id)");
        values.set("git_dir", "/g \"x\"\n\u{7f}");
        values.set_list("check", vec!["make test".to_owned(), "x {prompt}".to_owned()]);
        values
    }

    fn expand_sample(text: &str) -> Option<String> {
        values().expand(text.as_ref()).map(|text| text.into_string().unwrap())
    }

    #[test]
    fn expands_placeholders_once() {
        assert_eq!(expand_sample("x{prompt}y").unwrap(), "xsay {git_dir} \"'$(id)y");
        assert_eq!(expand_sample("{other}{{}{prompt").unwrap(), "{other}{{}{prompt");
        assert_eq!(expand_sample("{model}"), None);
    }

    #[test]
    fn quoted_value_is_valid_json_and_toml() {
        let text = expand_sample("{\"a\":{git_dir:quoted}}").unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["a"], "/g \"x\"\n\u{7f}");
        let table: toml::Table = toml::from_str(&expand_sample("a={b={git_dir:quoted}}").unwrap()).unwrap();
        assert_eq!(table["a"]["b"].as_str(), Some("/g \"x\"\n\u{7f}"));
    }

    #[test]
    fn drops_incomplete_group_and_repeats_list() {
        let values = values();
        assert_eq!(values.expand_group(&["--model", "{model}"]), [""; 0]);
        assert_eq!(
            values.expand_group(&["a", "B({check})", "c"]),
            ["a", "B(make test)", "B(x {prompt})", "c"]
        );
    }

    #[test]
    fn placeholders_are_sorted() {
        assert!(PLACEHOLDERS.is_sorted());
    }
}
