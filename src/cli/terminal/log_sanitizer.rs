//! Terminal output of a log of unknown format: text and colors pass, and every other control sequence is
//! escaped.

use proq_base::terminal_text;

/// Maximum length of the parameters of a color sequence, in bytes. A longer sequence is escaped.
const MAX_COLOR_PARAMETERS_LEN: usize = 64;

/// Streaming sanitizer for a log.
#[derive(Debug, Default)]
pub(crate) struct LogSanitizer {
    /// Bytes that may be the start of a character or of a color sequence.
    incomplete_tail: Vec<u8>,
    /// Whether a color sequence has passed.
    has_emitted_color: bool,
}

impl LogSanitizer {
    /// Adds bytes of the log, and returns the sanitized text of everything that is complete.
    pub(crate) fn sanitize_chunk(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.incomplete_tail.extend_from_slice(bytes);
        let buffered = std::mem::take(&mut self.incomplete_tail);
        let complete_end = complete_prefix_len(&buffered);
        self.incomplete_tail = buffered[complete_end..].to_vec();
        self.sanitize(&buffered[..complete_end])
    }

    /// Ends the log: returns the sanitized pending bytes, and resets the color if one has passed.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let pending_bytes = std::mem::take(&mut self.incomplete_tail);
        let mut out = self.sanitize(&pending_bytes);
        if self.has_emitted_color {
            out.extend_from_slice(b"\x1b[0m");
        }
        out
    }

    fn sanitize(&mut self, bytes: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(bytes);
        let mut out = String::with_capacity(text.len());
        let mut remaining = text.as_ref();
        while let Some(c) = remaining.chars().next() {
            if let Some(length) = color_sequence_len(remaining.as_bytes()) {
                self.has_emitted_color = true;
                out.push_str(&remaining[..length]);
                remaining = &remaining[length..];
                continue;
            }
            match c {
                '\n' | '\t' => out.push(c),
                // A carriage return that would overwrite a line starts a new line.
                '\r' if skip_leading_colors(&remaining[1..]).starts_with('\n') => {}
                '\r' => out.push('\n'),
                c => out.push_str(&terminal_text::escape_line(c.encode_utf8(&mut [0; 4]))),
            }
            remaining = &remaining[c.len_utf8()..];
        }
        out.into_bytes()
    }
}

/// Returns the text after its leading color sequences. Git writes one before the carriage return of a changed
/// line.
fn skip_leading_colors(mut text: &str) -> &str {
    while let Some(length) = color_sequence_len(text.as_bytes()) {
        text = &text[length..];
    }
    text
}

/// Returns the length in bytes of the color sequence at the start of a text; none if it does not start with
/// one.
fn color_sequence_len(text: &[u8]) -> Option<usize> {
    let parameters = text.strip_prefix(b"\x1b[")?;
    let length = parameters.iter().position(|b| !is_color_parameter(*b))?;
    (parameters[length] == b'm'
        && length <= MAX_COLOR_PARAMETERS_LEN
        && !hides_following_text(&parameters[..length]))
    .then_some(length + 3)
}

/// Returns whether one of the attributes makes the text after it invisible. The numbers inside a color are
/// not attributes.
fn hides_following_text(attributes: &[u8]) -> bool {
    let parse_number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<u32>().ok();
    let mut numbers = attributes
        .split(|b| *b == b';')
        .map(|parameter| parse_number(parameter.split(|b| *b == b':').next()?));
    while let Some(attribute) = numbers.next() {
        match attribute {
            Some(8) => return true,
            // A color from the palette (5) or as three components (2).
            Some(38 | 48 | 58) => match numbers.next().flatten() {
                Some(5) => drop(numbers.next()),
                Some(2) => drop(numbers.nth(2)),
                _ => {}
            },
            _ => {}
        }
    }
    false
}

fn is_color_parameter(byte: u8) -> bool {
    byte.is_ascii_digit() || [b';', b':'].contains(&byte)
}

/// Returns the length of the prefix that can be shown now. More bytes cannot change the meaning of that
/// prefix.
fn complete_prefix_len(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(MAX_COLOR_PARAMETERS_LEN + 2);
    let escape = bytes[tail..].iter().rposition(|b| *b == b'\x1b').map(|at| tail + at);
    if let Some(at) = escape {
        let is_unfinished = match &bytes[at + 1..] {
            [] => true,
            [b'[', parameters @ ..] => parameters.iter().all(|b| is_color_parameter(*b)),
            _ => false,
        };
        if is_unfinished {
            return at;
        }
    }
    if bytes.last() == Some(&b'\r') {
        return bytes.len() - 1;
    }
    // A UTF-8 character has at most four bytes.
    let search_start = bytes.len().saturating_sub(3);
    let is_lead_byte = |at: &usize| bytes[*at] >= 0xc0;
    match (search_start..bytes.len()).rev().find(is_lead_byte) {
        Some(at) if bytes.len() - at < utf8_len(bytes[at]) => at,
        _ => bytes.len(),
    }
}

/// Returns the length in bytes of the UTF-8 character with this lead byte, which must be 0xC0 or more.
fn utf8_len(first: u8) -> usize {
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

    fn sanitize_all(chunks: &[&[u8]]) -> String {
        let mut log = LogSanitizer::default();
        let mut out: Vec<u8> = chunks.iter().flat_map(|chunk| log.sanitize_chunk(chunk)).collect();
        out.extend(log.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn keeps_colors_and_escapes_other_controls() {
        assert_eq!(
            sanitize_all(&[LOG.as_bytes()]),
            "\u{1b}[1;31mred\u{1b}[0m grün\t👍\n\\u{1b}]52;c;ZXZpbA==\\u{7}\\u{1b}]2;title\\u{7}\\u{1b}[2J\\u{9b}31m10%\n20%\n\\u{202e}end\\u{8}\u{1b}[0m"
        );
        assert_eq!(sanitize_all(&[b"a\xff\xc3", b"b\x1b"]), "a\u{fffd}\u{fffd}b\\u{1b}");
        for visible in ["38;5;8", "48;2;8;8;8", "58;5;8", "38:5:8", "18", "4:3"] {
            assert!(
                sanitize_all(&[format!("\u{1b}[{visible}mx").as_bytes()]).starts_with("\u{1b}["),
                "{visible}"
            );
        }
        for hidden in ["8", "08", "1;8", "38;5;1;8", "38;2;1;2;3;8", "8:1"] {
            let shown = sanitize_all(&[format!("\u{1b}[{hidden}mx").as_bytes()]);
            assert!(shown.starts_with("\\u{1b}["), "{hidden}: {shown}");
        }
        let long = format!("\u{1b}[{}m", "1;".repeat(99));
        assert!(!sanitize_all(&[long.as_bytes()]).contains('\u{1b}'));
    }

    #[test]
    fn chunk_boundaries_do_not_change_output() {
        let bytes = LOG.as_bytes();
        let expected = sanitize_all(&[bytes]);
        for split_at in 0..=bytes.len() {
            assert_eq!(sanitize_all(&[&bytes[..split_at], &bytes[split_at..]]), expected, "at {split_at}");
        }
        let single_bytes: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(sanitize_all(&single_bytes), expected);
    }

    #[test]
    fn drops_colored_carriage_return_before_newline() {
        let mut log = LogSanitizer::default();
        let shown = log.sanitize_chunk(b"+a\x1b[m\x1b[41m\r\x1b[m\nb\rc\n");
        assert_eq!(String::from_utf8(shown).unwrap(), "+a\u{1b}[m\u{1b}[41m\u{1b}[m\nb\nc\n");
    }
}
