//! Messages that were delivered to a run while it was running. Next to the run's record there is one folder
//! per delivery, with the messages as they were sent.
//!
//! The messages are copied to that folder first; only then the lane's delivery record marks them as
//! delivered. So a copied message that still waits in the inbox was not delivered: the process was killed
//! between the two steps.

use std::path::{Path, PathBuf};

use proq_base::fail_points;
use proq_store::base::atomic::{create_private_dir, sync_dir, write as write_atomically};
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;
use proq_store::records::message::MessageRecord;

use super::inbox::{ClaimedMessages, Inbox, join_texts, message_path, pending_ids, remove_delivered};
use crate::lane::Error;

impl Inbox<'_> {
    /// Copies messages that a running agent has received next to its run's record, and marks them as
    /// delivered.
    pub(crate) fn record_delivered(
        &self,
        run_number: RunNumber,
        claimed: &ClaimedMessages,
    ) -> Result<(), Error> {
        let run_folder = Layout::run_messages_in(&self.lane_store_dir(), run_number);
        let delivery = run_folder.join((sorted_entries(&run_folder)?.len() + 1).to_string());
        for item in &claimed.messages {
            let path = Layout::message_in(&delivery, &item.id);
            write_atomically(&path, item.record.to_toml(&path)?.as_bytes())?;
        }
        fail_points::hit("inbox.told-at-work");
        self.mark_delivered(&claimed.ids())
    }

    /// Moves the messages that a run received while it was running back to the inbox, in their former order.
    /// Used when the work of that run was undone.
    pub(crate) fn requeue(&self, run_number: RunNumber) -> Result<(), Error> {
        let folder = self.lane_store_dir();
        let deliveries = sorted_entries(&Layout::run_messages_in(&folder, run_number))?;
        if deliveries.is_empty() {
            return Ok(());
        }
        let _lock = self.store.locks().acquire(&LockName::Store)?;
        // Messages that are still on record as delivered would not count as waiting.
        remove_delivered(&folder)?;
        let inbox = Layout::inbox_in(&folder);
        create_private_dir(&inbox)?;
        for delivery in deliveries {
            for path in sorted_entries(&delivery)? {
                if let Some(id) = message_id(&path) {
                    std::fs::rename(&path, message_path(&folder, id)).map_err(Error::io("rename", &path))?;
                }
            }
        }
        Ok(sync_dir(&inbox)?)
    }
}

/// Returns the messages that a run received while it was running, one joined text per delivery. `folder` is
/// the lane's folder in the store, which may be that of a removed lane.
pub fn read_delivered(folder: &Path, run_number: RunNumber) -> Result<Vec<String>, Error> {
    let waiting_ids = pending_ids(folder)?;
    let mut out = Vec::new();
    for delivery in sorted_entries(&Layout::run_messages_in(folder, run_number))? {
        let mut texts = Vec::new();
        for path in sorted_entries(&delivery)? {
            if message_id(&path).is_some_and(|id| !waiting_ids.iter().any(|waiting| waiting == id)) {
                texts.extend(MessageRecord::load_if_exists(&path)?.map(|message| message.text));
            }
        }
        if !texts.is_empty() {
            out.push(join_texts(texts.iter().map(String::as_str)));
        }
    }
    Ok(out)
}

/// Returns the message id in a file name; `None` for a temporary file.
fn message_id(path: &Path) -> Option<&str> {
    Layout::message_id(path.file_name()?.to_str()?)
}

/// Returns the entries of a folder in order: numbers by size, message ids by time. A missing folder has none.
fn sorted_entries(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", dir)(e)),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(paths)
}
