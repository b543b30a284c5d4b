//! Owns the way of an agent's lines: each goes into the run's log as it is, and whole ones are handed over. What the client has
//! to say goes between them. A line of any length takes a bounded room.

use std::io::Write;

use crate::agent::stream::{LONGEST_LINE, OURS, Said};

/// A line of the agent's, which is in the log by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// One that was too long to be looked at.
    TooLong,
}

/// From an agent's output to a log.
pub(super) struct Relay<W> {
    log: W,
    /// What has come and is not in the log, from `from` on.
    held: Vec<u8>,
    from: usize,
    /// How much of it is known to have no line's end.
    searched: usize,
    /// Whether the log is in the middle of a line that is too long to be held.
    long: bool,
    /// What is to be said after that.
    unsaid: Vec<u8>,
    /// Whether the log may end in a piece of a line that could not be written.
    torn: bool,
}

impl<W: Write> Relay<W> {
    /// Writes to `log`.
    pub(super) fn to(log: W) -> Relay<W> {
        Relay { log, held: Vec::new(), from: 0, searched: 0, long: false, unsaid: Vec::new(), torn: false }
    }

    /// Takes what the agent wrote, cut anywhere. `next` is to be called then until there is nothing.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.held.drain(..self.from);
        self.from = 0;
        self.held.extend_from_slice(bytes);
    }

    /// The next line.
    pub(super) fn next(&mut self) -> Option<Line> {
        let ahead = self.held.get(self.from + self.searched..).unwrap_or_default();
        let end = ahead.iter().position(|byte| *byte == b'\n').map(|at| self.from + self.searched + at + 1);
        match end {
            Some(end) => Some(self.take(end)),
            None if self.long || self.held.len() - self.from > LONGEST_LINE => {
                let part = self.held.split_off(self.from);
                self.give_back();
                self.begin(part);
                None
            }
            None => {
                self.searched = self.held.len() - self.from;
                None
            }
        }
    }

    /// The end of the agent's output: its last line, if that had no end.
    pub(super) fn finish(&mut self) -> Option<Line> {
        if self.from == self.held.len() && !self.long {
            return None;
        }
        self.feed(b"\n");
        self.next()
    }

    /// Writes what the client has to say, as soon as no line of the agent's is in the way.
    pub(super) fn say(&mut self, said: &Said) {
        let line = said.line();
        if self.long {
            self.unsaid.extend_from_slice(line.as_bytes());
        } else {
            self.put(line.as_bytes());
        }
    }

    /// Logs what is held up to `end`, which is a line's.
    fn take(&mut self, end: usize) -> Line {
        let line = self.held.get(self.from..end).unwrap_or_default().to_vec();
        (self.from, self.searched) = (end, 0);
        if self.from == self.held.len() {
            self.give_back();
        }
        if self.long {
            self.long = false;
            self.put(&line);
            let unsaid = std::mem::take(&mut self.unsaid);
            self.put(&unsaid);
            return Line::TooLong;
        }
        self.put(&escaped(line.clone()));
        Line::Whole(line)
    }

    /// Logs a part of a line that is too long.
    fn begin(&mut self, part: Vec<u8>) {
        let part = if self.long { part } else { escaped(part) };
        self.long = true;
        self.put(&part);
    }

    fn give_back(&mut self) {
        (self.held, self.from, self.searched) = (Vec::new(), 0, 0);
    }

    /// A disk that is full is no reason to leave the agent waiting: what cannot be written is missing in the log.
    fn put(&mut self, bytes: &[u8]) {
        if self.torn && self.log.write_all(b"\n").is_err() {
            return;
        }
        self.torn = self.log.write_all(bytes).and_then(|()| self.log.flush()).is_err();
    }

    /// How many bytes it takes in memory.
    #[cfg(test)]
    pub(super) fn weight(&self) -> usize {
        self.held.capacity() + self.unsaid.capacity()
    }

    /// The log.
    #[cfg(test)]
    pub(super) fn log(&self) -> &W {
        &self.log
    }
}

/// A line of the agent's as it stands in the log: one that would pass for the client's gets a space, which changes nothing for
/// whoever reads it as JSON. One that has such spaces already gets one more, so that they can be taken away again.
fn escaped(mut line: Vec<u8>) -> Vec<u8> {
    let spaces = line.iter().take_while(|byte| **byte == b' ').count();
    if line.get(spaces..).is_some_and(|rest| rest.starts_with(OURS)) {
        line.insert(0, b' ');
    }
    line
}
