//! Queue of messages to an agent, which may be slow to read them.

use std::collections::VecDeque;

use serde_json::Value;

/// Number of queued messages above which nothing more is read from the agent. An agent that sends requests
/// without reading replies has to wait.
const MAX_QUEUED_MESSAGES: usize = 256;

/// Queue of lines for an agent's standard input.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    lines: VecDeque<Vec<u8>>,
    /// Number of bytes of the first line that are written.
    written_of_first_line: usize,
}

impl Outbox {
    /// Appends a message.
    pub fn push(&mut self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.lines.push_back(line);
    }

    /// Returns the bytes to write next: the unwritten part of the first line.
    pub(crate) fn next_bytes(&self) -> Option<&[u8]> {
        self.lines.front().and_then(|line| line.get(self.written_of_first_line..))
    }

    /// Removes written bytes from the queue.
    pub fn consume(&mut self, bytes: usize) {
        self.written_of_first_line += bytes;
        if self.lines.front().is_some_and(|line| line.len() <= self.written_of_first_line) {
            self.lines.pop_front();
            self.written_of_first_line = 0;
        }
    }

    /// Returns whether so many messages wait that nothing more should be read from the agent. A long prompt
    /// alone does not count: an agent may write before it has read all of it.
    pub fn is_full(&self) -> bool {
        self.lines.len() > MAX_QUEUED_MESSAGES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_lines_in_order_in_chunks_of_any_size() {
        let mut outbox = Outbox::default();
        outbox.push(&"one\n".into());
        outbox.push(&2.into());
        let mut out = Vec::new();
        while let Some(bytes) = outbox.next_bytes() {
            let chunk = &bytes[..bytes.len().min(3)];
            out.extend_from_slice(chunk);
            let length = chunk.len();
            outbox.consume(length);
        }
        assert_eq!(String::from_utf8(out).unwrap(), "\"one\\n\"\n2\n");
        (0..=MAX_QUEUED_MESSAGES).for_each(|n| outbox.push(&n.into()));
        assert!(outbox.is_full());
    }
}
