//! Owns the little of Markdown that plans and tasks are written in: headings, items with and without boxes, and what is no part of either.

/// A line that is text: neither in a block of code nor in a comment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'t> {
    /// Where it begins.
    pub(crate) at: usize,
    /// Without its end.
    pub(crate) text: &'t str,
}

/// A heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heading<'t> {
    /// How many `#` it has.
    pub(crate) level: usize,
    /// What it says.
    pub(crate) text: &'t str,
}

/// An item of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item<'t> {
    /// How far it is moved in; a tab counts four.
    pub(crate) indent: usize,
    /// Whether its box is ticked, if it has one.
    pub(crate) ticked: Option<bool>,
    /// Where in the line its text begins.
    pub(crate) at: usize,
    /// What it says.
    pub(crate) text: &'t str,
}

/// The lines of a text that are no code and no comment.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut at = 0;
    let mut fence: Option<(char, usize)> = None;
    let mut in_comment = false;
    text.split('\n').filter_map(move |raw| {
        let line = Line { at, text: raw.strip_suffix('\r').unwrap_or(raw) };
        at += raw.len() + 1;
        let start = line.text.trim_start();
        if in_comment {
            in_comment = !start.contains("-->");
            return None;
        }
        let mark = fence_of(start);
        match (fence, mark) {
            (Some((c, length)), Some((same, more))) if c == same && more >= length && ends(start, c) => {
                fence = None;
                return None;
            }
            (Some(_), _) => return None,
            (None, Some(mark)) => {
                fence = Some(mark);
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

/// The mark that begins or ends a block of code.
fn fence_of(start: &str) -> Option<(char, usize)> {
    let c = start.chars().next().filter(|c| *c == '`' || *c == '~')?;
    let length = start.chars().take_while(|other| *other == c).count();
    // In a line like ```this``` it is no block.
    let is_inline = c == '`' && start[length..].contains('`');
    (length >= 3 && !is_inline).then_some((c, length))
}

fn ends(start: &str, c: char) -> bool {
    start.trim_end().chars().all(|other| other == c)
}

impl<'t> Line<'t> {
    /// The heading that it is.
    pub(crate) fn heading(self) -> Option<Heading<'t>> {
        let start = self.text.trim_start_matches(' ');
        let level = start.bytes().take_while(|b| *b == b'#').count();
        let rest = &start[level..];
        let fits = (1..=6).contains(&level) && self.text.len() - start.len() < 4;
        let is_one = fits && (rest.is_empty() || rest.starts_with([' ', '\t']));
        is_one.then(|| Heading { level, text: rest.trim().trim_end_matches('#').trim_end() })
    }

    /// The item that it begins.
    pub(crate) fn item(self) -> Option<Item<'t>> {
        let start = self.text.trim_start();
        let blanks = &self.text[..self.text.len() - start.len()];
        let indent = blanks.chars().map(|c| if c == '\t' { 4 } else { 1 }).sum();
        let rest = start.strip_prefix(['-', '*', '+']).or_else(|| {
            let digits = start.bytes().take_while(u8::is_ascii_digit).count();
            (1..=9).contains(&digits).then(|| start[digits..].strip_prefix(['.', ')']))?
        })?;
        if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
            return None;
        }
        let rest = rest.trim_start();
        let boxes = [("[ ]", false), ("[x]", true), ("[X]", true)];
        let ticked = boxes.iter().find_map(|(mark, ticked)| {
            let behind = rest.strip_prefix(mark)?;
            (behind.is_empty() || behind.starts_with([' ', '\t'])).then_some((*ticked, behind))
        });
        let (ticked, text) = ticked.map_or((None, rest), |(ticked, behind)| (Some(ticked), behind));
        let text = text.trim_start();
        Some(Item { indent, ticked, at: self.text.len() - text.len(), text: text.trim_end() })
    }
}

/// A text without the marks around it: `` `a` ``, `**a**`, `_a_`.
pub(crate) fn bare(text: &str) -> &str {
    let mut text = text.trim();
    for mark in ["**", "__", "`", "*"] {
        if let Some(inner) = text.strip_prefix(mark).and_then(|t| t.strip_suffix(mark)) {
            text = inner.trim();
        }
    }
    text
}

/// A line that begins with `**Label:**`, and what follows.
pub(crate) fn labelled(text: &str) -> Option<(&str, &str)> {
    let (label, rest) = text.trim().strip_prefix("**")?.split_once("**")?;
    match (label.strip_suffix(':'), rest.strip_prefix(':')) {
        (Some(label), _) => Some((label.trim(), rest.trim())),
        (None, Some(rest)) => Some((label.trim(), rest.trim())),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        lines(text).map(|line| line.text).collect()
    }

    #[test]
    fn code_and_comments_are_no_text() {
        let text = "a\r\n```md\n# no\n~~~\n```\nb\n~~~~\n~~~\n# no\n~~~~\n<!-- one -->\n<!--\n- no\n-->\n```c``` d\ne";
        assert_eq!(texts(text), ["a", "b", "```c``` d", "e"]);
        assert_eq!(texts("a\n```\nwithout end"), ["a"]);
        assert_eq!(lines("é\nb").nth(1).map(|line| line.at), Some(3));
    }

    #[test]
    fn headings_and_items_are_told_apart() {
        let line = |text| Line { at: 0, text };
        assert_eq!(line("## Two ##").heading(), Some(Heading { level: 2, text: "Two" }));
        assert_eq!(line("####### x").heading(), None);
        assert_eq!(line("#x").heading(), None);
        let item = |text| line(text).item().map(|i| (i.indent, i.ticked, i.at, i.text));
        assert_eq!(item("- [ ] a b "), Some((0, Some(false), 6, "a b")));
        assert_eq!(item("\t* [X] é"), Some((4, Some(true), 7, "é")));
        assert_eq!(item("12) plain"), Some((0, None, 4, "plain")));
        assert_eq!(item("- [link](x)"), Some((0, None, 2, "[link](x)")));
        assert_eq!(item("-"), Some((0, None, 1, "")));
        assert_eq!((item("-x"), item("--"), item("text")), (None, None, None));
    }

    #[test]
    fn marks_are_taken_off() {
        assert_eq!([bare("`a/b`"), bare("**`a`**"), bare(" a* ")], ["a/b", "a", "a*"]);
        assert_eq!(labelled("**Task:** A-1 (x)"), Some(("Task", "A-1 (x)")));
        assert_eq!(labelled("**Size**: S"), Some(("Size", "S")));
        assert_eq!(labelled("**None**"), None);
    }
}
