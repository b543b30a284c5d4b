//! Ledger of tasks across all batches: which batch has which task, so that no two batches run the same one,
//! and how often each task has failed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proq_store::base::atomic::remove_temp_files_of;
use proq_store::base::batch_id::BatchId;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::{Error, Store};
use serde::{Deserialize, Serialize};

/// Identity of a task, the same in every plan that names the task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskKey {
    /// The file that the task was read from.
    #[serde(with = "proq_store::paths::path_form")]
    pub source: PathBuf,
    /// The section of the file in which task names are unique: a milestone. Empty where names are unique in
    /// the entire file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "part")]
    pub section: String,
    /// The name of the task in that section.
    pub task: String,
}

/// Owner and failure count of each task that a batch has claimed or that has failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    #[serde(default)]
    #[serde(rename = "task")]
    entries: Vec<LedgerEntry>,
}

/// The entry of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LedgerEntry {
    #[serde(flatten)]
    key: TaskKey,
    /// The batch that has claimed the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<BatchId>,
    /// The number of failed runs, over all batches, since the task last landed or the user last retried it.
    #[serde(default)]
    failures: u32,
}

impl Record for Ledger {
    const FORMAT: u32 = 1;
}

impl Ledger {
    /// Reads the ledger of a project; empty when there is none yet.
    ///
    /// # Errors
    /// Fails when the file cannot be read.
    pub fn read(store: &Store) -> Result<Ledger, Error> {
        Ok(Ledger::load_if_exists(&store.layout().batch_ledger())?.unwrap_or_default())
    }

    /// Returns how often a task has failed.
    pub fn failures(&self, key: &TaskKey) -> u32 {
        self.entries.iter().find(|entry| entry.key == *key).map_or(0, |entry| entry.failures)
    }

    /// Returns whether a batch has claimed any task.
    pub fn has_claims_of(&self, batch: &BatchId) -> bool {
        self.entries.iter().any(|entry| entry.batch.as_ref() == Some(batch))
    }

    /// Removes all entries and returns them by task key.
    fn take_entries_by_key(&mut self) -> BTreeMap<TaskKey, LedgerEntry> {
        std::mem::take(&mut self.entries).into_iter().map(|entry| (entry.key.clone(), entry)).collect()
    }

    /// Reads the ledger under its lock, applies `edit`, and saves it if it changed. Entries without a batch
    /// and failures are dropped.
    fn update<T>(
        store: &Store,
        edit: impl FnOnce(&mut BTreeMap<TaskKey, LedgerEntry>) -> T,
    ) -> Result<T, Error> {
        let _lock = store.locks().acquire(&LockName::Ledger)?;
        let mut ledger = Ledger::read(store)?;
        let before = ledger.clone();
        let mut entries_by_key = ledger.take_entries_by_key();
        let result = edit(&mut entries_by_key);
        entries_by_key.retain(|_, entry| entry.batch.is_some() || entry.failures > 0);
        ledger.entries = entries_by_key.into_values().collect();
        if ledger != before {
            // Removes temporary files of killed writers; the lock keeps all other writers out.
            drop(remove_temp_files_of(&store.layout().batch_ledger()));
            ledger.save(&store.layout().batch_ledger())?;
        }
        Ok(result)
    }

    /// Claims tasks for a batch. Returns for each key the other batch that already has the task, or none when
    /// the claim succeeded.
    ///
    /// # Errors
    /// Fails when the ledger cannot be read or written.
    pub fn claim(store: &Store, batch: &BatchId, keys: &[TaskKey]) -> Result<Vec<Option<BatchId>>, Error> {
        Ledger::update(store, |entries| {
            let claim_key = |key: &TaskKey| {
                let entry = entry_or_insert(entries, key);
                let other_batch = entry.batch.clone().filter(|other| other != batch);
                if other_batch.is_none() {
                    entry.batch = Some(batch.clone());
                }
                other_batch
            };
            keys.iter().map(claim_key).collect()
        })
    }

    /// Releases a batch's claim on these tasks, so that other batches can claim them.
    ///
    /// # Errors
    /// Fails as [`Ledger::claim`] does.
    pub fn release(store: &Store, batch: &BatchId, keys: &[TaskKey]) -> Result<(), Error> {
        Ledger::update(store, |entries| {
            for key in keys {
                let entry = entry_or_insert(entries, key);
                entry.batch.take_if(|owner| owner == batch);
            }
        })
    }

    /// Releases a batch's claims on all of its tasks.
    ///
    /// # Errors
    /// Fails as [`Ledger::claim`] does.
    pub(crate) fn release_all(store: &Store, batch: &BatchId) -> Result<(), Error> {
        Ledger::update(store, |entries| {
            for entry in entries.values_mut() {
                entry.batch.take_if(|owner| owner == batch);
            }
        })
    }

    /// Saves the failure count of a task.
    ///
    /// # Errors
    /// Fails as [`Ledger::claim`] does.
    pub(crate) fn set_failures(store: &Store, key: &TaskKey, failures: u32) -> Result<(), Error> {
        Ledger::update(store, |entries| entry_or_insert(entries, key).failures = failures)
    }
}

/// Returns the entry of a task; a new one has no claim and no failures.
fn entry_or_insert<'a>(
    entries: &'a mut BTreeMap<TaskKey, LedgerEntry>,
    key: &TaskKey,
) -> &'a mut LedgerEntry {
    entries.entry(key.clone()).or_insert_with(|| LedgerEntry { key: key.clone(), batch: None, failures: 0 })
}
