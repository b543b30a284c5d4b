//! Owns noting that an entry with keys is done, in TOML and in YAML.

use super::super::node::{Entry, Node, Places, Value};
use super::super::stories;
use super::Edit;

/// How a file says that an entry is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Style {
    /// What stands between a key and its value.
    between: &'static str,
    /// The key, and its value, for an entry that says nothing yet.
    key: &'static str,
    /// The word for it, where it is a word.
    word: String,
}

impl Style {
    /// That of a plan in TOML.
    pub(super) fn toml() -> Style {
        Style { between: " = ", key: "done", word: "true".to_owned() }
    }

    /// That of a list of stories: as other stories in it have it.
    pub(super) fn stories(nodes: &[Node]) -> Style {
        let status = |node: &Node| node.text("status").map(ToOwned::to_owned);
        let words: Vec<String> = nodes.iter().filter_map(status).collect();
        let done = words.iter().find(|word| stories::is_done_word(word));
        let is_by_passes = words.is_empty() && nodes.iter().any(|node| node.get("passes").is_some());
        let word = match (done, words.first()) {
            (Some(word), _) => word.trim().to_owned(),
            (None, Some(other)) if other.chars().all(|c| !c.is_lowercase()) => "DONE".to_owned(),
            (None, Some(other)) if other.starts_with(char::is_uppercase) => "Done".to_owned(),
            (None, _) => "done".to_owned(),
        };
        match is_by_passes {
            true => Style { between: ": ", key: "passes", word: "true".to_owned() },
            false => Style { between: ": ", key: "status", word },
        }
    }

    /// What notes it in an entry; none where its text is not written as most people write it.
    pub(super) fn note(&self, places: &Places<'_>, node: &Node) -> Option<Vec<Edit>> {
        let Value::Table(entries) = &node.value else { return None };
        let said =
            entries.iter().filter_map(|entry| self.said(places, entry)).collect::<Option<Vec<Edit>>>()?;
        if !said.is_empty() {
            return Some(said);
        }
        let id = entries.iter().find(|entry| entry.key == "id")?;
        self.added(places, id).map(|edit| vec![edit])
    }

    /// What is to stand in the place of what a key says, if it is one that says whether the entry is done. The inner one is
    /// none where that is not found in the text.
    #[expect(
        clippy::option_option,
        reason = "of no matter here, and of matter but not to be found, are two things"
    )]
    fn said(&self, places: &Places<'_>, entry: &Entry) -> Option<Option<Edit>> {
        let new = match (entry.key.as_str(), &entry.node.value) {
            ("done" | "passes", Value::Truth(false)) => "true",
            ("status", Value::Text(_)) if self.key == "status" => self.word.as_str(),
            _ => return None,
        };
        let at = places.byte(&entry.node.place);
        let rest = places.text().get(at..).unwrap_or_default();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let inner = at + quote.map_or(0, char::len_utf8);
        let length = match &entry.node.value {
            Value::Text(word) => word.len(),
            _ => "false".len(),
        };
        let old = places.text().get(inner..inner + length);
        let is_there = match &entry.node.value {
            Value::Text(word) => old == Some(word),
            _ => old.is_some_and(|old| old.eq_ignore_ascii_case("false")),
        };
        Some(is_there.then(|| Edit { at: inner..inner + length, text: new.to_owned() }))
    }

    /// A key of its own, behind the entry's ID: in a line below, or in the same one where more follows there.
    fn added(&self, places: &Places<'_>, id: &Entry) -> Option<Edit> {
        let text = places.text();
        let at = places.byte(&id.node.place);
        let rest = text.get(at..)?;
        let quotes = usize::from(rest.starts_with(['"', '\'']));
        let length = match &id.node.value {
            Value::Text(word) => word.len(),
            Value::Whole(number) => number.to_string().len(),
            _ => return None,
        };
        let end = at + length + 2 * quotes;
        let line_end = text.get(end..)?.find('\n').map_or(text.len(), |n| end + n);
        let behind = text.get(end..line_end)?.trim();
        let pair = format!("{}{}{}", self.key, self.between, self.word);
        if !behind.is_empty() && !behind.starts_with('#') {
            return Some(Edit { at: end..end, text: format!(", {pair}") });
        }
        let key = places.byte(&id.place);
        let begin = text.get(..key)?.rfind('\n').map_or(0, |n| n + 1);
        // What is no blank there is the mark of an item.
        let margin: String =
            text[begin..key].chars().map(|c| if c.is_whitespace() { c } else { ' ' }).collect();
        let (at, end) = match text[..line_end].strip_suffix('\r') {
            Some(line) => (line.len(), "\r\n"),
            None => (line_end, "\n"),
        };
        Some(Edit { at: at..at, text: format!("{end}{margin}{pair}") })
    }
}
