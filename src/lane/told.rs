//! Owns what a run was told more while it lasted: beside its record a folder for each time, with the messages as they were sent.
//!
//! They are put there first, and it is written down then that they were told ([`Inbox::told`]). So one that is there and waits
//! still has not been told: whoever put it there was killed in between.

use std::path::{Path, PathBuf};

use super::inbox::{END, file_of, ids_in, joined, tidy};
use super::{Error, Inbox, Taken};
use crate::fault;
use crate::store::records::MessageRecord;
use crate::store::{Layout, LockName, Record, make_private, sync_dir, write_atomically};

impl Inbox<'_> {
    /// Writes down that a run was told these while it lasts.
    pub(crate) fn told_at_work(&self, attempt: u32, taken: &Taken) -> Result<(), Error> {
        let told = self.folder().join(Layout::run_told_in_lane(attempt));
        let time = told.join((entries(&told)?.len() + 1).to_string());
        for letter in &taken.letters {
            let path = time.join(format!("{}{END}", letter.id));
            write_atomically(&path, letter.message.text(&path)?.as_bytes())?;
        }
        fault::point("inbox.told-at-work");
        self.told(&taken.ids())
    }

    /// Has what a run was told while it lasted wait again, in the place that it had: the work of it was taken back.
    pub(crate) fn put_back(&self, attempt: u32) -> Result<(), Error> {
        let folder = self.folder();
        let times = entries(&folder.join(Layout::run_told_in_lane(attempt)))?;
        if times.is_empty() {
            return Ok(());
        }
        let _lock = self.project.store.locks().take(&LockName::Store)?;
        // As long as they are on record as told, they would not wait.
        tidy(&folder)?;
        let inbox = folder.join(Layout::INBOX);
        make_private(&inbox)?;
        for time in times {
            for path in entries(&time)? {
                if let Some(id) = id_of(&path) {
                    std::fs::rename(&path, file_of(&folder, id)).map_err(Error::io("rename", &path))?;
                }
            }
        }
        Ok(sync_dir(&inbox)?)
    }
}

/// What a run was told while it lasted, each time all of it, by the lane's folder, which may be that of a removed one.
pub(crate) fn told_at_work(folder: &Path, attempt: u32) -> Result<Vec<String>, Error> {
    let waits = ids_in(folder)?;
    let mut out = Vec::new();
    for time in entries(&folder.join(Layout::run_told_in_lane(attempt)))? {
        let mut texts = Vec::new();
        for path in entries(&time)? {
            if id_of(&path).is_some_and(|id| !waits.iter().any(|waiting| waiting == id)) {
                texts.extend(MessageRecord::find(&path)?.map(|message| message.text));
            }
        }
        if !texts.is_empty() {
            out.push(joined(texts.iter().map(String::as_str)));
        }
    }
    Ok(out)
}

/// The name of the message in a file; none for a draft.
fn id_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.strip_suffix(END).filter(|id| !id.starts_with('.'))
}

/// What is in a folder, in order: numbers by their size, names of messages by their time.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", dir)(e)),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(paths)
}
