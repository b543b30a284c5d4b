//! Parser for the subset of Markdown in plans and tasks: headings, and list items with and without
//! checkboxes. Skips code blocks and comments.

/// A line of text outside of code blocks and comments.
#[derive(Debug, Clone, Copy)]
pub struct Line<'t> {
    /// Byte offset of the line in the text.
    pub offset: usize,
    /// Content of the line without its line end.
    pub text: &'t str,
}

/// A heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heading<'t> {
    /// Number of `#` characters.
    pub level: usize,
    /// Text of the heading.
    pub text: &'t str,
}

/// An item of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'t> {
    /// Width of its indentation; a tab counts as four.
    pub indent: usize,
    /// Whether the item's checkbox is ticked; none without a checkbox.
    pub ticked: Option<bool>,
    /// Byte offset of the item's text within its line, not within the file.
    pub text_offset_in_line: usize,
    /// Text of the item.
    pub text: &'t str,
}

/// Returns the lines of a text that are outside of code blocks and comments.
pub fn lines_outside_code(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut offset = 0;
    let mut fence: Option<(char, usize)> = None;
    let mut in_comment = false;
    text.split('\n').filter_map(move |raw| {
        let line = Line { offset, text: raw.strip_suffix('\r').unwrap_or(raw) };
        offset += raw.len() + 1;
        let start = line.text.trim_start();
        if in_comment {
            in_comment = !start.contains("-->");
            return None;
        }
        let marker = fence_marker(start);
        match (fence, marker) {
            (Some((c, length)), Some((marker_char, marker_length)))
                if c == marker_char && marker_length >= length && closes_fence(start, c) =>
            {
                fence = None;
                return None;
            }
            (Some(_), _) => return None,
            (None, Some(marker)) => {
                fence = Some(marker);
                return None;
            }
            (None, None) => {}
        }
        if start.starts_with("<!--") {
            in_comment = !start.contains("-->");
            return None;
        }
        Some(line)
    })
}

/// Returns the character and length of the fence that begins or ends a code block.
fn fence_marker(start: &str) -> Option<(char, usize)> {
    let c = start.chars().next().filter(|c| *c == '`' || *c == '~')?;
    let length = start.chars().take_while(|other| *other == c).count();
    // A line like ```this``` has inline code and is no fence.
    let is_inline = c == '`' && start[length..].contains('`');
    (length >= 3 && !is_inline).then_some((c, length))
}

/// Returns whether a line has no other character than `c`, so that it may end a code block.
fn closes_fence(start: &str, c: char) -> bool {
    start.trim_end().chars().all(|other| other == c)
}

impl<'t> Line<'t> {
    /// Parses the line as a heading; none if it is not one.
    pub fn heading(self) -> Option<Heading<'t>> {
        let start = self.text.trim_start_matches(' ');
        let level = start.bytes().take_while(|b| *b == b'#').count();
        let content = &start[level..];
        let is_level_valid = (1..=6).contains(&level) && self.text.len() - start.len() < 4;
        let is_heading = is_level_valid && (content.is_empty() || content.starts_with([' ', '\t']));
        is_heading.then(|| Heading { level, text: content.trim().trim_end_matches('#').trim_end() })
    }

    /// Parses the line as the start of a list item; none if it is not one.
    pub fn item(self) -> Option<Item<'t>> {
        let start = self.text.trim_start();
        let blanks = &self.text[..self.text.len() - start.len()];
        let indent = blanks.chars().map(|c| if c == '\t' { 4 } else { 1 }).sum();
        let content = start.strip_prefix(['-', '*', '+']).or_else(|| {
            let digits = start.bytes().take_while(u8::is_ascii_digit).count();
            (1..=9).contains(&digits).then(|| start[digits..].strip_prefix(['.', ')']))?
        })?;
        if !content.is_empty() && !content.starts_with([' ', '\t']) {
            return None;
        }
        let content = content.trim_start();
        let boxes = [("[ ]", false), ("[x]", true), ("[X]", true)];
        let ticked = boxes.iter().find_map(|(mark, ticked)| {
            let after_box = content.strip_prefix(mark)?;
            (after_box.is_empty() || after_box.starts_with([' ', '\t'])).then_some((*ticked, after_box))
        });
        let (ticked, text) = ticked.map_or((None, content), |(ticked, after_box)| (Some(ticked), after_box));
        let text = text.trim_start();
        Some(Item {
            indent,
            ticked,
            text_offset_in_line: self.text.len() - text.len(),
            text: text.trim_end(),
        })
    }
}

/// Removes the Markdown emphasis or code markers around a text: `` `a` ``, `**a**`, `*a*`, `__a__`.
pub fn strip_emphasis(text: &str) -> &str {
    let mut text = text.trim();
    for mark in ["**", "__", "`", "*"] {
        if let Some(inner) = text.strip_prefix(mark).and_then(|t| t.strip_suffix(mark)) {
            text = inner.trim();
        }
    }
    text
}

/// Parses a line that begins with `**Label:**` into the label and the text after it.
pub fn parse_label(text: &str) -> Option<(&str, &str)> {
    let (label, after_label) = text.trim().strip_prefix("**")?.split_once("**")?;
    match (label.strip_suffix(':'), after_label.strip_prefix(':')) {
        (Some(label), _) => Some((label.trim(), after_label.trim())),
        (None, Some(value)) => Some((label.trim(), value.trim())),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        lines_outside_code(text).map(|line| line.text).collect()
    }

    #[test]
    fn skips_code_blocks_and_comments() {
        let text = "a\r\n```md\n# no\n~~~\n```\nb\n~~~~\n~~~\n# no\n~~~~\n<!-- one -->\n<!--\n- no\n-->\n```c``` d\ne";
        assert_eq!(texts(text), ["a", "b", "```c``` d", "e"]);
        assert_eq!(texts("a\n```\nwithout end"), ["a"]);
        assert_eq!(lines_outside_code("é\nb").nth(1).map(|line| line.offset), Some(3));
    }

    #[test]
    fn parses_headings_and_items() {
        let line = |text| Line { offset: 0, text };
        assert_eq!(line("## Two ##").heading(), Some(Heading { level: 2, text: "Two" }));
        assert_eq!(line("####### x").heading(), None);
        assert_eq!(line("#x").heading(), None);
        let item = |text| line(text).item().map(|i| (i.indent, i.ticked, i.text_offset_in_line, i.text));
        assert_eq!(item("- [ ] a b "), Some((0, Some(false), 6, "a b")));
        assert_eq!(item("\t* [X] é"), Some((4, Some(true), 7, "é")));
        assert_eq!(item("12) plain"), Some((0, None, 4, "plain")));
        assert_eq!(item("- [link](x)"), Some((0, None, 2, "[link](x)")));
        assert_eq!(item("-"), Some((0, None, 1, "")));
        assert_eq!((item("-x"), item("--"), item("text")), (None, None, None));
    }

    #[test]
    fn strips_emphasis_and_parses_labels() {
        assert_eq!(
            [strip_emphasis("`a/b`"), strip_emphasis("**`a`**"), strip_emphasis(" a* ")],
            ["a/b", "a", "a*"]
        );
        assert_eq!(parse_label("**Task:** A-1 (x)"), Some(("Task", "A-1 (x)")));
        assert_eq!(parse_label("**Size**: S"), Some(("Size", "S")));
        assert_eq!(parse_label("**None**"), None);
    }
}
