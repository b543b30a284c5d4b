//! Owns painting a list on a terminal while it is made: at once, and again as more is known.
//!
//! It begins only when the list takes long, so that a quick one does not flicker, and leaves nothing: the whole list is printed
//! in its place. What does not fit the screen is not painted, since lines that have left it cannot be taken back. The cursor is
//! always at the begin of the line below, so whatever ends the process leaves a screen that can be gone on with.

use std::io::Write;
use std::time::{Duration, Instant};

use console::Term;

use super::super::ui::Ui;
use crate::harmless::Printable;

/// A list that takes less is printed once.
const LONG: Duration = Duration::from_millis(80);

/// How often it is painted, at most.
const BEAT: Duration = Duration::from_millis(100);

/// What is painted on.
trait Canvas {
    /// Its height and width.
    fn size(&self) -> (usize, usize);
    /// Writes all of it at once.
    fn put(&mut self, text: &str);
}

impl Canvas for Term {
    fn size(&self) -> (usize, usize) {
        let (height, width) = Term::size(self);
        (height.into(), width.into())
    }

    fn put(&mut self, text: &str) {
        drop(self.write_all(text.as_bytes()).and_then(|()| self.flush()));
    }
}

/// A list that is being painted.
pub(super) struct Paint {
    on: Box<dyn Canvas>,
    /// When it is painted next.
    due: Instant,
    /// How wide each line is that was painted.
    painted: Vec<usize>,
}

impl Paint {
    /// On the terminal of this process, if that is wanted and it can move its cursor.
    pub(super) fn on_terminal(ui: Ui) -> Option<Paint> {
        let term = Term::stdout();
        let able = std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
        (term.is_term() && able && !ui.json && !ui.quiet).then(|| Paint::new(Box::new(term)))
    }

    fn new(on: Box<dyn Canvas>) -> Paint {
        Paint { on, due: Instant::now() + LONG, painted: Vec::new() }
    }

    /// Tells that more may be known: if it is time, the lines that `make` makes are painted.
    pub(super) fn tell(&mut self, make: impl FnOnce() -> Vec<String>) {
        if Instant::now() >= self.due {
            self.paint(&make());
            self.due = Instant::now() + BEAT;
        }
    }

    fn paint(&mut self, lines: &[String]) {
        let (height, width) = self.on.size();
        // The last column would make some terminals begin a new line, and the last line is the cursor's.
        let (rows, columns) = (height.saturating_sub(1), width.saturating_sub(1));
        if rows < 3 || columns < 20 {
            return self.erase();
        }
        let shown = if lines.len() > rows { rows - 1 } else { lines.len() };
        let more = (shown < lines.len()).then(|| format!("… and {} more", lines.len() - shown));
        let mut out = self.back(width);
        self.painted.clear();
        for line in lines[..shown].iter().chain(more.as_ref()) {
            let line = Printable::of(line, true);
            let line = console::truncate_str(line.as_str(), columns, "…");
            self.painted.push(console::measure_text_width(&line));
            // The rest of a line goes, and no line is empty for a moment.
            out.push_str(&format!("{line}\x1b[K\n"));
        }
        out.push_str("\x1b[J");
        self.on.put(&out);
    }

    /// What brings the cursor back to where it began. A terminal that got narrower since then has broken the lines.
    fn back(&self, width: usize) -> String {
        let up = self.rows(width);
        if up == 0 { String::new() } else { format!("\r\x1b[{up}A") }
    }

    /// How many lines of the screen the painted ones take.
    fn rows(&self, width: usize) -> usize {
        self.painted.iter().map(|line| line.div_ceil(width.max(1)).max(1)).sum()
    }

    fn erase(&mut self) {
        if !self.painted.is_empty() {
            let width = self.on.size().1;
            // Line by line: some terminals keep what is cleared as a whole among what was scrolled away.
            let (back, lines) = (self.back(width), "\x1b[K\n".repeat(self.rows(width)));
            self.on.put(&format!("{back}{lines}{back}"));
            self.painted.clear();
        }
    }
}

impl Drop for Paint {
    fn drop(&mut self) {
        self.erase();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// A terminal that only knows what is painted with: text, a new line, the begin of the line, up, and clearing to the end of
    /// the line and of the screen.
    #[derive(Default)]
    struct Screen {
        size: (usize, usize),
        lines: Vec<String>,
        at: (usize, usize),
    }

    impl Screen {
        fn read(&mut self, text: &str) {
            let mut chars = text.chars();
            while let Some(c) = chars.next() {
                self.lines.resize(self.lines.len().max(self.at.0 + 1), String::new());
                let (row, column) = self.at;
                match c {
                    '\n' => self.at = (row + 1, 0),
                    '\r' => self.at.1 = 0,
                    '\x1b' => {
                        let code: String = chars.by_ref().skip(1).take_while(char::is_ascii_digit).collect();
                        // The letter went with the digits.
                        match code.parse::<usize>() {
                            Ok(up) => self.at.0 -= up,
                            Err(_) => self.clear(),
                        }
                    }
                    c => {
                        let mut line: Vec<char> = self.lines[row].chars().collect();
                        line.resize(line.len().max(column + 1), ' ');
                        line[column] = c;
                        self.lines[row] = line.into_iter().collect();
                        self.at.1 += 1;
                        assert!(self.at.1 < self.size.1, "no line reaches the edge");
                    }
                }
                assert!(self.at.0 < self.size.0, "nothing scrolls");
            }
        }

        /// Clears to the end of the line; at the begin of a line that is not written to, to the end of the screen.
        fn clear(&mut self) {
            let (row, column) = self.at;
            self.lines[row] = self.lines[row].chars().take(column).collect();
            if column == 0 {
                self.lines.truncate(row);
            }
        }
    }

    #[derive(Clone, Default)]
    struct Shared(Rc<RefCell<Screen>>);

    impl Canvas for Shared {
        fn size(&self) -> (usize, usize) {
            self.0.borrow().size
        }

        fn put(&mut self, text: &str) {
            self.0.borrow_mut().read(text);
        }
    }

    fn on(height: usize, width: usize) -> (Shared, Paint) {
        let shared = Shared::default();
        shared.0.borrow_mut().size = (height, width);
        (shared.clone(), Paint::new(Box::new(shared)))
    }

    fn text(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn each_picture_takes_the_place_of_the_one_before() {
        let (screen, mut paint) = on(10, 40);
        paint.paint(&text(&["LANE  CHANGES", "a     …", "b     …"]));
        assert_eq!(screen.0.borrow().lines, ["LANE  CHANGES", "a     …", "b     …"]);
        paint.paint(&text(&["LANE  CHANGES", "a     -", "b     2 files"]));
        assert_eq!(screen.0.borrow().lines, ["LANE  CHANGES", "a     -", "b     2 files"]);
        paint.paint(&text(&["LANE", "a"]));
        assert_eq!(screen.0.borrow().lines, ["LANE", "a"]);
        drop(paint);
        assert!(screen.0.borrow().lines.iter().all(String::is_empty));
        assert_eq!(screen.0.borrow().at, (0, 0));
    }

    #[test]
    fn only_what_fits_the_screen_is_painted() {
        let (screen, mut paint) = on(5, 24);
        paint.paint(&text(&["LANE", "a", "b", "c", "d is far too long for that"]));
        assert_eq!(screen.0.borrow().lines, ["LANE", "a", "b", "… and 2 more"]);
        paint.paint(&text(&["LANE", "a is far too long for this screen"]));
        assert_eq!(screen.0.borrow().lines, ["LANE", "a is far too long for …"]);
        screen.0.borrow_mut().size = (2, 24);
        screen.0.borrow_mut().at.0 = 1;
        screen.0.borrow_mut().lines = text(&["x"]);
        paint.painted = vec![1];
        paint.paint(&text(&["LANE", "a"]));
        let lines = &screen.0.borrow().lines;
        assert!(lines.iter().all(String::is_empty), "a screen that is too small stays empty");
    }

    #[test]
    fn lines_that_a_narrower_terminal_broke_are_taken_back() {
        let (screen, mut paint) = on(20, 60);
        paint.paint(&text(&[&"x".repeat(50), "y"]));
        // What was one line are three now.
        screen.0.borrow_mut().size.1 = 24;
        screen.0.borrow_mut().lines = text(&["x", "x", "x", "y"]);
        screen.0.borrow_mut().at = (4, 0);
        paint.paint(&text(&["z"]));
        assert_eq!(screen.0.borrow().lines, ["z"]);
    }

    #[test]
    fn nothing_is_painted_before_it_takes_long() {
        let (screen, mut paint) = on(10, 40);
        paint.tell(|| unreachable!());
        assert!(screen.0.borrow().lines.is_empty());
        paint.due = Instant::now();
        paint.tell(|| text(&["now"]));
        paint.tell(|| unreachable!());
        assert_eq!(screen.0.borrow().lines, ["now"]);
    }
}
