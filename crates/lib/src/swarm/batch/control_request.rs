//! Control requests to a batch, such as pause or abort. Each is a small file, which the scheduler deletes
//! once its log has the request.

use std::path::PathBuf;

use proq_base::money::NanoDollars;
use proq_store::base::batch_id::BatchId;
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::{Error, Store};
use serde::{Deserialize, Serialize};

/// A request of a user to the scheduler of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlRequest {
    /// Action that the scheduler is to take, with its arguments.
    #[serde(flatten)]
    pub kind: ControlRequestKind,
}

/// The kinds of control requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "kebab-case")]
pub enum ControlRequestKind {
    /// Start no new runs.
    Pause,
    /// Continue the batch.
    Resume,
    /// End the batch.
    Abort {
        /// Whether to stop running agents immediately.
        hard: bool,
    },
    /// Try a task again.
    Retry {
        /// The number of the task.
        task: usize,
    },
    /// Set the cost limit.
    Budget {
        /// The limit for the entire batch; none for no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "most")]
        limit: Option<NanoDollars>,
    },
}

impl Record for ControlRequest {
    const FORMAT: u32 = 1;
}

impl ControlRequest {
    /// Writes a request to a batch, and returns the path of its file.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub(crate) fn submit(store: &Store, batch: &BatchId, kind: ControlRequestKind) -> Result<PathBuf, Error> {
        let path = store.layout().batch_request(batch, &new_id());
        ControlRequest { kind }.save(&path)?;
        Ok(path)
    }
}

/// Returns the requests that the scheduler has not processed yet, oldest first, with their files. An
/// unreadable file is skipped, because it was never written completely.
pub fn pending_requests(store: &Store, batch: &BatchId) -> Vec<(PathBuf, ControlRequest)> {
    let entries = std::fs::read_dir(store.layout().batch_requests_dir(batch)).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    paths
        .into_iter()
        .filter_map(|path| Some((path.clone(), ControlRequest::load_if_exists(&path).ok()??)))
        .collect()
}
