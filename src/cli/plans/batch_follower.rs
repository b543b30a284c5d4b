//! The log of a batch, followed while the batch runs.

use std::time::Duration;

use proq_lib::swarm;
use proq_lib::swarm::batch::log::{LogLine, LogTail};
use proq_lib::swarm::batch::record::Batch;
use proq_lib::swarm::batch::scheduler;
use proq_store::Store;
use proq_store::base::batch_id::BatchId;

use super::batch_event_lines::BatchReplay;

/// Interval between two checks of the batch's log, short because the user waits.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// State of a followed batch: whether a scheduler process works on it.
pub(crate) enum FollowStatus {
    Running,
    /// No scheduler process works on the batch any more: it is over, paused or interrupted.
    Ended,
}

/// Batch whose log is followed.
pub(crate) struct BatchFollower {
    pub(crate) replay: BatchReplay,
    /// Read position in the batch's log.
    log: LogTail,
    /// Whether a scheduler process works on the batch.
    pub(crate) has_scheduler: bool,
}

impl BatchFollower {
    /// Follows a batch from the start of its log: its past changes are printed too.
    ///
    /// # Errors
    /// Fails if the batch cannot be read.
    pub(crate) fn from_start(store: &Store, id: &BatchId) -> Result<BatchFollower, swarm::Error> {
        let batch = Batch::load(store, id)?;
        let log = batch.log_tail(store);
        Ok(BatchFollower { replay: BatchReplay::new(batch), log, has_scheduler: true })
    }

    /// Follows a batch from now on: only new changes are printed.
    ///
    /// # Errors
    /// As [`BatchFollower::from_start`]; also fails if the log cannot be read.
    pub(crate) fn from_now(store: &Store, id: &BatchId) -> Result<BatchFollower, swarm::Error> {
        let mut follower = BatchFollower::from_start(store, id)?;
        for line in follower.log.read_new_lines()? {
            drop(follower.replay.apply_log_line(&line));
        }
        Ok(follower)
    }

    /// Applies the log entries written since the last call, prints their lines, and returns whether a
    /// scheduler still works on the batch.
    pub(crate) fn poll_and_print(
        &mut self,
        store: &Store,
        print_line: &mut dyn FnMut(String),
    ) -> Result<FollowStatus, swarm::Error> {
        // Checked before the log is read, so that entries written just before the scheduler exits are not
        // missed.
        self.has_scheduler = scheduler::is_running(store, self.replay.batch.id())?;
        for line in self.log.read_new_lines()? {
            for text in self.replay.apply_log_line(&line) {
                print_line(format!("{}  {text}", clock_time(&line)));
            }
        }
        let is_finished = self.replay.describe_end().is_some() || !self.has_scheduler;
        // The scheduler releases its lock last: once the view ends, the next command finds the lock free.
        Ok(if is_finished && !self.has_scheduler { FollowStatus::Ended } else { FollowStatus::Running })
    }
}

/// Formats the local time of a log line.
fn clock_time(line: &LogLine) -> String {
    line.time().to_local_text()
}
