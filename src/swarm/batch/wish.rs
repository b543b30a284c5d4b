//! Owns what people want of a batch: small files that stay until its scheduler has written down that it heard.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::lane::Project;
use crate::store::{Error, Record, new_id};

/// Something that somebody wants of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wish {
    /// What.
    #[serde(flatten)]
    pub(crate) kind: WishKind,
}

/// What can be wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "kebab-case")]
pub(crate) enum WishKind {
    /// That nothing new starts.
    Pause,
    /// That it goes on.
    Resume,
    /// That it ends.
    Abort {
        /// At once.
        hard: bool,
    },
    /// That a task is tried again.
    Retry {
        /// Its number.
        task: usize,
    },
    /// That it may cost this much, in billionths of a dollar.
    Budget {
        /// In all; none for no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        most: Option<u64>,
    },
}

impl Record for Wish {
    const FORMAT: u32 = 1;
}

impl Wish {
    /// Writes a wish down for a batch; its name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn leave(project: &Project, batch: &str, kind: WishKind) -> Result<PathBuf, Error> {
        let path = project.store.layout().batch_wishes(batch).join(format!("{}.toml", new_id()));
        Wish { kind }.save(&path)?;
        Ok(path)
    }
}

/// The wishes that nobody has heard yet, oldest first, by name. One that cannot be read is passed over: it was never whole.
pub(crate) fn open_wishes(project: &Project, batch: &str) -> Vec<(PathBuf, Wish)> {
    let entries = std::fs::read_dir(project.store.layout().batch_wishes(batch)).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    paths.into_iter().filter_map(|path| Some((path.clone(), Wish::find(&path).ok()??))).collect()
}
