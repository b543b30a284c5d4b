//! Owns reading through what a run wrote, for what is found out at its end.

use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::agent::stream::{Line, Lines};

/// Hands over the lines of a run's log, until `each` has had enough and says so. One that is too long to be held is left out.
pub(super) fn each_line(log: &Path, mut each: impl FnMut(&[u8]) -> bool) {
    let Ok(file) = crate::regular_file::open_record(log) else { return };
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut lines = Lines::default();
    let mut more = true;
    let mut one = |line: Line<'_>| {
        if let (true, Line::Whole(line)) = (more, line) {
            more = each(line);
        }
        more
    };
    loop {
        let part = match reader.fill_buf() {
            Ok(part) if !part.is_empty() => part,
            _ => break,
        };
        let mut go_on = true;
        lines.feed(part, |line| go_on = one(line));
        if !go_on {
            return;
        }
        let count = part.len();
        reader.consume(count);
    }
    lines.finish(|line| {
        one(line);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_handed_over_until_it_is_enough() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        std::fs::write(&log, format!("one\n{}\nlast", "x".repeat(9 * 1024 * 1024))).unwrap();
        let mut seen = Vec::new();
        each_line(&log, |line| {
            seen.push(line.to_vec());
            true
        });
        assert_eq!(seen, [&b"one"[..], b"last"]);
        let mut count = 0;
        each_line(&log, |_| {
            count += 1;
            false
        });
        assert_eq!(count, 1);
    }
}
