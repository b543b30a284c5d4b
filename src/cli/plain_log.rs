//! Owns how a log that is not in a known form looks on a terminal: its text and its colours, and nothing else that a terminal obeys.

use crate::harmless;

/// The longest sequence that is taken for a colour.
const LONGEST: usize = 64;

/// Makes a log harmless as it comes.
#[derive(Debug, Default)]
pub(super) struct PlainLog {
    /// What may be the beginning of a character or of a colour.
    begun: Vec<u8>,
    /// Whether a colour was let through.
    coloured: bool,
}

impl PlainLog {
    /// More of the log, as far as it can be shown.
    pub(super) fn shown(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.begun.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.begun);
        let whole = complete(&all);
        self.begun = all[whole..].to_vec();
        self.harmless(&all[..whole])
    }

    /// What its end adds.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let begun = std::mem::take(&mut self.begun);
        let mut out = self.harmless(&begun);
        if self.coloured {
            out.extend_from_slice(b"\x1b[0m");
        }
        out
    }

    fn harmless(&mut self, bytes: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(bytes);
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_ref();
        while let Some(c) = rest.chars().next() {
            if let Some(length) = colour(rest.as_bytes()) {
                self.coloured = true;
                out.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            match c {
                '\n' | '\t' => out.push(c),
                // What overwrites a line is one of its own.
                '\r' if past_colours(&rest[1..]).starts_with('\n') => {}
                '\r' => out.push('\n'),
                c => out.push_str(&harmless::line(c.encode_utf8(&mut [0; 4]))),
            }
            rest = &rest[c.len_utf8()..];
        }
        out.into_bytes()
    }
}

/// A text without the colour sequences with which it begins. Git puts one before the carriage return of a changed line.
fn past_colours(mut text: &str) -> &str {
    while let Some(length) = colour(text.as_bytes()) {
        text = &text[length..];
    }
    text
}

/// How long the colour is with which a text begins, if it does.
fn colour(text: &[u8]) -> Option<usize> {
    let inner = text.strip_prefix(b"\x1b[")?;
    let length = inner.iter().position(|b| !is_of_colour(*b))?;
    (inner[length] == b'm' && length <= LONGEST && !hides(&inner[..length])).then_some(length + 3)
}

/// Whether one of these attributes makes what follows invisible. The numbers of a colour are none.
fn hides(attributes: &[u8]) -> bool {
    let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<u32>().ok();
    let mut all = attributes.split(|b| *b == b';').map(|one| number(one.split(|b| *b == b':').next()?));
    while let Some(attribute) = all.next() {
        match attribute {
            Some(8) => return true,
            // A colour of a palette, or of its three parts.
            Some(38 | 48 | 58) => match all.next().flatten() {
                Some(5) => drop(all.next()),
                Some(2) => drop(all.nth(2)),
                _ => {}
            },
            _ => {}
        }
    }
    false
}

fn is_of_colour(byte: u8) -> bool {
    byte.is_ascii_digit() || [b';', b':'].contains(&byte)
}

/// How much of it can be shown: not what more bytes could make something else of.
fn complete(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(LONGEST + 2);
    let escape = bytes[tail..].iter().rposition(|b| *b == b'\x1b').map(|at| tail + at);
    if let Some(at) = escape {
        let open = match &bytes[at + 1..] {
            [] => true,
            [b'[', inner @ ..] => inner.iter().all(|b| is_of_colour(*b)),
            _ => false,
        };
        if open {
            return at;
        }
    }
    if bytes.last() == Some(&b'\r') {
        return bytes.len() - 1;
    }
    // A character has four bytes at most.
    let near = bytes.len().saturating_sub(3);
    let begins = |at: &usize| bytes[*at] >= 0xc0;
    match (near..bytes.len()).rev().find(begins) {
        Some(at) if bytes.len() - at < length_of(bytes[at]) => at,
        _ => bytes.len(),
    }
}

/// How many bytes a character has that begins with this one.
fn length_of(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\u{1b}[1;31mred\u{1b}[0m grün\t👍\r\n\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]2;title\u{7}\u{1b}[2J\u{9b}31m10%\r20%\n\u{202e}end\u{8}";

    fn whole(parts: &[&[u8]]) -> String {
        let mut log = PlainLog::default();
        let mut out: Vec<u8> = parts.iter().flat_map(|part| log.shown(part)).collect();
        out.extend(log.rest());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn colours_pass_and_all_else_is_written_out() {
        assert_eq!(
            whole(&[LOG.as_bytes()]),
            "\u{1b}[1;31mred\u{1b}[0m grün\t👍\n\\u{1b}]52;c;ZXZpbA==\\u{7}\\u{1b}]2;title\\u{7}\\u{1b}[2J\\u{9b}31m10%\n20%\n\\u{202e}end\\u{8}\u{1b}[0m"
        );
        assert_eq!(whole(&[b"a\xff\xc3", b"b\x1b"]), "a\u{fffd}\u{fffd}b\\u{1b}");
        for seen in ["38;5;8", "48;2;8;8;8", "58;5;8", "38:5:8", "18", "4:3"] {
            assert!(whole(&[format!("\u{1b}[{seen}mx").as_bytes()]).starts_with("\u{1b}["), "{seen}");
        }
        for hidden in ["8", "08", "1;8", "38;5;1;8", "38;2;1;2;3;8", "8:1"] {
            let shown = whole(&[format!("\u{1b}[{hidden}mx").as_bytes()]);
            assert!(shown.starts_with("\\u{1b}["), "{hidden}: {shown}");
        }
        let long = format!("\u{1b}[{}m", "1;".repeat(99));
        assert!(!whole(&[long.as_bytes()]).contains('\u{1b}'));
    }

    #[test]
    fn where_a_log_is_cut_changes_nothing() {
        let bytes = LOG.as_bytes();
        let one = whole(&[bytes]);
        for cut in 0..=bytes.len() {
            assert_eq!(whole(&[&bytes[..cut], &bytes[cut..]]), one, "at {cut}");
        }
        let each: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(whole(&each), one);
    }

    #[test]
    fn a_carriage_return_that_git_colours_is_no_line_of_its_own() {
        let mut log = PlainLog::default();
        let shown = log.shown(b"+a\x1b[m\x1b[41m\r\x1b[m\nb\rc\n");
        assert_eq!(String::from_utf8(shown).unwrap(), "+a\u{1b}[m\u{1b}[41m\u{1b}[m\nb\nc\n");
    }
}
