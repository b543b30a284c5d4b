//! Owns reading the event log in the order of its numbers, also while it grows and while its file is changed for a new one.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Event;
use crate::store::{Error, Store};

/// A place in the log: everything up to some number has been read.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    store: &'a Store,
    /// The number of the last event that was given out.
    last: u64,
    /// The file that grew when it was last looked at, and how much of it was read.
    open: Option<(File, u64)>,
}

impl<'a> Reader<'a> {
    /// A reader that begins with the event after number `last`.
    pub(crate) fn after(store: &'a Store, last: u64) -> Reader<'a> {
        Reader { store, last, open: None }
    }

    /// The number of the last event that was read, or that reading was to begin after.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The events that have come since, each once. One that is being written is left for the next time.
    ///
    /// # Errors
    /// When a file of the log is there and cannot be read.
    pub(crate) fn poll(&mut self) -> Result<Vec<Event>, Error> {
        let mut out = Vec::new();
        self.drain(&mut out)?;
        let path = self.store.layout().events();
        // Opened before the full ones are listed: what is full by then is on the list, and what fills up later is held open.
        let Some(current) = open(&path)? else {
            if self.open.is_none() {
                self.catch_up(&mut out)?;
            }
            return Ok(out);
        };
        if let Some((file, _)) = &self.open
            && is_same(file, &current).map_err(Error::io("look at", &path))?
        {
            return Ok(out);
        }
        self.catch_up(&mut out)?;
        self.open = Some((current, 0));
        self.drain(&mut out)?;
        Ok(out)
    }

    /// Reads the files that are full, as far as they have anything new.
    fn catch_up(&mut self, out: &mut Vec<Event>) -> Result<(), Error> {
        let full = self.store.layout().all_full_events();
        for (at, (_, path)) in full.iter().enumerate() {
            if full.get(at + 1).is_some_and(|(next, _)| *next <= self.last.saturating_add(1)) {
                continue;
            }
            // One that is too old to be kept may have gone meanwhile.
            if let Some(file) = open(path)? {
                self.open = Some((file, 0));
                self.drain(out)?;
            }
        }
        Ok(())
    }

    /// Reads the open file as far as it has whole lines.
    fn drain(&mut self, out: &mut Vec<Event>) -> Result<(), Error> {
        let Some((file, at)) = &mut self.open else { return Ok(()) };
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(*at))
            .and_then(|_| file.read_to_end(&mut bytes))
            .map_err(Error::io("read", &self.store.layout().events()))?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        *at += whole as u64;
        for line in bytes[..whole].split(|b| *b == b'\n') {
            let Ok(event) = serde_json::from_slice::<Event>(line) else { continue };
            if event.n > self.last {
                self.last = event.n;
                out.push(event);
            }
        }
        Ok(())
    }
}

fn open(path: &Path) -> Result<Option<File>, Error> {
    match crate::regular_file::open_record(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", path)(e)),
    }
}

fn is_same(one: &File, other: &File) -> std::io::Result<bool> {
    let id = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino()));
    Ok(id(one)? == id(other)?)
}
