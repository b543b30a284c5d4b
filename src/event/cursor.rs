//! Owns how far events were handed out. The record is there for as long as something is due, and no longer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::store::{Error, Record, Store};

/// How far events were handed out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// Events after this number are due.
    from: u64,
    /// Except to these, who have had all up to that number.
    #[serde(default)]
    done: BTreeMap<String, u64>,
}

impl Record for Cursor {
    const FORMAT: u32 = 1;
}

impl Cursor {
    /// Everything after a number is due.
    pub(super) fn begin(store: &Store, from: u64) -> Result<(), Error> {
        Cursor { from, done: BTreeMap::new() }.save(&store.layout().dispatch())
    }

    /// Whether anything is due.
    pub(super) fn is_there(store: &Store) -> bool {
        store.layout().dispatch().exists()
    }

    /// Reads it; none when nothing is due.
    pub(super) fn read(store: &Store) -> Result<Option<Cursor>, Error> {
        Cursor::find(&store.layout().dispatch())
    }

    /// Takes it away: nothing is due any more.
    pub(super) fn end(store: &Store) -> Result<(), Error> {
        let path = store.layout().dispatch();
        std::fs::remove_file(&path).map_err(Error::io("remove", &path))
    }

    /// The last event that somebody has had.
    pub(super) fn of(&self, whom: &str) -> u64 {
        self.done.get(whom).copied().unwrap_or(self.from).max(self.from)
    }

    /// Notes that one of `all` has had all up to a number.
    pub(super) fn advance(&mut self, whom: &str, number: u64, all: &[&str]) {
        self.done.insert(whom.to_owned(), number);
        self.from = all.iter().map(|one| self.of(one)).min().unwrap_or(self.from);
    }

    /// The first event that somebody may still have to get.
    pub(super) fn first_due(&self) -> u64 {
        // Who is not named has had nothing.
        self.from + 1
    }
}
