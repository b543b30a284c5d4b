//! Owns plain tables: columns, no lines, cut to the width of the terminal.

use comfy_table::{ContentArrangement, Table, presets};

use crate::harmless::Printable;

/// A table whose last column is cut so that every row fits the terminal.
pub(super) fn render(head: &[&str], rows: Vec<Vec<String>>) -> String {
    lines(head, rows).join("\n")
}

/// Its lines.
pub(super) fn lines(head: &[&str], rows: Vec<Vec<String>>) -> Vec<String> {
    let mut rows = rows;
    for cell in rows.iter_mut().flatten() {
        // What is written out is wider, and the columns have to know that.
        Printable::of(cell, console::colors_enabled()).as_str().clone_into(cell);
    }
    if let Some(width) = terminal_width() {
        cut_last(head, &mut rows, width);
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

/// The width of the terminal that stdout is; none when it is a file or a pipe.
pub(super) fn terminal_width() -> Option<usize> {
    let term = console::Term::stdout();
    term.is_term().then(|| usize::from(term.size().1))
}

/// The rows of a table, whole: as one where that fits the terminal, else as `first = second` with the last column below it.
pub(super) fn render_whole(head: &[&str; 3], rows: Vec<Vec<String>>) -> String {
    let widest = |i: usize| rows.iter().map(|r| console::measure_text_width(&r[i])).max().unwrap_or(0);
    match terminal_width() {
        Some(width) if (0..3).map(widest).sum::<usize>() + 4 > width => {
            let below = |row: &Vec<String>| {
                let first = console::style(&row[0]).bold();
                let value = if row[1].is_empty() { String::new() } else { format!(" = {}", row[1]) };
                format!("{first}{value}\n{}", wrapped(&row[2], width.saturating_sub(5)))
            };
            rows.iter().map(below).collect::<Vec<_>>().join("\n")
        }
        _ => render(head, rows),
    }
}

/// A text in lines of that width, each set in a little.
fn wrapped(text: &str, width: usize) -> String {
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

fn cut_last(head: &[&str], rows: &mut [Vec<String>], width: usize) {
    let last = head.len().saturating_sub(1);
    let used: usize = (0..last)
        .map(|i| {
            let widest = rows.iter().map(|r| console::measure_text_width(&r[i])).max().unwrap_or(0);
            widest.max(head[i].len()) + 2
        })
        .sum();
    let left = width.saturating_sub(used).max(12);
    for row in rows {
        row[last] = console::truncate_str(&row[last], left, "…").into_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_where_a_text_is_wrapped() {
        assert_eq!(wrapped("one two three", 7), "    one two\n    three");
        assert_eq!(wrapped("", 7), "    ");
    }

    #[test]
    fn only_the_last_column_is_cut() {
        let mut rows = vec![vec!["long-name".to_owned(), "a title that is too long".to_owned()]];
        cut_last(&["LANE", "TITLE"], &mut rows, 25);
        assert_eq!(rows[0], ["long-name", "a title that …"]);
    }
}
