//! Owns what is shown of a run while it lasts: a small file that is written anew at most once a second.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::order::account_so_far;
use super::stream::Progress;
use crate::store::records::Account;

/// How long what is shown may be behind.
const BEHIND: Duration = Duration::from_secs(1);

/// The file of one run.
pub(super) struct Live {
    path: PathBuf,
    due: Option<Instant>,
}

/// What the file holds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// What the agent has said of itself so far.
    #[serde(default)]
    pub(crate) account: Account,
}

impl Live {
    pub(super) fn new(path: PathBuf) -> Live {
        Live { path, due: None }
    }

    /// Something is to be shown.
    pub(super) fn changed(&mut self) {
        self.due.get_or_insert_with(|| Instant::now() + BEHIND);
    }

    /// When to write it.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Writes it. It is for a person's eyes, and nothing depends on it: a full disk is no reason to end a run.
    pub(super) fn write(&mut self, progress: &Progress) {
        self.due = None;
        let shown = Shown { account: account_so_far(progress) };
        let Ok(text) = serde_json::to_vec(&shown) else { return };
        let beside = self.path.with_extension("new");
        drop(std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, &self.path)));
    }

    /// Takes it away: the run's record says it all.
    pub(super) fn remove(&self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// What a run that lasts has said of itself, as far as its file tells.
pub(crate) fn shown(path: &Path) -> Account {
    let read =
        crate::regular_file::record(path).ok().and_then(|bytes| serde_json::from_slice::<Shown>(&bytes).ok());
    read.unwrap_or_default().account
}
