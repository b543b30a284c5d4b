//! Splitting of a byte stream into lines, whatever chunks it arrives in and however long a line gets.

use std::io::BufRead;

/// Size limit of a line that is parsed, in bytes. A longer line is in the log only.
pub const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;
/// Buffer capacity, in bytes, above which the buffer is freed after its line.
const MAX_RETAINED_CAPACITY: usize = 64 * 1024;

/// A line without its line break.
#[derive(Clone, Copy)]
pub enum Line<'a> {
    /// All bytes of the line.
    Complete(&'a [u8]),
    /// A line that exceeds the size limit.
    TooLong,
}

/// Splitter of a byte stream into lines; it buffers an incomplete line.
#[derive(Default)]
pub struct LineSplitter {
    /// Bytes of the incomplete line so far.
    partial: Vec<u8>,
    /// Whether the bytes belong to a line that exceeds the size limit, up to its line break.
    is_in_too_long_line: bool,
}

impl LineSplitter {
    /// Takes the next bytes of the stream, and passes each line that they complete to `on_line`.
    pub fn feed(&mut self, bytes: &[u8], mut on_line: impl FnMut(Line<'_>)) {
        let mut remaining = bytes;
        while !remaining.is_empty() {
            let mut cursor = remaining;
            // `skip_until` is fast in any build; reading from memory cannot fail.
            let length = cursor.skip_until(b'\n').unwrap_or(remaining.len());
            let (chunk, next) = remaining.split_at(length);
            remaining = next;
            let (chunk, ends_line) = chunk.strip_suffix(b"\n").map_or((chunk, false), |part| (part, true));
            if self.is_in_too_long_line {
                self.is_in_too_long_line = !ends_line;
            } else if self.partial.len() + chunk.len() > MAX_LINE_BYTES {
                self.partial = Vec::new();
                self.is_in_too_long_line = !ends_line;
                on_line(Line::TooLong);
            } else if !ends_line {
                self.append_partial(chunk);
            } else if self.partial.is_empty() {
                on_line(Line::Complete(chunk));
            } else {
                self.append_partial(chunk);
                self.emit_partial(&mut on_line);
            }
        }
    }

    /// Returns whether the bytes so far end with a line break, or there were none.
    pub fn is_at_line_start(&self) -> bool {
        self.partial.is_empty() && !self.is_in_too_long_line
    }

    /// Ends the stream: passes the last line to `on_line` if it has no line break.
    pub fn finish(&mut self, mut on_line: impl FnMut(Line<'_>)) {
        self.is_in_too_long_line = false;
        if !self.partial.is_empty() {
            self.emit_partial(&mut on_line);
        }
    }

    /// Returns the number of bytes that the buffer takes in memory.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.partial.capacity()
    }

    /// Appends bytes to the incomplete line.
    fn append_partial(&mut self, chunk: &[u8]) {
        let needed = self.partial.len() + chunk.len();
        if needed > self.partial.capacity() {
            let capacity = needed.next_power_of_two().min(MAX_LINE_BYTES);
            self.partial.reserve_exact(capacity - self.partial.len());
        }
        self.partial.extend_from_slice(chunk);
    }

    /// Passes the buffered line to `on_line` and empties the buffer.
    fn emit_partial(&mut self, on_line: &mut impl FnMut(Line<'_>)) {
        on_line(Line::Complete(&self.partial));
        if self.partial.capacity() > MAX_RETAINED_CAPACITY {
            self.partial = Vec::new();
        } else {
            self.partial.clear();
        }
    }
}
