//! Owns making text harmless that an agent or a stranger's repository wrote: nothing in it may move the cursor, change colours,
//! or turn a line around.

/// One line of it, with each character that a terminal would obey written out.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(' '),
            c if is_obeyed(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Text that may go to a terminal. Only this module makes it: whatever a terminal would obey is written out, but for line ends,
/// tabs and the colours that this program itself uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Printable(String);

/// The colours that this program uses, and the library that makes its help, behind `ESC [`.
const COLOURS: [&str; 14] =
    ["m", "0m", "1m", "2m", "4m", "7m", "22m", "31m", "32m", "33m", "34m", "35m", "36m", "39m"];

impl Printable {
    /// Makes text printable. Colours stay only if it is `coloured`.
    pub(crate) fn of(text: &str, coloured: bool) -> Printable {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(|c| is_obeyed(c) && c != '\n' && c != '\t') {
            let (plain, from) = rest.split_at(at);
            out.push_str(plain);
            let colour = from.strip_prefix("\u{1b}[").filter(|_| coloured);
            let colour = colour.and_then(|after| COLOURS.iter().find(|colour| after.starts_with(**colour)));
            let length = match (colour, from.chars().next()) {
                (Some(colour), _) => colour.len() + 2,
                (None, first) => first.map_or(0, char::len_utf8),
            };
            match colour {
                Some(_) => out.push_str(&from[..length]),
                None => out.extend(from[..length].chars().flat_map(char::escape_default)),
            }
            rest = &from[length..];
        }
        out.push_str(rest);
        Printable(out)
    }

    /// Makes JSON printable, which stays the same value: what C0 leaves is escaped as JSON does.
    pub(crate) fn json(text: &str) -> Printable {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                c if c == '\u{7f}' || (is_obeyed(c) && !c.is_ascii()) => {
                    out.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => out.push(c),
            }
        }
        Printable(out)
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// All of its lines.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = String> {
    text.trim_end().split('\n').map(|text| line(text.strip_suffix('\r').unwrap_or(text)))
}

/// Control characters, and those that change the direction of what follows or take no room.
fn is_obeyed(c: char) -> bool {
    let marks = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
    c.is_control() || c == '\u{feff}' || c == '\u{61c}' || marks.iter().any(|range| range.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_colours_are_printed() {
        let of = |text: &str, coloured| Printable::of(text, coloured).as_str().to_owned();
        assert_eq!(of("\u{1b}[1mbold\u{1b}[0m\ta\nb", true), "\u{1b}[1mbold\u{1b}[0m\ta\nb");
        assert_eq!(of("\u{1b}[1mbold\u{1b}[0m", false), r"\u{1b}[1mbold\u{1b}[0m");
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
            let shown = of(hostile, true);
            assert!(shown.chars().all(|c| c.is_ascii_graphic()), "{shown}");
        }
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ "a": "x\u{202e}y\u{9b}\u{7f}\u{1b}grün 👍" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = Printable::json(&text);
        assert!(!shown.as_str().contains(['\u{202e}', '\u{9b}', '\u{7f}', '\u{1b}']));
        assert_eq!(serde_json::from_str::<serde_json::Value>(shown.as_str()).unwrap(), value);
    }

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(
            line("a\u{1b}[2Jb\r\u{7}\u{9b}31m\u{202e}x\u{7f}"),
            r"a\u{1b}[2Jb\r\u{7}\u{9b}31m\u{202e}x\u{7f}"
        );
        assert_eq!(line("grüße\t日本 👍"), "grüße 日本 👍");
        assert_eq!(lines("one\r\ntwo\rthree\n\n").collect::<Vec<_>>(), ["one", "two\\rthree"]);
    }
}
