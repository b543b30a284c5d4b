//! Dispatch cursor: which events were delivered to which sink. The file exists only while an event is due.

use std::collections::BTreeMap;

use proq_store::base::record::Record;
use proq_store::{Error, Store};
use serde::{Deserialize, Serialize};

/// Progress of event delivery: the last event that each sink has received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DispatchCursor {
    /// Number of the last event that every sink has received.
    #[serde(rename = "from")]
    delivered_to_all: u64,
    /// Number of the last event received, by sink name, for sinks that are ahead of `delivered_to_all`.
    #[serde(default)]
    #[serde(rename = "done")]
    delivered: BTreeMap<String, u64>,
}

impl Record for DispatchCursor {
    const FORMAT: u32 = 1;
}

impl DispatchCursor {
    /// Creates the cursor: all events after number `from` are due.
    pub(super) fn create(store: &Store, from: u64) -> Result<(), Error> {
        DispatchCursor { delivered_to_all: from, delivered: BTreeMap::new() }
            .save(&store.layout().dispatch_cursor())
    }

    /// Returns whether events may still have to be delivered: the cursor file exists.
    pub(super) fn exists(store: &Store) -> bool {
        store.layout().dispatch_cursor().exists()
    }

    /// Loads the cursor; none when no event is due.
    pub(super) fn load_if_due(store: &Store) -> Result<Option<DispatchCursor>, Error> {
        DispatchCursor::load_if_exists(&store.layout().dispatch_cursor())
    }

    /// Removes the cursor: no event is due any more.
    pub(super) fn remove(store: &Store) -> Result<(), Error> {
        let path = store.layout().dispatch_cursor();
        std::fs::remove_file(&path).map_err(Error::io("remove", &path))
    }

    /// Returns the number of the last event that a sink has received.
    pub(super) fn last_delivered(&self, sink_name: &str) -> u64 {
        self.delivered.get(sink_name).copied().unwrap_or(self.delivered_to_all).max(self.delivered_to_all)
    }

    /// Records that a sink has received all events up to a number. `sink_names` lists all sinks.
    pub(super) fn advance(&mut self, sink_name: &str, number: u64, sink_names: &[&str]) {
        self.delivered.insert(sink_name.to_owned(), number);
        self.delivered_to_all =
            sink_names.iter().map(|other| self.last_delivered(other)).min().unwrap_or(self.delivered_to_all);
    }

    /// Returns the number of the first event that may not have reached every sink.
    pub(super) fn first_due(&self) -> u64 {
        // A sink without an entry has received nothing after `delivered_to_all`.
        self.delivered_to_all + 1
    }
}
