//! Plain tables: columns without lines, truncated to the width of the terminal.

use comfy_table::{ContentArrangement, Table, presets};
use proq_base::terminal_text::Printable;

use super::ui::Ui;

/// Renders a table. Its last column is truncated so that every row fits the terminal.
pub(crate) fn render(head: &[&str], rows: Vec<Vec<String>>) -> String {
    render_lines(head, rows).join("\n")
}

/// Prints a table as the result of the command, or the status `if_empty` if it has no rows.
pub(crate) fn print(ui: Ui, head: &[&str], rows: Vec<Vec<String>>, if_empty: &str) {
    match rows.is_empty() {
        true => ui.status(if_empty),
        false => ui.print_line(render(head, rows)),
    }
}

/// Renders a table as separate lines, its last column truncated to the terminal.
pub(crate) fn render_lines(head: &[&str], rows: Vec<Vec<String>>) -> Vec<String> {
    let mut rows = rows;
    for cell in rows.iter_mut().flatten() {
        // Escaping makes a text wider, so it comes before the column widths are computed.
        Printable::escape(cell, console::colors_enabled()).as_str().clone_into(cell);
    }
    if let Some(width) = terminal_width() {
        truncate_last_column(head, &mut rows, width);
    }
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(head.iter().map(|h| console::style(h).bold().to_string()));
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Returns the width of the terminal on stdout in columns; none if stdout is a file or a pipe.
fn terminal_width() -> Option<usize> {
    let term = console::Term::stdout();
    term.is_term().then(|| usize::from(term.size().1))
}

/// Returns the width in columns that the output has: that of the terminal, or 80.
pub(crate) fn output_width() -> usize {
    terminal_width().unwrap_or(80)
}

/// Renders the rows without truncation: as a table if it fits the terminal, else as `first = second` with the
/// last column wrapped below.
pub(crate) fn render_untruncated(head: &[&str; 3], rows: Vec<Vec<String>>) -> String {
    let column_width = |i: usize| rows.iter().map(|r| console::measure_text_width(&r[i])).max().unwrap_or(0);
    match terminal_width() {
        Some(width) if (0..3).map(column_width).sum::<usize>() + 4 > width => {
            let stacked_row = |row: &Vec<String>| {
                let first = console::style(&row[0]).bold();
                let value = if row[1].is_empty() { String::new() } else { format!(" = {}", row[1]) };
                format!("{first}{value}\n{}", wrap_indented(&row[2], width.saturating_sub(5)))
            };
            rows.iter().map(stacked_row).collect::<Vec<_>>().join("\n")
        }
        _ => render(head, rows),
    }
}

/// Wraps a text at blanks into lines shorter than `width` columns, each indented by four blanks.
fn wrap_indented(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if console::measure_text_width(line) + console::measure_text_width(word) < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.into_iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

fn truncate_last_column(head: &[&str], rows: &mut [Vec<String>], width: usize) {
    let last = head.len().saturating_sub(1);
    let used: usize = (0..last)
        .map(|i| {
            let widest = rows.iter().map(|r| console::measure_text_width(&r[i])).max().unwrap_or(0);
            widest.max(head[i].len()) + 2
        })
        .sum();
    let available_width = width.saturating_sub(used).max(12);
    for row in rows {
        row[last] = console::truncate_str(&row[last], available_width, "…").into_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_word_boundaries() {
        assert_eq!(wrap_indented("one two three", 7), "    one two\n    three");
        assert_eq!(wrap_indented("", 7), "    ");
    }

    #[test]
    fn truncates_last_column_only() {
        let mut rows = vec![vec!["long-name".to_owned(), "a title that is too long".to_owned()]];
        truncate_last_column(&["LANE", "TITLE"], &mut rows, 25);
        assert_eq!(rows[0], ["long-name", "a title that …"]);
    }
}
