//! Owns what was sent to a lane and that its agent has not been told yet. Each message is a file that names the conversation
//! it is for; they are told in the order in which they were sent, and each to that conversation only.
//!
//! A message waits until it is told, and it is told once:
//!
//! 1. Whoever acts for the lane's run takes what waits for its conversation ([`Inbox::take`]): who holds the run lock between two
//!    runs, a process of the run itself while that lasts. Nobody else takes anything of the lane until [`Taken`] is dropped.
//! 2. It passes the text on.
//! 3. Once the agent has it, and not before, [`Inbox::told`] writes that down: from this moment the messages are gone.
//!
//! Who is killed before that leaves them where they were, to be told by the next; killed after it, they are not told again.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Error, Project};
use crate::fault;
use crate::store::records::{MessageRecord, ToldRecord};
use crate::store::{Guard, Layout, LockName, Record, new_id, write_there};

/// The end of the names of messages.
pub(super) const END: &str = ".toml";

/// The messages that wait for one lane's agent.
pub(crate) struct Inbox<'a> {
    pub(super) project: &'a Project,
    pub(super) lane: &'a str,
}

/// A message that waits.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    /// Its name in the inbox.
    pub(crate) id: String,
    /// The message.
    pub(crate) message: MessageRecord,
}

/// What waits for one conversation. As long as this is there, nobody else takes anything.
#[derive(Debug)]
#[must_use]
pub(crate) struct Taken {
    /// The messages, the oldest first.
    pub(crate) letters: Vec<Letter>,
    _lock: Guard,
}

impl Taken {
    /// What the messages say.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.letters.iter().map(|letter| letter.message.text.as_str())
    }

    /// Their names, for [`Inbox::told`].
    pub(crate) fn ids(&self) -> Vec<String> {
        self.letters.iter().map(|letter| letter.id.clone()).collect()
    }
}

impl<'a> Inbox<'a> {
    /// The inbox of a lane.
    pub(crate) fn of(project: &'a Project, lane: &'a str) -> Inbox<'a> {
        Inbox { project, lane }
    }

    /// How many messages wait, for whichever conversation.
    pub(crate) fn count(&self) -> usize {
        // What cannot be looked at may be there.
        ids_in(&self.folder()).map_or(1, |ids| ids.len())
    }

    /// What waits, the oldest first.
    ///
    /// # Errors
    /// When one cannot be read: nothing of it is passed over.
    pub(crate) fn read(&self) -> Result<Vec<Letter>, Error> {
        waiting_in(&self.folder())
    }

    /// Whether anything waits for this conversation. What cannot be read may be for it.
    pub(crate) fn has_for(&self, talk: u32) -> bool {
        match self.read() {
            Ok(letters) => letters.iter().any(|letter| letter.message.talk == talk),
            Err(_) => true,
        }
    }

    /// Takes what waits for a conversation, and keeps everybody else from taking anything meanwhile. The caller acts for the
    /// lane's run.
    ///
    /// # Errors
    /// When somebody else goes on telling what was sent, or a message cannot be read.
    pub(crate) fn take(&self, talk: u32) -> Result<Taken, Error> {
        let lock = self.project.store.locks().take(&LockName::Inbox(self.lane.to_owned()))?;
        let letters = self.read()?.into_iter().filter(|letter| letter.message.talk == talk).collect();
        Ok(Taken { letters, _lock: lock })
    }

    /// Adds a message. The caller holds the lock on records, and has found the lane on record since: who removes it moves its
    /// folder, which must not be made anew.
    pub(crate) fn put(&self, message: MessageRecord, _store: &Guard) -> Result<Letter, Error> {
        // Names rise with time; two of the same moment differ.
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let id = format!("{at:024}-{}", new_id());
        let dir = self.folder().join(Layout::INBOX);
        match DirBuilder::new().mode(0o700).create(&dir) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(Error::io("create", &dir)(e));
            }
            _ => {}
        }
        let path = dir.join(format!("{id}{END}"));
        write_there(&path, message.text(&path)?.as_bytes())?;
        Ok(Letter { id, message })
    }

    /// Writes down that these were told. From the moment in which that is on disk none of them waits any more.
    pub(crate) fn told(&self, ids: &[String]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let _lock = self.project.store.locks().take(&LockName::Store)?;
        let folder = self.folder();
        let path = folder.join(Layout::TOLD);
        let mut told = ToldRecord::find(&path)?.unwrap_or_default();
        told.messages.extend_from_slice(ids);
        write_there(&path, told.text(&path)?.as_bytes())?;
        fault::point("inbox.told");
        // Where one stays, so does the note that it was told.
        drop(tidy(&folder));
        Ok(())
    }

    /// Takes a message away that nobody was told, for whoever sent it.
    pub(crate) fn take_back(&self, id: &str) -> Result<(), Error> {
        let _lock = self.project.store.locks().take(&LockName::Store)?;
        remove(&self.folder(), id)
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.project.store.layout().lane(self.lane)
    }
}

/// That so many messages of a lane, by its name, wait to be told.
pub(crate) fn waits(lane: &str, count: usize) -> String {
    let what = if count == 1 { "1 message" } else { &format!("{count} messages") };
    let wait = if count == 1 { "waits" } else { "wait" };
    format!("{what} in '{lane}' {wait} to be told: git proq send {lane} passes on what waits")
}

/// Messages as one.
pub(crate) fn joined<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    texts.map(str::trim_end).collect::<Vec<_>>().join("\n\n")
}

/// What waits in a lane's folder, which may be that of a removed one; the oldest first.
pub(crate) fn waiting_in(folder: &Path) -> Result<Vec<Letter>, Error> {
    let letter = |id: String| {
        let path = file_of(folder, &id);
        // Told and taken away since its name was read.
        Ok(MessageRecord::find(&path)?.map(|message| Letter { id, message }))
    };
    let ids = ids_in(folder)?.into_iter();
    ids.map(letter).filter_map(Result::transpose).collect()
}

/// The names of what waits, in order.
pub(super) fn ids_in(folder: &Path) -> Result<Vec<String>, Error> {
    let dir = folder.join(Layout::INBOX);
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", &dir)(e)),
    };
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        // A draft begins with a dot.
        name.strip_suffix(END).filter(|id| !id.starts_with('.')).map(ToOwned::to_owned)
    };
    let mut ids: Vec<String> = entries.flatten().filter_map(name).collect();
    if !ids.is_empty() {
        let told = ToldRecord::find(&folder.join(Layout::TOLD))?.unwrap_or_default();
        ids.retain(|id| !told.messages.contains(id));
    }
    ids.sort();
    Ok(ids)
}

/// Removes what was told and is there still, and then the note that it was told. The caller holds the lock on records.
pub(super) fn tidy(folder: &Path) -> Result<(), Error> {
    let path = folder.join(Layout::TOLD);
    let Some(told) = ToldRecord::find(&path)? else { return Ok(()) };
    told.messages.iter().try_for_each(|id| remove(folder, id))?;
    std::fs::remove_file(&path).map_err(Error::io("remove", &path))
}

/// The file of a message of this name.
pub(super) fn file_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(Layout::INBOX).join(format!("{id}{END}"))
}

fn remove(folder: &Path, id: &str) -> Result<(), Error> {
    let path = file_of(folder, id);
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &path)(e)),
        _ => Ok(()),
    }
}
