//! Owns what was sent to a lane and that its agent has not been told yet. Each message is a file; they are told in the order
//! in which they were sent.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Error;
use crate::lane::{self, Project};
use crate::store::write_atomically;

/// The messages that wait for one lane's agent.
pub(crate) struct Inbox {
    dir: PathBuf,
}

/// What waits, to be taken away once it has been passed on.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Waiting {
    files: Vec<PathBuf>,
    /// All of it, one after the other.
    pub(super) text: String,
}

impl Inbox {
    /// The inbox of a lane.
    pub(crate) fn of(project: &Project, lane: &str) -> Inbox {
        Inbox { dir: project.store.layout().inbox(lane) }
    }

    /// Adds a message.
    pub(crate) fn put(&self, text: &str) -> Result<(), Error> {
        // Names rise with time; two of the same moment differ.
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("{at:024}-{}.md", std::process::id());
        Ok(write_atomically(&self.dir.join(name), text.as_bytes())?)
    }

    /// Whether anything waits.
    pub(super) fn is_waiting(&self) -> bool {
        !self.files().is_empty()
    }

    /// Reads what waits.
    pub(super) fn read(&self) -> Result<Waiting, Error> {
        let mut waiting = Waiting { files: self.files(), text: String::new() };
        for file in &waiting.files {
            let text = std::fs::read_to_string(file).map_err(lane::Error::io("read", file))?;
            if !waiting.text.is_empty() {
                waiting.text.push_str("\n\n");
            }
            waiting.text.push_str(text.trim_end());
        }
        Ok(waiting)
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|e| e == "md"))
            .collect();
        files.sort();
        files
    }
}

impl Waiting {
    /// Takes the messages away. Until then a killed process leaves them where they are, to be told once more.
    pub(super) fn done(self) {
        for file in self.files {
            drop(std::fs::remove_file(file));
        }
    }
}
