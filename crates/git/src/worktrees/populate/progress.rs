//! Progress of populating worktrees, for the caller that waits. Progress is counted in finished chunks, so
//! that it costs the writing threads nothing.

use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use gix::index::Entry;

/// Time until the first progress report; [`REPORT_INTERVAL`] is the time between later ones.
const REPORT_DELAY: Duration = Duration::from_secs(1);
const REPORT_INTERVAL: Duration = Duration::from_millis(200);

/// Progress of populating one or more worktrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PopulateProgress {
    /// Number of files that exist, and number of all files.
    pub files_done_and_total: (usize, usize),
    /// Number of bytes written and of all bytes, as far as the source checkout's index has sizes.
    pub bytes_done_and_total: (u64, u64),
    /// Whether the count is of files that a filter still works on.
    pub is_filtering: bool,
}

impl PopulateProgress {
    /// Parses a line of git's progress, as in `Updating files:  42% (126/300)`. Returns `None` for any other
    /// line. The line is about one of `total_checkouts`, of which `done_checkouts` are finished.
    pub(crate) fn from_git(
        line: &str,
        done_checkouts: usize,
        total_checkouts: usize,
    ) -> Option<PopulateProgress> {
        let (title, rest) = line.split_once(':')?;
        let filtered = match title {
            "Updating files" => false,
            "Filtering content" => true,
            _ => return None,
        };
        let (_, rest) = rest.split_once("% (")?;
        let (done_text, total_text) = rest.split_once(')')?.0.split_once('/')?;
        let (written, total): (usize, usize) = (done_text.parse().ok()?, total_text.parse().ok()?);
        Some(PopulateProgress {
            files_done_and_total: (done_checkouts * total + written, total_checkouts * total),
            bytes_done_and_total: (0, 0),
            is_filtering: filtered,
        })
    }
}

/// Callback that receives progress reports.
pub type OnProgress<'a> = &'a dyn Fn(&PopulateProgress);

/// Sending end of the progress channel, for the threads that write files.
pub(crate) struct ProgressSender<'a> {
    entries: &'a [Entry],
    /// Channel for the number of files and bytes of each finished chunk.
    finished_chunks: Sender<(usize, u64)>,
}

/// Receiving end of the progress channel, for the thread that waits.
pub(crate) struct ProgressReceiver {
    progress: PopulateProgress,
    chunks_left: usize,
    /// Channel with the number of files and bytes of each finished chunk.
    finished_chunks: Receiver<(usize, u64)>,
    started: Instant,
}

/// Creates both ends of a progress channel for these chunks.
pub(crate) fn progress_channel<'a>(
    entries: &'a [Entry],
    chunks: &[Range<usize>],
) -> (ProgressSender<'a>, ProgressReceiver) {
    let (sender, receiver) = channel();
    let progress = PopulateProgress {
        files_done_and_total: (0, entries.len()),
        bytes_done_and_total: (0, total_bytes(entries)),
        is_filtering: false,
    };
    let progress_receiver = ProgressReceiver {
        progress,
        chunks_left: chunks.len(),
        finished_chunks: receiver,
        started: Instant::now(),
    };
    (ProgressSender { entries, finished_chunks: sender }, progress_receiver)
}

/// Returns the total length of the entries' files.
fn total_bytes(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| u64::from(entry.stat.size)).sum()
}

impl<'a> ProgressSender<'a> {
    /// Starts a chunk. It counts as finished when the returned guard is dropped, however the work ended.
    pub(crate) fn start_chunk(&'a self, range: &Range<usize>) -> ChunkGuard<'a> {
        let chunk = self.entries.get(range.clone()).unwrap_or_default();
        ChunkGuard { sender: self, chunk }
    }
}

/// Guard that reports its chunk as finished when it is dropped.
pub(crate) struct ChunkGuard<'a> {
    sender: &'a ProgressSender<'a>,
    chunk: &'a [Entry],
}

impl Drop for ChunkGuard<'_> {
    fn drop(&mut self) {
        // A thread that panics does not work on other chunks, so the receiver must not wait for those.
        let files = if std::thread::panicking() { usize::MAX } else { self.chunk.len() };
        // The receiver exists for as long as any chunk is in work.
        let _is_received = self.sender.finished_chunks.send((files, total_bytes(self.chunk)));
    }
}

impl ProgressReceiver {
    /// Receives until all chunks are finished, and reports progress from time to time where that takes long.
    pub(crate) fn report_until_done(mut self, on_progress: OnProgress<'_>) {
        let mut last_report = None;
        while self.chunks_left > 0 {
            let update = self.finished_chunks.recv_timeout(REPORT_INTERVAL);
            let is_due =
                last_report.is_none_or(|reported_at: Instant| reported_at.elapsed() >= REPORT_INTERVAL);
            if is_due && self.started.elapsed() >= REPORT_DELAY {
                last_report = Some(Instant::now());
                on_progress(&self.progress);
            }
            match update {
                Ok((usize::MAX, _)) | Err(RecvTimeoutError::Disconnected) => return,
                Ok((files, bytes)) => {
                    self.chunks_left -= 1;
                    self.progress.files_done_and_total.0 += files;
                    self.progress.bytes_done_and_total.0 += bytes;
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
    fn parses_progress_lines_of_git() {
        let read = |line| {
            PopulateProgress::from_git(line, 1, 3)
                .map(|so_far| (so_far.files_done_and_total, so_far.is_filtering))
        };
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
