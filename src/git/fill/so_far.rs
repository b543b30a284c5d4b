//! Owns telling how far the making of files has come, for who waits for it: by the parts that are done, so that it costs those who
//! make them nothing.

use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use gix::index::Entry;

/// After this long it is told, and how often from then on.
const QUIET: Duration = Duration::from_secs(1);
const TELL: Duration = Duration::from_millis(200);

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SoFar {
    /// Files that are there, and all.
    pub(crate) files: (usize, usize),
    /// Bytes of them, and of all, as far as a checkout tells.
    pub(crate) bytes: (u64, u64),
    /// Whether these are files that a filter has in hand still.
    pub(crate) filtered: bool,
}

impl SoFar {
    /// What a line of git's progress says, as in `Updating files:  42% (126/300)`; none where it is no such line. It is about one
    /// of `all` checkouts, of which so many are done.
    pub(super) fn from_git(line: &str, done: usize, all: usize) -> Option<SoFar> {
        let (title, rest) = line.split_once(':')?;
        let filtered = match title {
            "Updating files" => false,
            "Filtering content" => true,
            _ => return None,
        };
        let (_, rest) = rest.split_once("% (")?;
        let (made, of) = rest.split_once(')')?.0.split_once('/')?;
        let (made, of): (usize, usize) = (made.parse().ok()?, of.parse().ok()?);
        Some(SoFar { files: (done * of + made, all * of), bytes: (0, 0), filtered })
    }
}

/// Who is told.
pub(crate) type Tell<'a> = &'a dyn Fn(&SoFar);

/// What those who make files say that they have done.
pub(super) struct Teller<'a> {
    entries: &'a [Entry],
    done: Sender<(usize, u64)>,
}

/// What is heard of it, in the thread that waits for them.
pub(super) struct Listener {
    so_far: SoFar,
    parts: usize,
    done: Receiver<(usize, u64)>,
    began: Instant,
}

/// Both, for so many parts.
pub(super) fn between<'a>(entries: &'a [Entry], parts: &[Range<usize>]) -> (Teller<'a>, Listener) {
    let (send, done) = channel();
    let so_far = SoFar { files: (0, entries.len()), bytes: (0, bytes(entries)), filtered: false };
    let listener = Listener { so_far, parts: parts.len(), done, began: Instant::now() };
    (Teller { entries, done: send }, listener)
}

/// As long as their files are.
fn bytes(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| u64::from(entry.stat.size)).sum()
}

impl<'a> Teller<'a> {
    /// Begins a part. It is done when what is returned is dropped, however it has ended.
    pub(super) fn begin(&'a self, part: &Range<usize>) -> Ended<'a> {
        let part = self.entries.get(part.clone()).unwrap_or_default();
        Ended { teller: self, part }
    }
}

/// Says so in the end.
pub(super) struct Ended<'a> {
    teller: &'a Teller<'a>,
    part: &'a [Entry],
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        // Who panics does no other part, and nobody is to wait for those.
        let files = if std::thread::panicking() { usize::MAX } else { self.part.len() };
        // The listener is there for as long as any part is.
        let _heard = self.teller.done.send((files, bytes(self.part)));
    }
}

impl Listener {
    /// Listens until all parts are done, and tells from time to time where that takes long.
    pub(super) fn until_the_end(mut self, tell: Tell<'_>) {
        let mut told = None;
        while self.parts > 0 {
            let heard = self.done.recv_timeout(TELL);
            let is_due = told.is_none_or(|told: Instant| told.elapsed() >= TELL);
            if is_due && self.began.elapsed() >= QUIET {
                told = Some(Instant::now());
                tell(&self.so_far);
            }
            match heard {
                Ok((usize::MAX, _)) | Err(RecvTimeoutError::Disconnected) => return,
                Ok((files, bytes)) => {
                    self.parts -= 1;
                    self.so_far.files.0 += files;
                    self.so_far.bytes.0 += bytes;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_of_how_far_it_is_is_read() {
        let read = |line| SoFar::from_git(line, 1, 3).map(|so_far| (so_far.files, so_far.filtered));
        assert_eq!(read("Updating files:  42% (126/300)"), Some(((426, 900), false)));
        assert_eq!(read("Updating files: 100% (300/300), done."), Some(((600, 900), false)));
        assert_eq!(read("Filtering content:  50% (1/2), 1.20 MiB | 3.00 MiB/s"), Some(((3, 6), true)));
        for line in
            ["", "error: Updating files: 1% (1/2)", "Updating files: soon", "Updating files:  1% (x/2)"]
        {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
