//! Owns what is on disk before something relies on it: git syncs refs where it is asked to, and loose objects of its own commands never.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::threads::in_threads;
use super::{Error, Oid, Repo};
use crate::regular_file;

/// A file that was not written to for so long is on disk: systems write everything within a minute, at rest within ten.
const SETTLED: Duration = Duration::from_hours(1);

/// Where there are more objects than this, all of their disk is written at once.
const MOST: usize = 256;

/// Makes files and folders durable, as far as they are there and may be read.
pub(super) fn sync_all(paths: &[PathBuf]) -> Result<(), Error> {
    // A folder above a worktree may be closed to reading, and a git of another kind may do without one of the files.
    sync_opened(paths, |path| File::open(path), &[ErrorKind::NotFound, ErrorKind::PermissionDenied])
}

/// Makes regular files durable, as far as they are there and may be read. What stands in the place of one, a pipe or a link, is
/// somebody's: it is neither waited for nor followed.
pub(super) fn sync_files(paths: &[PathBuf]) -> Result<(), Error> {
    let absent = [
        ErrorKind::NotFound,
        ErrorKind::PermissionDenied,
        ErrorKind::NotADirectory,
        // Something else than a file.
        ErrorKind::InvalidInput,
    ];
    sync_opened(paths, |path| regular_file::open_record(path), &absent)
}

/// Makes durable what `open` opens, and leaves out what it cannot open for a reason that is in `absent`.
fn sync_opened(
    paths: &[PathBuf],
    open: impl Fn(&Path) -> std::io::Result<File> + Sync,
    absent: &[ErrorKind],
) -> Result<(), Error> {
    let sync = |path: &PathBuf| match open(path) {
        Err(e) if absent.contains(&e.kind()) => Ok(()),
        opened => opened.and_then(|file| file.sync_all()).map_err(Error::io("write", path)),
    };
    // A disk does several at once in the time of one.
    in_threads(paths, sync).into_iter().collect()
}

/// Makes all files below a folder durable, and whatever else its file system has not written yet: for many files that is faster than
/// one after the other.
///
/// # Errors
/// When the folder cannot be opened or the disk cannot be written to.
pub(crate) fn sync_file_system(dir: &Path) -> Result<(), Error> {
    #[cfg(target_os = "linux")]
    let synced = File::open(dir).and_then(|dir| Ok(rustix::fs::syncfs(dir)?));
    #[cfg(not(target_os = "linux"))]
    let synced = {
        rustix::fs::sync();
        Ok(())
    };
    synced.map_err(Error::io("write", dir))
}

impl Repo {
    /// Makes durable what `to` leads to and `from` does not: commits that somebody has only just made lie in files that git did not sync,
    /// and a ref which is on disk before them leads to nothing after a power cut.
    ///
    /// # Errors
    /// When a file cannot be written to its disk.
    pub(super) fn sync_new_objects(&self, to: Oid, from: Oid) -> Result<(), Error> {
        // A commit is written after everything that it leads to, and packs are synced.
        if to == from || !self.is_unsettled(to) {
            return Ok(());
        }
        let call = self.git().args(["rev-list", "--objects", "--no-object-names", "--missing=allow-any"]);
        let files = call.arg(to.to_string()).arg(format!("^{from}")).run().ok().map(|out| {
            let ids = out.stdout.split(|b| *b == b'\n').filter_map(Oid::from_hex);
            ids.filter(|id| self.is_unsettled(*id)).map(|id| self.loose_file(id)).collect::<Vec<PathBuf>>()
        });
        match files.filter(|files| files.len() <= MOST) {
            Some(files) => sync_all(&files),
            None => sync_file_system(&self.common_dir().join("objects")),
        }
    }

    /// Whether an object lies in a file of its own that may not be on disk yet.
    fn is_unsettled(&self, id: Oid) -> bool {
        let written = self.loose_file(id).metadata().and_then(|meta| meta.modified());
        // A time that lies ahead says nothing.
        written.is_ok_and(|at| at.elapsed().map_or(true, |age| age < SETTLED))
    }

    /// Makes the tables durable that refs are in: git syncs a table, and then writes its last bytes. The refs have moved, so what fails
    /// here is no failure of the move.
    pub(super) fn sync_tables(&self, git_dir: &Path) {
        if !self.is_reftable() {
            return;
        }
        for folder in [self.common_dir(), git_dir].map(|dir| dir.join("reftable")) {
            let tables = folder.read_dir().into_iter().flatten().flatten().map(|table| table.path());
            drop(sync_all(&tables.chain([folder.clone()]).collect::<Vec<_>>()));
        }
    }
}
