//! Record of the times that commands in a repository have observed.

use crate::Store;
use crate::base::clock::{ClockHistory, set_clock_history, system_time};
use crate::base::record::Record;

impl Record for ClockHistory {
    const FORMAT: u32 = 1;
}

impl Store {
    /// Loads the repository's clock history for this process. An unreadable file counts as an empty history.
    pub fn load_clock_history(&self) {
        let loaded = ClockHistory::load_if_exists(&self.layout().clock_record()).ok().flatten();
        // The current system time counts for read-only commands too.
        set_clock_history(loaded.map(|times| times.with_observed_time(system_time()).unwrap_or(times)));
    }

    /// Saves the current system time in the clock history, if it adds anything. Called before a command
    /// changes something.
    pub fn record_clock(&self) {
        if !self.layout().root().exists() {
            return;
        }
        let file = self.layout().clock_record();
        let times = ClockHistory::load_if_exists(&file).ok().flatten().unwrap_or_default();
        let Some(times) = times.with_observed_time(system_time()) else { return };
        // In a repository that is not writable, no record is written either, so a failure does not matter.
        drop(times.save(&file));
        set_clock_history(Some(times));
    }
}
