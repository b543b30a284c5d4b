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

/// All of its lines.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = String> {
    text.trim_end().split('\n').map(|text| line(text.strip_suffix('\r').unwrap_or(text)))
}

/// Control characters, and those that change the direction of what follows or take no room.
fn is_obeyed(c: char) -> bool {
    let marks = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
    c.is_control() || c == '\u{feff}' || marks.iter().any(|range| range.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

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
