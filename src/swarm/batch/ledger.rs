//! Owns which batch has which task, so that no two run one, and how often each task has failed over all of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::lane::Project;
use crate::store::{Error, LockName, Record, remove_drafts};

/// What tells a task from all others, whichever plan it is named in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Key {
    /// The file that it was read from.
    #[serde(with = "crate::store::path_form")]
    pub(crate) source: PathBuf,
    /// The part of the file in which names are unique: a milestone. Empty where they are so in all of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) part: String,
    /// Its name there.
    pub(crate) task: String,
}

/// What is known of tasks that some batch has, or that have failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    #[serde(default)]
    task: Vec<Slip>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Slip {
    #[serde(flatten)]
    key: Key,
    /// The batch that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<String>,
    /// How often it has failed since a person last asked for it.
    #[serde(default)]
    failures: u32,
}

impl Record for Ledger {
    const FORMAT: u32 = 1;
}

impl Ledger {
    /// Reads it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(project: &Project) -> Result<Ledger, Error> {
        Ok(Ledger::find(&project.store.layout().ledger())?.unwrap_or_default())
    }

    /// How often a task has failed.
    pub(crate) fn failures(&self, key: &Key) -> u32 {
        self.task.iter().find(|slip| slip.key == *key).map_or(0, |slip| slip.failures)
    }

    /// Whether a batch has any task.
    pub(crate) fn has(&self, batch: &str) -> bool {
        self.task.iter().any(|slip| slip.batch.as_deref() == Some(batch))
    }

    /// The tasks by what they are known by.
    fn by_key(&mut self) -> BTreeMap<Key, Slip> {
        std::mem::take(&mut self.task).into_iter().map(|slip| (slip.key.clone(), slip)).collect()
    }

    /// Changes it, from what is on disk then.
    fn change<T>(project: &Project, change: impl FnOnce(&mut BTreeMap<Key, Slip>) -> T) -> Result<T, Error> {
        let _lock = project.store.locks().take(&LockName::Ledger)?;
        let mut ledger = Ledger::read(project)?;
        let before = ledger.clone();
        let mut slips = ledger.by_key();
        let done = change(&mut slips);
        slips.retain(|_, slip| slip.batch.is_some() || slip.failures > 0);
        ledger.task = slips.into_values().collect();
        if ledger != before {
            // Drafts of those that were killed while they wrote it: nobody else writes it now.
            drop(remove_drafts(&project.store.layout().ledger()));
            ledger.save(&project.store.layout().ledger())?;
        }
        Ok(done)
    }

    /// Takes tasks for a batch. The answer is, for each, the other batch that has it.
    ///
    /// # Errors
    /// When the ledger cannot be read or written.
    pub(crate) fn claim(project: &Project, batch: &str, keys: &[Key]) -> Result<Vec<Option<String>>, Error> {
        Ledger::change(project, |slips| {
            let claim = |key: &Key| {
                let slip = slip_of(slips, key);
                let other = slip.batch.clone().filter(|other| other != batch);
                if other.is_none() {
                    slip.batch = Some(batch.to_owned());
                }
                other
            };
            keys.iter().map(claim).collect()
        })
    }

    /// Lets other batches have tasks of this one.
    ///
    /// # Errors
    /// As [`Ledger::claim`].
    pub(crate) fn release(project: &Project, batch: &str, keys: &[Key]) -> Result<(), Error> {
        Ledger::change(project, |slips| {
            for key in keys {
                let slip = slip_of(slips, key);
                slip.batch.take_if(|own| own == batch);
            }
        })
    }

    /// Lets go of all that a batch has.
    ///
    /// # Errors
    /// As [`Ledger::claim`].
    pub(crate) fn release_all(project: &Project, batch: &str) -> Result<(), Error> {
        Ledger::change(project, |slips| {
            for slip in slips.values_mut() {
                slip.batch.take_if(|own| own == batch);
            }
        })
    }

    /// Writes down how often a task has failed by now.
    ///
    /// # Errors
    /// As [`Ledger::claim`].
    pub(crate) fn set_failures(project: &Project, key: &Key, failures: u32) -> Result<(), Error> {
        Ledger::change(project, |slips| slip_of(slips, key).failures = failures)
    }
}

fn slip_of<'a>(slips: &'a mut BTreeMap<Key, Slip>, key: &Key) -> &'a mut Slip {
    slips.entry(key.clone()).or_insert_with(|| Slip { key: key.clone(), batch: None, failures: 0 })
}
