//! Event reader: reads the event log in the order of its numbers, even while it grows and is rotated.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use proq_store::{Error, Store};

use super::log::{Event, EventName};

/// Reader of the event log, which returns each event after a start number once.
#[derive(Debug)]
pub struct EventReader<'a> {
    store: &'a Store,
    /// Number of the last event that was returned.
    last_number: u64,
    /// File that was current at the last poll, and the number of bytes read from it.
    open_file: Option<(File, u64)>,
}

impl<'a> EventReader<'a> {
    /// Creates a reader that starts after the event with this number.
    pub fn start_after(store: &'a Store, last_number: u64) -> EventReader<'a> {
        EventReader { store, last_number, open_file: None }
    }

    /// Returns the number of the last event that was read, or after which reading starts.
    pub fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Returns the new events, each once. An incomplete line is left for the next call.
    ///
    /// # Errors
    /// Fails when an existing file of the log cannot be read.
    pub fn poll(&mut self) -> Result<Vec<Event>, Error> {
        let mut out = Vec::new();
        self.read_open_file(&mut out)?;
        let path = self.store.layout().event_log();
        // The current file is opened before the full ones are listed. A file that is already full is on the
        // list; one that becomes full later stays open here.
        let Some(current) = open_if_exists(&path)? else {
            if self.open_file.is_none() {
                self.read_full_files(&mut out)?;
            }
            return Ok(out);
        };
        if let Some((file, _)) = &self.open_file
            && is_same_file(file, &current).map_err(Error::io("inspect", &path))?
        {
            return Ok(out);
        }
        self.read_full_files(&mut out)?;
        self.open_file = Some((current, 0));
        self.read_open_file(&mut out)?;
        Ok(out)
    }

    /// Reads the log files that are already full, as far as they have new events.
    fn read_full_files(&mut self, out: &mut Vec<Event>) -> Result<(), Error> {
        let full_logs = self.store.layout().list_full_event_logs();
        for (index, (_, path)) in full_logs.iter().enumerate() {
            if full_logs.get(index + 1).is_some_and(|(next, _)| *next <= self.last_number.saturating_add(1)) {
                continue;
            }
            // A file that was too old may have been removed concurrently.
            if let Some(file) = open_if_exists(path)? {
                self.open_file = Some((file, 0));
                self.read_open_file(out)?;
            }
        }
        Ok(())
    }

    /// Reads the new complete lines of the open log file, and appends their events to `out`.
    fn read_open_file(&mut self, out: &mut Vec<Event>) -> Result<(), Error> {
        let Some((file, offset)) = &mut self.open_file else { return Ok(()) };
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(*offset))
            .and_then(|_| file.read_to_end(&mut bytes))
            .map_err(Error::io("read", &self.store.layout().event_log()))?;
        let complete_len = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        *offset += complete_len as u64;
        for line in bytes[..complete_len].split(|b| *b == b'\n') {
            let Ok(event) = serde_json::from_slice::<Event>(line) else { continue };
            if event.n > self.last_number {
                self.last_number = event.n;
                out.push(event);
            }
        }
        Ok(())
    }
}

/// Number of bytes at the end of the log that [`recent_events`] reads.
const RECENT_BYTES: u64 = 1024 * 1024;

/// Returns the events with one of these names in the last mebibyte of the log's current file, oldest first.
/// A log that cannot be read counts as empty.
#[must_use]
pub fn recent_events(store: &Store, names: &[EventName]) -> Vec<Event> {
    let Ok(Some(mut file)) = open_if_exists(&store.layout().event_log()) else { return Vec::new() };
    let mut bytes = Vec::new();
    let start = file.metadata().map_or(0, |meta| meta.len().saturating_sub(RECENT_BYTES));
    if file.seek(SeekFrom::Start(start)).and_then(|_| file.read_to_end(&mut bytes)).is_err() {
        return Vec::new();
    }
    let quoted_names: Vec<String> = names.iter().map(|name| format!("\"{}\"", name.to_text())).collect();
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter(|line| quoted_names.iter().any(|name| line.contains(name)));
    lines
        .filter_map(|line| serde_json::from_str::<Event>(line).ok())
        .filter(|event| names.contains(&event.name))
        .collect()
}

/// Opens a file of the log; none when it does not exist.
fn open_if_exists(path: &Path) -> Result<Option<File>, Error> {
    match proq_base::regular_file::open_store_file(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", path)(e)),
    }
}

/// Returns whether two open files have the same device and inode number.
fn is_same_file(first: &File, second: &File) -> std::io::Result<bool> {
    let id = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino()));
    Ok(id(first)? == id(second)?)
}
