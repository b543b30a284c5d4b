//! Escaping text from agents or unknown repositories for the terminal: none of it may move the cursor, change
//! colors, or reverse the direction of a line.

/// Escapes one line: each character that a terminal would interpret is replaced by its escape sequence.
pub fn escape_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(' '),
            c if is_unsafe(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Text that is safe to print to a terminal. Only this module creates it: control characters are escaped,
/// except for line ends, tabs and the colors that git-proq itself uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printable(String);

/// Color sequences, after `ESC [`, that git-proq and its help generator use.
const ALLOWED_COLORS: [&str; 14] =
    ["m", "0m", "1m", "2m", "4m", "7m", "22m", "31m", "32m", "33m", "34m", "35m", "36m", "39m"];

impl Printable {
    /// Escapes text. Colors stay only with `allow_colors`.
    pub fn escape(text: &str, allow_colors: bool) -> Printable {
        let mut out = String::with_capacity(text.len());
        let mut remaining = text;
        while let Some(at) = remaining.find(|c| is_unsafe(c) && c != '\n' && c != '\t') {
            let (safe, tail) = remaining.split_at(at);
            out.push_str(safe);
            let color = tail.strip_prefix("\u{1b}[").filter(|_| allow_colors);
            let color = color.and_then(|parameters| {
                ALLOWED_COLORS.iter().find(|allowed| parameters.starts_with(**allowed))
            });
            let length = match (color, tail.chars().next()) {
                (Some(color), _) => color.len() + 2,
                (None, first) => first.map_or(0, char::len_utf8),
            };
            match color {
                Some(_) => out.push_str(&tail[..length]),
                None => out.extend(tail[..length].chars().flat_map(char::escape_default)),
            }
            remaining = &tail[length..];
        }
        out.push_str(remaining);
        Printable(out)
    }

    /// Escapes JSON without changing its value: characters that a terminal would interpret become JSON
    /// escapes.
    pub fn escape_json(text: &str) -> Printable {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                c if c == '\u{7f}' || (is_unsafe(c) && !c.is_ascii()) => {
                    out.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => out.push(c),
            }
        }
        Printable(out)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Escapes each line of a text.
pub fn escape_lines(text: &str) -> impl Iterator<Item = String> {
    text.trim_end().split('\n').map(|text| escape_line(text.strip_suffix('\r').unwrap_or(text)))
}

/// Returns whether a character is a control character, changes the direction of following text, or has no
/// width.
fn is_unsafe(c: char) -> bool {
    let invisible = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
    c.is_control() || c == '\u{feff}' || c == '\u{61c}' || invisible.iter().any(|range| range.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_all_but_allowed_colors() {
        let escape = |text: &str, allow_colors| Printable::escape(text, allow_colors).as_str().to_owned();
        assert_eq!(escape("\u{1b}[1mbold\u{1b}[0m\ta\nb", true), "\u{1b}[1mbold\u{1b}[0m\ta\nb");
        assert_eq!(escape("\u{1b}[1mbold\u{1b}[0m", false), r"\u{1b}[1mbold\u{1b}[0m");
        for hostile in [
            "\u{1b}]52;c;x\u{7}",
            "\u{1b}[2J",
            "\u{1b}[8m",
            "\u{1b}[31;8m",
            "\u{9b}2J",
            "\r",
            "\u{202e}",
            "\u{61c}",
        ] {
            let shown = escape(hostile, true);
            assert!(shown.chars().all(|c| c.is_ascii_graphic()), "{shown}");
        }
    }

    #[test]
    fn escaped_json_has_same_value() {
        let value = serde_json::json!({ "a": "x\u{202e}y\u{9b}\u{7f}\u{1b}grün 👍" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = Printable::escape_json(&text);
        assert!(!shown.as_str().contains(['\u{202e}', '\u{9b}', '\u{7f}', '\u{1b}']));
        assert_eq!(serde_json::from_str::<serde_json::Value>(shown.as_str()).unwrap(), value);
    }

    /// Promise: agent-requests/report-escapes
    #[test]
    fn escapes_control_and_invisible_characters() {
        assert_eq!(
            escape_line("a\u{1b}[2Jb\r\u{7}\u{9b}31m\u{202e}x\u{7f}"),
            r"a\u{1b}[2Jb\r\u{7}\u{9b}31m\u{202e}x\u{7f}"
        );
        assert_eq!(escape_line("grüße\t日本 👍"), "grüße 日本 👍");
        assert_eq!(escape_lines("one\r\ntwo\rthree\n\n").collect::<Vec<_>>(), ["one", "two\\rthree"]);
    }
}
