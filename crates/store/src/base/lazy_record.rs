//! Records that are read when they are first needed.

use std::cell::OnceCell;
use std::path::PathBuf;

use super::record::Record;

/// Record that is read when it is first needed, and at most once. One that cannot be read counts as missing.
#[derive(Debug, Clone)]
pub struct LazyRecord<R> {
    path: PathBuf,
    record: OnceCell<Option<R>>,
}

impl<R: Record> LazyRecord<R> {
    /// Creates the record of the file `path`, which is not read yet.
    pub fn new(path: PathBuf) -> LazyRecord<R> {
        LazyRecord { path, record: OnceCell::new() }
    }

    /// Returns the record; none if it is missing.
    pub fn get(&self) -> Option<&R> {
        self.record.get_or_init(|| R::load_if_exists(&self.path).ok().flatten()).as_ref()
    }
}
