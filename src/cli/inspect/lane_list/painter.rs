//! Live painting of a list on a terminal: first with the data known at once, then again as more becomes
//! known.
//!
//! Painting starts only after a delay, so that a quick list does not flicker. It leaves nothing on the
//! screen: the complete list is printed in its place. Lines that do not fit the screen are not painted, since
//! lines that have scrolled away cannot be erased. The cursor is always at the start of the line below, so an
//! exit at any time leaves a usable screen.

use std::io::Write;
use std::time::{Duration, Instant};

use console::Term;
use proq_base::terminal_text::Printable;

use crate::cli::terminal::ui::Ui;

/// Delay before the first paint. A faster list is printed only once.
const FIRST_PAINT_DELAY: Duration = Duration::from_millis(80);

/// Minimum interval between two paints.
const PAINT_INTERVAL: Duration = Duration::from_millis(100);

/// A terminal, or a substitute in tests, that a list is painted on.
trait Canvas {
    /// Returns the height and the width in characters, in this order.
    fn height_and_width(&self) -> (usize, usize);
    /// Writes `text` in one write and flushes it.
    fn write_text(&mut self, text: &str);
}

impl Canvas for Term {
    fn height_and_width(&self) -> (usize, usize) {
        let (height, width) = Term::size(self);
        (height.into(), width.into())
    }

    fn write_text(&mut self, text: &str) {
        drop(self.write_all(text.as_bytes()).and_then(|()| self.flush()));
    }
}

/// Painter of a list that is still loading. The painted lines are erased on drop.
pub(crate) struct ListPainter {
    canvas: Box<dyn Canvas>,
    /// The earliest time of the next paint.
    next_paint: Instant,
    /// The width of each painted line.
    painted_widths: Vec<usize>,
}

impl ListPainter {
    /// Creates a painter for the terminal of this process; `None` if the output is JSON or quiet, or if the
    /// terminal cannot move its cursor.
    pub(crate) fn for_terminal(ui: Ui) -> Option<ListPainter> {
        let term = Term::stdout();
        let can_move_cursor = std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
        (term.is_term() && can_move_cursor && !ui.json && !ui.quiet).then(|| ListPainter::new(Box::new(term)))
    }

    fn new(canvas: Box<dyn Canvas>) -> ListPainter {
        ListPainter { canvas, next_paint: Instant::now() + FIRST_PAINT_DELAY, painted_widths: Vec::new() }
    }

    /// Paints the lines that `render_lines` returns, if the next paint is due.
    pub(crate) fn paint_if_due(&mut self, render_lines: impl FnOnce() -> Vec<String>) {
        if Instant::now() >= self.next_paint {
            self.paint(&render_lines());
            self.next_paint = Instant::now() + PAINT_INTERVAL;
        }
    }

    /// Paints lines in the place of those painted before.
    pub(crate) fn paint(&mut self, lines: &[String]) {
        let (height, width) = self.canvas.height_and_width();
        // A character in the last column makes some terminals start a new line. The last line is reserved for
        // the cursor.
        let (rows, columns) = (height.saturating_sub(1), width.saturating_sub(1));
        if rows < 3 || columns < 20 {
            return self.erase();
        }
        let shown_count = if lines.len() > rows { rows - 1 } else { lines.len() };
        let more = (shown_count < lines.len()).then(|| format!("… and {} more", lines.len() - shown_count));
        let mut out = self.cursor_up_sequence(width);
        self.painted_widths.clear();
        for line in lines[..shown_count].iter().chain(more.as_ref()) {
            let line = Printable::escape(line, true);
            let line = console::truncate_str(line.as_str(), columns, "…");
            self.painted_widths.push(console::measure_text_width(&line));
            // Clearing only the rest of each line avoids a moment in which lines are empty.
            out.push_str(&format!("{line}\x1b[K\n"));
        }
        out.push_str("\x1b[J");
        self.canvas.write_text(&out);
    }

    /// Returns the escape sequence that moves the cursor back to the first painted line. A terminal that
    /// became narrower has wrapped the lines, so `width` is its current width.
    fn cursor_up_sequence(&self, width: usize) -> String {
        let up = self.painted_rows(width);
        if up == 0 { String::new() } else { format!("\r\x1b[{up}A") }
    }

    /// Returns how many rows of the screen the painted lines take.
    fn painted_rows(&self, width: usize) -> usize {
        self.painted_widths.iter().map(|line| line.div_ceil(width.max(1)).max(1)).sum()
    }

    /// Erases the painted lines.
    fn erase(&mut self) {
        if !self.painted_widths.is_empty() {
            let width = self.canvas.height_and_width().1;
            // Lines are cleared one by one, because some terminals move a screen that is cleared at once into
            // their scrollback.
            let (cursor_up, lines) =
                (self.cursor_up_sequence(width), "\x1b[K\n".repeat(self.painted_rows(width)));
            self.canvas.write_text(&format!("{cursor_up}{lines}{cursor_up}"));
            self.painted_widths.clear();
        }
    }
}

impl Drop for ListPainter {
    fn drop(&mut self) {
        self.erase();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// A terminal that supports only what the painter uses: text, line feed, carriage return, cursor up, and
    /// clearing to the end of the line and of the screen.
    #[derive(Default)]
    struct Screen {
        size: (usize, usize),
        lines: Vec<String>,
        cursor: (usize, usize),
    }

    impl Screen {
        fn apply(&mut self, text: &str) {
            let mut chars = text.chars();
            while let Some(c) = chars.next() {
                self.lines.resize(self.lines.len().max(self.cursor.0 + 1), String::new());
                let (row, column) = self.cursor;
                match c {
                    '\n' => self.cursor = (row + 1, 0),
                    '\r' => self.cursor.1 = 0,
                    '\x1b' => {
                        let code: String = chars.by_ref().skip(1).take_while(char::is_ascii_digit).collect();
                        // `take_while` has consumed the final letter together with the digits.
                        match code.parse::<usize>() {
                            Ok(up) => self.cursor.0 -= up,
                            Err(_) => self.clear(),
                        }
                    }
                    c => {
                        let mut line: Vec<char> = self.lines[row].chars().collect();
                        line.resize(line.len().max(column + 1), ' ');
                        line[column] = c;
                        self.lines[row] = line.into_iter().collect();
                        self.cursor.1 += 1;
                        assert!(self.cursor.1 < self.size.1, "no line reaches the edge");
                    }
                }
                assert!(self.cursor.0 < self.size.0, "nothing scrolls");
            }
        }

        /// Clears to the end of the line. At the start of a line, clears to the end of the screen.
        fn clear(&mut self) {
            let (row, column) = self.cursor;
            self.lines[row] = self.lines[row].chars().take(column).collect();
            if column == 0 {
                self.lines.truncate(row);
            }
        }
    }

    #[derive(Clone, Default)]
    struct SharedScreen(Rc<RefCell<Screen>>);

    impl Canvas for SharedScreen {
        fn height_and_width(&self) -> (usize, usize) {
            self.0.borrow().size
        }

        fn write_text(&mut self, text: &str) {
            self.0.borrow_mut().apply(text);
        }
    }

    fn painter_on(height: usize, width: usize) -> (SharedScreen, ListPainter) {
        let shared = SharedScreen::default();
        shared.0.borrow_mut().size = (height, width);
        (shared.clone(), ListPainter::new(Box::new(shared)))
    }

    fn to_lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn repaint_replaces_previous_lines() {
        let (screen, mut paint) = painter_on(10, 40);
        paint.paint(&to_lines(&["LANE  CHANGES", "a     …", "b     …"]));
        assert_eq!(screen.0.borrow().lines, ["LANE  CHANGES", "a     …", "b     …"]);
        paint.paint(&to_lines(&["LANE  CHANGES", "a     -", "b     2 files"]));
        assert_eq!(screen.0.borrow().lines, ["LANE  CHANGES", "a     -", "b     2 files"]);
        paint.paint(&to_lines(&["LANE", "a"]));
        assert_eq!(screen.0.borrow().lines, ["LANE", "a"]);
        drop(paint);
        assert!(screen.0.borrow().lines.iter().all(String::is_empty));
        assert_eq!(screen.0.borrow().cursor, (0, 0));
    }

    #[test]
    fn paints_only_what_fits_the_screen() {
        let (screen, mut paint) = painter_on(5, 24);
        paint.paint(&to_lines(&["LANE", "a", "b", "c", "d is far too long for that"]));
        assert_eq!(screen.0.borrow().lines, ["LANE", "a", "b", "… and 2 more"]);
        paint.paint(&to_lines(&["LANE", "a is far too long for this screen"]));
        assert_eq!(screen.0.borrow().lines, ["LANE", "a is far too long for …"]);
        screen.0.borrow_mut().size = (2, 24);
        screen.0.borrow_mut().cursor.0 = 1;
        screen.0.borrow_mut().lines = to_lines(&["x"]);
        paint.painted_widths = vec![1];
        paint.paint(&to_lines(&["LANE", "a"]));
        let lines = &screen.0.borrow().lines;
        assert!(lines.iter().all(String::is_empty), "a screen that is too small stays empty");
    }

    #[test]
    fn erases_lines_wrapped_by_a_narrower_terminal() {
        let (screen, mut paint) = painter_on(20, 60);
        paint.paint(&to_lines(&[&"x".repeat(50), "y"]));
        // The terminal has wrapped the first line into three.
        screen.0.borrow_mut().size.1 = 24;
        screen.0.borrow_mut().lines = to_lines(&["x", "x", "x", "y"]);
        screen.0.borrow_mut().cursor = (4, 0);
        paint.paint(&to_lines(&["z"]));
        assert_eq!(screen.0.borrow().lines, ["z"]);
    }

    #[test]
    fn paints_nothing_before_the_first_delay() {
        let (screen, mut paint) = painter_on(10, 40);
        paint.paint_if_due(|| unreachable!());
        assert!(screen.0.borrow().lines.is_empty());
        paint.next_paint = Instant::now();
        paint.paint_if_due(|| to_lines(&["now"]));
        paint.paint_if_due(|| unreachable!());
        assert_eq!(screen.0.borrow().lines, ["now"]);
    }
}
