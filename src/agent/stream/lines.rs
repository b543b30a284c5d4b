//! Owns taking bytes apart into lines, whatever pieces they come in and however long a line gets.

use std::io::BufRead;

/// The longest line that is looked at. What is longer is in the log only.
pub(crate) const LONGEST_LINE: usize = 8 * 1024 * 1024;
/// Above this the room for a line is given back after it.
const USUAL_LINE: usize = 64 * 1024;

/// A line without its end.
#[derive(Clone, Copy)]
pub(crate) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// One that is too long to be held.
    TooLong,
}

/// What has come of a line so far.
#[derive(Default)]
pub(crate) struct Lines {
    held: Vec<u8>,
    skipping: bool,
}

impl Lines {
    /// Takes the next bytes, and hands over each line that ends in them.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut ahead = rest;
            // The library's own search, which is fast in any build; reading from memory cannot fail.
            let length = ahead.skip_until(b'\n').unwrap_or(rest.len());
            let (part, after) = rest.split_at(length);
            rest = after;
            let (part, ends) = part.strip_suffix(b"\n").map_or((part, false), |part| (part, true));
            if self.skipping {
                self.skipping = !ends;
            } else if self.held.len() + part.len() > LONGEST_LINE {
                self.held = Vec::new();
                self.skipping = !ends;
                each(Line::TooLong);
            } else if !ends {
                self.hold(part);
            } else if self.held.is_empty() {
                each(Line::Whole(part));
            } else {
                self.hold(part);
                self.last(&mut each);
            }
        }
    }

    /// Whether no line is begun.
    pub(super) fn is_between(&self) -> bool {
        self.held.is_empty() && !self.skipping
    }

    /// Hands over a last line that has no end.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        self.skipping = false;
        if !self.held.is_empty() {
            self.last(&mut each);
        }
    }

    /// How many bytes it takes in memory.
    #[cfg(test)]
    pub(super) fn weight(&self) -> usize {
        self.held.capacity()
    }

    fn hold(&mut self, part: &[u8]) {
        let wanted = self.held.len() + part.len();
        if wanted > self.held.capacity() {
            let room = wanted.next_power_of_two().min(LONGEST_LINE);
            self.held.reserve_exact(room - self.held.len());
        }
        self.held.extend_from_slice(part);
    }

    fn last(&mut self, each: &mut impl FnMut(Line<'_>)) {
        each(Line::Whole(&self.held));
        if self.held.capacity() > USUAL_LINE {
            self.held = Vec::new();
        } else {
            self.held.clear();
        }
    }
}
