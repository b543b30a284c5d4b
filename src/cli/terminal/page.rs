//! Output that is held back until its length is known, so that a long result is shown in a pager.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether `--no-pager` was given.
static IS_DISABLED: AtomicBool = AtomicBool::new(false);

/// Held back output in order; none while output is written at once.
static PAGE: Mutex<Option<Page>> = Mutex::new(None);

/// Maximum number of bytes that are held back. A longer result is written at once.
const MAX_HELD_BYTES: usize = 4 << 20;

/// Output that is held back.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Each part in order, with its stream.
    pub(crate) parts: Vec<(Stream, Vec<u8>)>,
    /// Number of bytes of all parts.
    size: usize,
}

/// Standard stream of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output: the result of the command.
    Out,
    /// Standard error: messages.
    Err,
}

/// Turns paging off for this process.
pub(crate) fn disable() {
    IS_DISABLED.store(true, Ordering::Relaxed);
}

/// Holds back all further output of the command, if standard output is a terminal that a pager can use.
pub(crate) fn begin() {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if !IS_DISABLED.load(Ordering::Relaxed) && !is_dumb && std::io::stdout().is_terminal() {
        PAGE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
    }
}

/// What became of a part of the output.
#[derive(Debug)]
pub(crate) enum Held {
    /// It is held back.
    Back,
    /// Output is written at once.
    Not,
    /// It would be too much memory: nothing is held back any longer, and this was before.
    TooMuch(Page),
}

/// Holds back a part of the output, if output is held back.
pub(crate) fn hold(stream: Stream, bytes: &[u8]) -> Held {
    let mut guard = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(page) = guard.as_mut() else { return Held::Not };
    page.size += bytes.len();
    if page.size > MAX_HELD_BYTES {
        return guard.take().map_or(Held::Not, Held::TooMuch);
    }
    match page.parts.last_mut() {
        Some(last) if last.0 == stream => last.1.extend_from_slice(bytes),
        _ => page.parts.push((stream, bytes.to_owned())),
    }
    Held::Back
}

/// Ends the holding back, and returns what was held back.
pub(crate) fn end() -> Option<Page> {
    PAGE.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Page {
    /// Returns all parts of one stream.
    pub(crate) fn text(&self, stream: Stream) -> Vec<u8> {
        self.parts.iter().filter(|part| part.0 == stream).flat_map(|part| part.1.clone()).collect()
    }

    /// Returns whether standard output has more rows than a terminal of this height and width.
    pub(crate) fn is_longer_than(&self, (height, width): (u16, u16)) -> bool {
        let text = self.text(Stream::Out);
        let text = String::from_utf8_lossy(&text);
        let height = usize::from(height);
        let rows = |line| console::measure_text_width(line).div_ceil(usize::from(width).max(1)).max(1);
        text.lines().take(height).map(rows).sum::<usize>() >= height
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_count_as_rows() {
        let parts = vec![(Stream::Out, b"a\nb\n".to_vec()), (Stream::Err, b"c\nd\n".to_vec())];
        let mut page = Page { parts, size: 0 };
        assert!(!page.is_longer_than((3, 80)));
        assert!(page.is_longer_than((2, 80)));
        page.parts.push((Stream::Out, b"0123456789\n".to_vec()));
        assert!(!page.is_longer_than((4, 10)));
        assert!(page.is_longer_than((4, 9)));
    }
}
