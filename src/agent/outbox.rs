//! Owns what is on its way to an agent, which may be slow to read it.

use std::collections::VecDeque;

use serde_json::Value;

/// How many answers may wait. An agent that asks for more without reading any has to wait too.
const MOST_ANSWERS: usize = 256;

/// What is to be written to an agent's standard input.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    lines: VecDeque<Vec<u8>>,
    /// How much of the first one is written.
    written: usize,
}

impl Outbox {
    /// Adds a message.
    pub(super) fn put(&mut self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.lines.push_back(line);
    }

    /// What is to be written next.
    pub(super) fn next(&self) -> Option<&[u8]> {
        self.lines.front().and_then(|line| line.get(self.written..))
    }

    /// So much of that is written.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.lines.front().is_some_and(|line| line.len() <= self.written) {
            self.lines.pop_front();
            self.written = 0;
        }
    }

    /// Whether so much waits that nothing more of the agent's should be read. A long prompt alone is not that: an agent may
    /// write before it reads all of one.
    pub(super) fn is_full(&self) -> bool {
        self.lines.len() > MOST_ANSWERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_one_after_the_other_in_any_pieces() {
        let mut outbox = Outbox::default();
        outbox.put(&"one\n".into());
        outbox.put(&2.into());
        let mut out = Vec::new();
        while let Some(next) = outbox.next() {
            let part = &next[..next.len().min(3)];
            out.extend_from_slice(part);
            let length = part.len();
            outbox.wrote(length);
        }
        assert_eq!(String::from_utf8(out).unwrap(), "\"one\\n\"\n2\n");
        (0..=MOST_ANSWERS).for_each(|n| outbox.put(&n.into()));
        assert!(outbox.is_full());
    }
}
