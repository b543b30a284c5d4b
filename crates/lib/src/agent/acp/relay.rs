//! Relay from an agent's output to the run's log: each line is logged unchanged, and complete lines are
//! returned to the client. The client's log entries are written between the agent's lines. A line of any
//! length takes bounded memory.

use std::io::Write;

use proq_stream::base::client_line::{CLIENT_LINE_PREFIX, ClientLine};
use proq_stream::base::lines::MAX_LINE_BYTES;

/// A line of the agent that is in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RelayedLine {
    /// The complete line, with its line break.
    Complete(Vec<u8>),
    /// A line that was too long to be held in memory.
    TooLong,
}

/// Copies an agent's output to a log.
pub(super) struct OutputRelay<W> {
    log: W,
    /// Bytes of the agent's output that were received; the first `logged_len` of them are in the log.
    received: Vec<u8>,
    /// Number of bytes at the start of `received` that are in the log.
    logged_len: usize,
    /// Number of bytes after the logged ones that are known to hold no line break.
    searched_len: usize,
    /// Whether the log ends inside a line that is too long to be held.
    is_in_long_line: bool,
    /// Entries of the client to write after the current long line.
    queued_entries: Vec<u8>,
    /// Whether the log may end in a part of a line whose rest could not be written.
    has_torn_line: bool,
}

impl<W: Write> OutputRelay<W> {
    /// Creates a relay that writes to `log`.
    pub(super) fn new(log: W) -> OutputRelay<W> {
        OutputRelay {
            log,
            received: Vec::new(),
            logged_len: 0,
            searched_len: 0,
            is_in_long_line: false,
            queued_entries: Vec::new(),
            has_torn_line: false,
        }
    }

    /// Adds bytes of the agent's output, split at any position. Call `next_line` afterwards until it returns
    /// none.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.received.drain(..self.logged_len);
        self.logged_len = 0;
        self.received.extend_from_slice(bytes);
    }

    /// Logs the next line and returns it; none when no line is complete.
    pub(super) fn next_line(&mut self) -> Option<RelayedLine> {
        let unsearched = self.received.get(self.logged_len + self.searched_len..).unwrap_or_default();
        let end = unsearched
            .iter()
            .position(|byte| *byte == b'\n')
            .map(|offset| self.logged_len + self.searched_len + offset + 1);
        match end {
            Some(end) => Some(self.take_line(end)),
            None if self.is_in_long_line || self.received.len() - self.logged_len > MAX_LINE_BYTES => {
                let chunk = self.received.split_off(self.logged_len);
                self.release_buffer();
                self.log_partial_line(chunk);
                None
            }
            None => {
                self.searched_len = self.received.len() - self.logged_len;
                None
            }
        }
    }

    /// Logs and returns the agent's last line if it has no line break. Call it at the end of the output.
    pub(super) fn finish_last_line(&mut self) -> Option<RelayedLine> {
        if self.logged_len == self.received.len() && !self.is_in_long_line {
            return None;
        }
        self.feed(b"\n");
        self.next_line()
    }

    /// Writes an entry of the client as soon as the log is not inside a line of the agent.
    pub(super) fn write_entry(&mut self, entry: &ClientLine) {
        let line = entry.to_line();
        if self.is_in_long_line {
            self.queued_entries.extend_from_slice(line.as_bytes());
        } else {
            self.write_log(line.as_bytes());
        }
    }

    /// Removes the bytes up to `end`, the end of a line, from the buffer, logs them, and returns the line.
    fn take_line(&mut self, end: usize) -> RelayedLine {
        let line = self.received.get(self.logged_len..end).unwrap_or_default().to_vec();
        (self.logged_len, self.searched_len) = (end, 0);
        if self.logged_len == self.received.len() {
            self.release_buffer();
        }
        if self.is_in_long_line {
            self.is_in_long_line = false;
            self.write_log(&line);
            let entries = std::mem::take(&mut self.queued_entries);
            self.write_log(&entries);
            return RelayedLine::TooLong;
        }
        self.write_log(&escape_client_prefix(line.clone()));
        RelayedLine::Complete(line)
    }

    /// Logs a part of a line that is too long.
    fn log_partial_line(&mut self, chunk: Vec<u8>) {
        let escaped_chunk = if self.is_in_long_line { chunk } else { escape_client_prefix(chunk) };
        self.is_in_long_line = true;
        self.write_log(&escaped_chunk);
    }

    /// Frees the buffer, all of whose bytes are in the log.
    fn release_buffer(&mut self) {
        (self.received, self.logged_len, self.searched_len) = (Vec::new(), 0, 0);
    }

    /// Writes bytes to the log. Bytes that cannot be written are missing in the log: a full disk is no reason
    /// to leave the agent waiting.
    fn write_log(&mut self, bytes: &[u8]) {
        if self.has_torn_line && self.log.write_all(b"\n").is_err() {
            return;
        }
        self.has_torn_line = self.log.write_all(bytes).and_then(|()| self.log.flush()).is_err();
    }

    /// Returns the number of bytes that the relay holds in memory.
    #[cfg(test)]
    pub(super) fn memory_use(&self) -> usize {
        self.received.capacity() + self.queued_entries.capacity()
    }

    /// Returns the log.
    #[cfg(test)]
    pub(super) fn log(&self) -> &W {
        &self.log
    }
}

/// Returns a line of the agent as it is logged. A line that looks like an entry of the client gets a leading
/// space, which changes nothing for a JSON reader. A line that already has such spaces gets one more, so that
/// they can be removed again.
fn escape_client_prefix(mut line: Vec<u8>) -> Vec<u8> {
    let spaces = line.iter().take_while(|byte| **byte == b' ').count();
    if line.get(spaces..).is_some_and(|text| text.starts_with(CLIENT_LINE_PREFIX)) {
        line.insert(0, b' ');
    }
    line
}
