//! Inbox of a lane: messages to its agent that are not yet delivered. Each message is a file that names the
//! conversation it is for. Messages are delivered in the order they were sent, and only to that conversation.
//!
//! A message stays pending until it is delivered, and it is delivered once:
//!
//! 1. The process that acts for the lane's run claims the messages pending for its conversation
//!    ([`Inbox::claim`]). Between two runs that is the holder of the run lock, during a run a process of the
//!    run. No other process claims messages of the lane until [`ClaimedMessages`] is dropped.
//! 2. The claiming process passes the text to the agent.
//! 3. Once the agent has the text, and not before, `Inbox::mark_delivered` records the delivery: from this
//!    moment the messages are no longer pending.
//!
//! A process killed before step 3 leaves the messages pending, and the next process delivers them. A process
//! killed after step 3 does not cause a second delivery.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_store::Store;
use proq_store::base::atomic::write_in_existing_dir;
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::paths::layout::Layout;
use proq_store::records::message::{DeliveredRecord, MessageRecord};

use crate::lane::Error;

/// Pending messages for one lane's agent.
pub struct Inbox<'a> {
    /// Store that has the message files.
    pub store: &'a Store,
    /// Name of the lane whose agent the messages are for.
    pub lane: &'a LaneName,
}

/// A pending message with its id.
#[derive(Debug, Clone)]
pub struct InboxMessage {
    /// Id of the message: its file name in the inbox without the suffix.
    pub id: String,
    /// Text and addressed conversation.
    pub record: MessageRecord,
}

/// Messages claimed for one conversation. While this value lives, nobody else claims messages of the lane.
#[derive(Debug)]
#[must_use]
pub struct ClaimedMessages {
    /// Messages, oldest first.
    pub messages: Vec<InboxMessage>,
    _lock: LockGuard,
}

impl ClaimedMessages {
    /// Returns the texts of the messages, oldest first.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(|message| message.record.text.as_str())
    }

    /// Returns the ids of the messages, for `Inbox::mark_delivered`.
    pub fn ids(&self) -> Vec<String> {
        self.messages.iter().map(|message| message.id.clone()).collect()
    }
}

impl<'a> Inbox<'a> {
    /// Returns the inbox of a lane.
    pub fn new(store: &'a Store, lane: &'a LaneName) -> Inbox<'a> {
        Inbox { store, lane }
    }

    /// Returns the number of pending messages of all conversations.
    pub fn count(&self) -> usize {
        // An inbox that cannot be read may hold a message.
        pending_ids(&self.lane_store_dir()).map_or(1, |ids| ids.len())
    }

    /// Returns the pending messages, oldest first.
    ///
    /// # Errors
    /// Fails when one message cannot be read: none is skipped.
    pub fn read(&self) -> Result<Vec<InboxMessage>, Error> {
        pending_messages(&self.lane_store_dir())
    }

    /// Returns whether a message is pending for this conversation. An unreadable inbox counts as one with a
    /// message.
    pub(crate) fn has_messages_for(&self, conversation: RunNumber) -> bool {
        match self.read() {
            Ok(messages) => messages.iter().any(|message| message.record.conversation == conversation),
            Err(_) => true,
        }
    }

    /// Claims the messages pending for a conversation, and keeps everybody else from claiming any until the
    /// result is dropped. The caller acts for the lane's run.
    ///
    /// # Errors
    /// Fails while another process is delivering messages of the lane, or when a message cannot be read.
    pub fn claim(&self, conversation: RunNumber) -> Result<ClaimedMessages, Error> {
        let lock = self.store.locks().acquire(&LockName::Inbox(self.lane.clone()))?;
        let messages =
            self.read()?.into_iter().filter(|message| message.record.conversation == conversation).collect();
        Ok(ClaimedMessages { messages, _lock: lock })
    }

    /// Adds a message. The caller holds the lock on records and has checked under it that the lane is on
    /// record: removing a lane moves its folder, which must not be created again.
    pub fn add(&self, message: MessageRecord, _store: &LockGuard) -> Result<InboxMessage, Error> {
        // Ids sort by time; the random part distinguishes two messages of the same moment.
        let sent_nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let id = format!("{sent_nanos:024}-{}", new_id());
        let dir = Layout::inbox_in(&self.lane_store_dir());
        match DirBuilder::new().mode(0o700).create(&dir) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(Error::io("create", &dir)(e));
            }
            _ => {}
        }
        let path = Layout::message_in(&dir, &id);
        write_in_existing_dir(&path, message.to_toml(&path)?.as_bytes())?;
        Ok(InboxMessage { id, record: message })
    }

    /// Records that these messages were delivered. Once that record is on disk, none of them is pending.
    pub(crate) fn mark_delivered(&self, ids: &[String]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let _lock = self.store.locks().acquire(&LockName::Store)?;
        let folder = self.lane_store_dir();
        let path = Layout::delivered_record_in(&folder);
        let mut delivered = DeliveredRecord::load_if_exists(&path)?.unwrap_or_default();
        delivered.message_files.extend_from_slice(ids);
        write_in_existing_dir(&path, delivered.to_toml(&path)?.as_bytes())?;
        fail_points::hit("inbox.told");
        // When a message file remains, the record of its delivery remains too.
        drop(remove_delivered(&folder));
        Ok(())
    }

    /// Removes an undelivered message again, on behalf of its sender.
    pub(crate) fn retract(&self, id: &str) -> Result<(), Error> {
        let _lock = self.store.locks().acquire(&LockName::Store)?;
        remove_message(&self.lane_store_dir(), id)
    }

    /// Returns the lane's folder in the store, which contains its inbox.
    pub(crate) fn lane_store_dir(&self) -> PathBuf {
        self.store.layout().lane(self.lane)
    }
}

/// Returns the text that `count` messages of a lane are pending, with the command that delivers them.
pub fn pending_text(lane: &LaneName, count: usize) -> String {
    let count_text = if count == 1 { "1 message" } else { &format!("{count} messages") };
    let verb = if count == 1 { "waits" } else { "wait" };
    format!("{count_text} in '{lane}' {verb} to be sent: git proq send {lane}")
}

/// Joins message texts into one, separated by empty lines.
pub(crate) fn join_texts<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    texts.map(str::trim_end).collect::<Vec<_>>().join("\n\n")
}

/// Returns the pending messages in a lane's record folder, oldest first. The folder may be that of a removed
/// lane.
pub fn pending_messages(folder: &Path) -> Result<Vec<InboxMessage>, Error> {
    let read_message = |id: String| {
        let path = message_path(folder, &id);
        // A message that was delivered and removed since its id was listed is skipped.
        Ok(MessageRecord::load_if_exists(&path)?.map(|message| InboxMessage { id, record: message }))
    };
    let ids = pending_ids(folder)?.into_iter();
    ids.map(read_message).filter_map(Result::transpose).collect()
}

/// Returns the ids of the pending messages, oldest first.
pub(crate) fn pending_ids(folder: &Path) -> Result<Vec<String>, Error> {
    let dir = Layout::inbox_in(folder);
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", &dir)(e)),
    };
    let message_id = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        Layout::message_id(&name).map(ToOwned::to_owned)
    };
    let mut ids: Vec<String> = entries.flatten().filter_map(message_id).collect();
    if !ids.is_empty() {
        let delivered =
            DeliveredRecord::load_if_exists(&Layout::delivered_record_in(folder))?.unwrap_or_default();
        ids.retain(|id| !delivered.message_files.contains(id));
    }
    ids.sort();
    Ok(ids)
}

/// Removes the files of delivered messages, and then the record of their delivery. The caller holds the lock
/// on records.
pub(crate) fn remove_delivered(folder: &Path) -> Result<(), Error> {
    let path = Layout::delivered_record_in(folder);
    let Some(delivered) = DeliveredRecord::load_if_exists(&path)? else { return Ok(()) };
    delivered.message_files.iter().try_for_each(|id| remove_message(folder, id))?;
    std::fs::remove_file(&path).map_err(Error::io("remove", &path))
}

/// Returns the path of the message file with this id.
pub(crate) fn message_path(folder: &Path, id: &str) -> PathBuf {
    Layout::message_in(&Layout::inbox_in(folder), id)
}

fn remove_message(folder: &Path, id: &str) -> Result<(), Error> {
    let path = message_path(folder, id);
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &path)(e)),
        _ => Ok(()),
    }
}
