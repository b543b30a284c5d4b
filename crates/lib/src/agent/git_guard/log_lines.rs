//! Line reader for the log of a run, used after the run has finished.

use std::io::{BufRead, BufReader};
use std::path::Path;

use proq_stream::base::lines::{Line, LineSplitter};

/// Passes the lines of a run's log to `on_line` until it returns false. Lines that are too long to buffer are
/// skipped.
pub(super) fn for_each_line(log: &Path, mut on_line: impl FnMut(&[u8]) -> bool) {
    let Ok(file) = proq_base::regular_file::open_store_file(log) else { return };
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut lines = LineSplitter::default();
    let mut wants_more = true;
    let mut deliver = |line: Line<'_>| {
        if let (true, Line::Complete(line)) = (wants_more, line) {
            wants_more = on_line(line);
        }
        wants_more
    };
    loop {
        let chunk = match reader.fill_buf() {
            Ok(chunk) if !chunk.is_empty() => chunk,
            _ => break,
        };
        let mut should_continue = true;
        lines.feed(chunk, |line| should_continue = deliver(line));
        if !should_continue {
            return;
        }
        let count = chunk.len();
        reader.consume(count);
    }
    lines.finish(|line| {
        deliver(line);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_lines_until_callback_stops() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        std::fs::write(&log, format!("one\n{}\nlast", "x".repeat(9 * 1024 * 1024))).unwrap();
        let mut received = Vec::new();
        for_each_line(&log, |line| {
            received.push(line.to_vec());
            true
        });
        assert_eq!(received, [&b"one"[..], b"last"]);
        let mut count = 0;
        for_each_line(&log, |_| {
            count += 1;
            false
        });
        assert_eq!(count, 1);
    }
}
