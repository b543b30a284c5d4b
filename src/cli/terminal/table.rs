//! Plain tables: columns without lines, fitted to the width of the terminal.

use console::{measure_text_width, style, truncate_str};
use proq_base::terminal_text::Printable;

/// Number of blanks between two columns.
const GAP: usize = 2;
/// Width of output that is not fitted to a terminal, where a width is needed.
pub(crate) const DEFAULT_WIDTH: usize = 80;
/// Maximum width of a lane's name in a table that is fitted to a terminal.
const MAX_NAME_WIDTH: usize = 24;
/// Width to which a long word is cut rather than moved to the next line.
const MIN_WORD_WIDTH: usize = 8;
/// Width to which names are cut before a column is hidden.
const MIN_NAME_WIDTH: usize = 18;

/// A column of a table, and how it gives way on a narrow terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    /// Order of hiding: the column with the highest number is hidden first, one with 0 never.
    hide_order: u8,
    /// Width to which cells are cut before columns are hidden; `usize::MAX` for cells that are not cut.
    min_width: usize,
    max_width: usize,
    is_number: bool,
}

impl Column {
    /// A column whose cells are shown in full.
    pub(crate) const fn new(title: &'static str) -> Column {
        Column { title, hide_order: 0, min_width: usize::MAX, max_width: usize::MAX, is_number: false }
    }

    /// A column of names, cut to 24 characters. The number at the end of a name is kept.
    pub(crate) const fn name(title: &'static str) -> Column {
        Column { min_width: MIN_NAME_WIDTH, max_width: MAX_NAME_WIDTH, ..Column::new(title) }
    }

    /// A column of texts that may be cut to `min_width` characters.
    pub(crate) const fn text(title: &'static str, min_width: usize) -> Column {
        Column { min_width, ..Column::new(title) }
    }

    /// A column of numbers, aligned at the right.
    pub(crate) const fn number(title: &'static str) -> Column {
        Column { is_number: true, ..Column::new(title) }
    }

    /// The same column, hidden on a narrow terminal: those with the highest number first.
    pub(crate) const fn hidden_at(self, hide_order: u8) -> Column {
        Column { hide_order, ..self }
    }

    /// Cuts a cell to `width` characters, marked by `…`.
    fn cut(self, cell: &str, width: usize) -> String {
        match self.max_width {
            MAX_NAME_WIDTH => cut_name(cell, width),
            _ => truncate_str(cell, width, "…").into_owned(),
        }
    }
}

/// Cuts a name to `width` characters, marked by `…`. The number at its end is kept.
pub(crate) fn cut_name(name: &str, width: usize) -> String {
    let end = number_at_end(name);
    match measure_text_width(name) > width && end.len() + 4 <= width {
        true => format!("{}{end}", truncate_str(name, width - end.len(), "…")),
        false => truncate_str(name, width, "…").into_owned(),
    }
}

/// Returns the end of a name that distinguishes it from similar ones: `-12`, `@3`, or the mark `*`.
fn number_at_end(name: &str) -> &str {
    let unmarked = name.strip_suffix('*').unwrap_or(name);
    let start = unmarked.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    match name[..start].char_indices().next_back() {
        Some((at, '-' | '@')) if start < unmarked.len() => &name[at..],
        _ => &name[unmarked.len()..],
    }
}

/// A table as lines of text.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// The head and the rows.
    pub(crate) lines: Vec<String>,
    /// Titles of the columns that the width had no room for.
    pub(crate) hidden: Vec<&'static str>,
}

impl Rendered {
    /// Returns what the table leaves out, such as `2 columns hidden`; none if it shows every column.
    pub(crate) fn hidden_note(&self) -> Option<String> {
        let count = self.hidden.len();
        let columns = if count == 1 { "column" } else { "columns" };
        (count > 0).then(|| format!("{count} {columns} hidden"))
    }

    /// Returns the lines as one text, with the note on hidden columns.
    pub(crate) fn into_text(self) -> String {
        let note = self.hidden_note().map(|note| style(note).dim().to_string());
        self.lines.into_iter().chain(note).collect::<Vec<_>>().join("\n")
    }
}

/// Renders a table, fitted to the width of the output.
pub(crate) fn render(columns: &[Column], rows: Vec<Vec<String>>) -> String {
    render_lines(columns, rows, output_width()).into_text()
}

/// Renders a table as lines of at most `width` characters, or without a limit. Columns without any text are
/// left out.
pub(crate) fn render_lines(columns: &[Column], mut rows: Vec<Vec<String>>, width: Option<usize>) -> Rendered {
    for cell in rows.iter_mut().flatten() {
        // Escaping makes a text wider, so it comes before the column widths are computed.
        Printable::escape(cell, console::colors_enabled()).as_str().clone_into(cell);
    }
    // The last character of a line stays free: some terminals wrap a line that ends there.
    let widths = column_widths(columns, &rows, width.map(|width| width.saturating_sub(1)));
    let is_empty = |index: usize| !rows.is_empty() && rows.iter().all(|row| row[index].is_empty());
    let hidden = (0..columns.len()).filter(|index| widths[*index].is_none() && !is_empty(*index));
    let hidden = hidden.map(|index| columns[index].title).collect();
    let head = columns.iter().map(|column| style(column.title).bold().to_string()).collect();
    let line = |cells: &Vec<String>| {
        let mut out = String::new();
        for ((cell, column), width) in cells.iter().zip(columns).zip(&widths) {
            let Some(width) = *width else { continue };
            let cell = column.cut(cell, width);
            let pad = width.saturating_sub(measure_text_width(&cell));
            out.push_str(&match column.is_number {
                true => format!("{:pad$}{cell}{:GAP$}", "", ""),
                false => format!("{cell}{:pad$}{:GAP$}", "", ""),
            });
        }
        out.trim_end().to_owned()
    };
    Rendered { lines: std::iter::once(&head).chain(&rows).map(line).collect(), hidden }
}

/// Returns the width of each column, none for one that is not shown. Texts are cut before columns are hidden,
/// in their order; where that is not enough, the widest columns are cut further.
fn column_widths(columns: &[Column], rows: &[Vec<String>], limit: Option<usize>) -> Vec<Option<usize>> {
    let natural = |index: usize| {
        let widest = rows.iter().map(|row| measure_text_width(&row[index])).max().unwrap_or(0);
        let is_shown = widest > 0 || rows.is_empty();
        is_shown.then(|| widest.max(columns[index].title.len()))
    };
    let mut widths: Vec<Option<usize>> = (0..columns.len()).map(natural).collect();
    let Some(limit) = limit else { return widths };
    for (width, column) in widths.iter_mut().zip(columns) {
        *width = width.map(|width| width.min(column.max_width));
    }
    let total = |widths: &[Option<usize>]| widths.iter().flatten().map(|width| width + GAP).sum::<usize>();
    let min_width = |index: usize, width: usize| width.min(columns[index].min_width);
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse((columns[*index].hide_order, *index)));
    let fits_cut = |widths: &[Option<usize>]| {
        let cut: Vec<_> = (0..widths.len()).map(|i| widths[i].map(|width| min_width(i, width))).collect();
        total(&cut) <= limit + GAP
    };
    for index in order.into_iter().filter(|index| columns[*index].hide_order > 0) {
        if !fits_cut(&widths) {
            widths[index] = None;
        }
    }
    while total(&widths) > limit + GAP {
        let width_of = |index: &usize| widths[*index].unwrap_or(0);
        let is_above_min = |index: &usize| width_of(index) > min_width(*index, width_of(index));
        // The widest column is cut, first of those that may be hidden; below their minimum only as a last resort.
        let cut_order = |index: &usize| {
            (is_above_min(index), is_above_min(index) && columns[*index].hide_order > 0, width_of(index))
        };
        match (0..columns.len()).max_by_key(cut_order) {
            Some(index) if width_of(&index) > 1 => widths[index] = Some(width_of(&index) - 1),
            _ => break,
        }
    }
    widths
}

/// Returns the width of the output in columns: `COLUMNS` if that is set, else the width of the terminal on
/// stdout. None if stdout is a file or a pipe, to which tables are written in full.
pub(crate) fn output_width() -> Option<usize> {
    let term = console::Term::stdout();
    columns_variable().or_else(|| term.is_term().then(|| usize::from(term.size().1)))
}

/// Returns the width of the terminal in columns as the variable `COLUMNS` has it; none if that is not a number.
pub(crate) fn columns_variable() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|n| *n > 0)
}

/// Renders rows without cutting them: as a table if it fits the output, else as `first = second` with the last
/// column wrapped below.
pub(crate) fn render_untruncated(columns: &[Column; 3], rows: Vec<Vec<String>>) -> String {
    let column_width = |i: usize| rows.iter().map(|r| measure_text_width(&r[i])).max().unwrap_or(0);
    match output_width() {
        Some(width) if (0..3).map(column_width).sum::<usize>() + 2 * GAP >= width => {
            let stacked_row = |row: &Vec<String>| {
                let value = if row[1].is_empty() { String::new() } else { format!(" = {}", row[1]) };
                let first = wrap_hanging(&format!("{}{value}", style(&row[0]).bold()), width - 1, 2);
                format!("{first}\n{}", wrap_hanging(&format!("    {}", row[2]), width - 1, 4))
            };
            rows.iter().map(stacked_row).collect::<Vec<_>>().join("\n")
        }
        _ => render_lines(columns, rows, None).into_text(),
    }
}

/// Wraps a text at blanks into lines of at most `width` columns. Lines after the first begin with `indent` blanks.
/// A word that is longer than a line is cut.
pub(crate) fn wrap_hanging(text: &str, width: usize, indent: usize) -> String {
    let room = width.saturating_sub(indent).max(2);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let used = lines.last().map_or(width, |line| measure_text_width(line));
        let left = width.saturating_sub(used + 1);
        let word_width = measure_text_width(word);
        match lines.last_mut() {
            Some(line) if word_width <= left => line.push_str(&format!(" {word}")),
            Some(line) if word_width > room && left >= MIN_WORD_WIDTH => {
                line.push_str(&format!(" {}", truncate_str(word, left, "…")));
            }
            Some(_) => lines.push(format!("{:indent$}{}", "", truncate_str(word, room, "…"))),
            None => lines.push(truncate_str(word, width, "…").into_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::name("LANE"),
        Column::new("STATE"),
        Column::number("FILES").hidden_at(1),
        Column::text("TITLE", 8).hidden_at(2),
    ];

    fn rendered(width: Option<usize>) -> Rendered {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = vec![
            row(["implement-payments-by-invoice-12*", "done", "3", "Payments by invoice"]),
            row(["docs", "conflict", "112", ""]),
        ];
        render_lines(&COLUMNS, rows, width)
    }

    #[test]
    fn every_row_fits_every_width() {
        for width in 20..160 {
            for line in rendered(Some(width)).lines {
                assert!(measure_text_width(&line) < width, "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn texts_are_cut_before_columns_are_hidden() {
        let cut = rendered(Some(60));
        assert_eq!(cut.lines[1], "implement-payments-…-12*  done          3  Payments by inv…");
        assert_eq!(rendered(Some(44)).hidden, ["TITLE"]);
        let narrow = rendered(Some(34));
        assert_eq!(narrow.hidden, ["FILES", "TITLE"]);
        assert_eq!(narrow.hidden_note().unwrap(), "2 columns hidden");
        assert_eq!(narrow.lines[1], "implement-payments…-12*  done");
    }

    #[test]
    fn output_without_a_width_is_not_cut() {
        let lines = rendered(None);
        let first = "implement-payments-by-invoice-12*  done          3  Payments by invoice";
        assert_eq!((lines.lines[1].as_str(), lines.hidden.len()), (first, 0));
    }

    #[test]
    fn columns_without_text_are_left_out() {
        let rows = vec![vec!["a".to_owned(), String::new()]];
        let out = render_lines(&[Column::new("LANE"), Column::new("BASE")], rows, Some(40));
        assert_eq!((out.lines, out.hidden.len()), (vec!["LANE".to_owned(), "a".to_owned()], 0));
    }

    #[test]
    fn numbers_at_the_end_of_names_are_kept() {
        for (name, end) in
            [("pay-12", "-12"), ("pay@3", "@3"), ("pay-1*", "-1*"), ("pay*", "*"), ("pay7", "")]
        {
            assert_eq!(number_at_end(name), end);
        }
    }

    #[test]
    fn wraps_at_word_boundaries() {
        assert_eq!(wrap_hanging("one two three", 7, 0), "one two\nthree");
        assert_eq!(wrap_hanging("    one two three", 11, 4), "    one two\n    three");
        assert_eq!(wrap_hanging("one incomprehensible", 10, 2), "one\n  incompr…");
        assert_eq!(wrap_hanging("path  incomprehensible", 16, 6), "path  incompreh…");
    }
}
