//! Operation journal: the steps an operation is about to take, on disk before they are taken, and its
//! progress.
//!
//! Each operation has one file of JSON lines, in the scratch folder of its process. When the operation has
//! finished, the file moves as one piece to the operation log. Two kernel locks show whether an operation is
//! active. The process itself holds the lock of the folder. Every git process that it starts to change
//! something also holds the lock of the file. Only when both are free is the operation inactive.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proq_base::fail_points;
use proq_git::worktrees::misplaced::WorktreeId;

use super::operation_entry::{
    JournalLine, JournalStep, OperationEntry, OperationHeader, PlannedStep, store_root_above,
};
use super::scratch::ScratchDir;
use crate::Error;
use crate::base::atomic;
use crate::base::clock::Moment;
use crate::base::operation_number::OperationNumber;
use crate::base::store_names::JOURNAL_FILE;
use crate::paths::layout::Layout;

/// Time given to the git processes of a crashed operation to exit.
const GIT_EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Journal of an active operation, open for writing.
#[derive(Debug)]
#[must_use]
pub struct Journal<S> {
    file: File,
    path: PathBuf,
    scratch: ScratchDir,
    /// Contents of the journal so far.
    entry: OperationEntry<S>,
    /// Lines that could not be written; they precede the next line that is written.
    unwritten_lines: Vec<JournalLine<S>>,
    /// Length of the complete lines in the file, in bytes.
    complete_lines_len: u64,
    /// Numbers of finished steps whose lines are not known to be on disk yet.
    unsynced_ended_steps: Vec<usize>,
}

/// Returns the path of the journal in a scratch folder.
pub fn journal_path(scratch: &Path) -> PathBuf {
    scratch.join(JOURNAL_FILE)
}

impl<S: JournalStep> Journal<S> {
    /// Creates a journal with its first steps. They are on disk when this returns.
    pub fn create(
        scratch: ScratchDir,
        mut header: OperationHeader,
        first: JournalLine<S>,
    ) -> Result<Journal<S>, Error> {
        let path = journal_path(scratch.path());
        header.store_root = store_root_above(&path).map(Path::to_owned);
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path);
        let file = file.map_err(Error::io("create", &path))?;
        file.lock().map_err(Error::io("lock", &path))?;
        let entry = OperationEntry { header: header.clone(), steps: Vec::new(), end_and_recovered: None };
        let mut journal = Journal {
            file,
            path,
            scratch,
            entry,
            unwritten_lines: Vec::new(),
            complete_lines_len: 0,
            unsynced_ended_steps: Vec::new(),
        };
        journal.append_lines(&[JournalLine::Open(header), first])?;
        journal.file.sync_data().map_err(Error::io("sync", &journal.path))?;
        atomic::sync_dir(journal.scratch.path())?;
        if let Some(work) = journal.scratch.path().parent() {
            atomic::sync_dir(work)?;
        }
        // From here on only the end of the operation removes the folder. A process that panics also drops its
        // values, and must not remove it.
        journal.scratch.retain();
        fail_points::hit("journal.planned");
        Ok(journal)
    }

    /// Takes over the journal of a crashed process and waits for the git processes that it started. Returns
    /// none where there is no journal, or one without a first line.
    pub fn adopt(mut scratch: ScratchDir) -> Result<Option<Journal<S>>, Error> {
        let path = journal_path(scratch.path());
        let mut file = match OpenOptions::new().read(true).append(true).open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => {
                scratch.retain();
                return Err(Error::io("open", &path)(e));
            }
        };
        // After any failure from here on, the next command must find the folder again.
        scratch.retain();
        lock_after_git_exits(&file, &path)?;
        truncate_torn_line(&mut file, &path)?;
        let Some(entry) = OperationEntry::read(&path)? else {
            drop(std::fs::remove_dir_all(scratch.path()));
            return Ok(None);
        };
        let length = file.metadata().map_err(Error::io("inspect", &path))?.len();
        Ok(Some(Journal {
            file,
            path,
            scratch,
            entry,
            unwritten_lines: Vec::new(),
            complete_lines_len: length,
            unsynced_ended_steps: Vec::new(),
        }))
    }

    /// Updates the folder of every step in a linked worktree. `find_dir` returns the current folder of a
    /// worktree, given its former one. A step whose worktree is not located gets `is_worktree_missing`. The
    /// journal file is not changed.
    pub fn relocate_worktrees(&mut self, find_dir: impl Fn(&WorktreeId, &Path) -> Option<PathBuf>) {
        for PlannedStep { step, worktree, is_worktree_missing: is_gone, .. } in &mut self.entry.steps {
            let Some((worktree, dir)) = worktree.as_ref().zip(step.changed_worktree().map(Path::to_owned))
            else {
                continue;
            };
            match find_dir(worktree, &dir) {
                Some(new_dir) if new_dir != dir => step.relocate(&dir, &new_dir),
                new_dir => *is_gone = new_dir.is_none(),
            }
        }
    }

    /// Returns the contents of the journal so far.
    pub fn entry(&self) -> &OperationEntry<S> {
        &self.entry
    }

    /// Returns the open file, to be inherited by git processes. Its lock shows that the operation is active.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the scratch folder of the process.
    pub fn scratch(&self) -> &ScratchDir {
        &self.scratch
    }

    /// Writes planned steps durably and returns the number of the first one.
    pub fn record_plan(&mut self, line: JournalLine<S>) -> Result<usize, Error> {
        let first = self.entry.steps.len();
        self.append_lines(&[line])?;
        self.file.sync_data().map_err(Error::io("sync", &self.path))?;
        fail_points::hit("journal.planned");
        for n in std::mem::take(&mut self.unsynced_ended_steps) {
            drop(std::fs::remove_dir_all(Layout::scratch_step(self.scratch.path(), n)));
        }
        Ok(first)
    }

    /// Records the progress of a step and returns whether the line was written. A failed write is not an
    /// error: recovery can detect the progress from the repository, and the line precedes the next one that
    /// is written. The folder of a finished step shows the step's progress as long as the line may be lost.
    /// It is therefore removed with the next plan, when the line is on disk.
    pub fn record_progress(&mut self, line: JournalLine<S>) -> bool {
        let written = self.append_lines(std::slice::from_ref(&line)).is_ok();
        match line {
            line if !written => {
                self.entry.apply_line(line.clone());
                self.unwritten_lines.push(line);
            }
            JournalLine::Done(n) | JournalLine::Undone(n) => self.unsynced_ended_steps.push(n),
            _ => {}
        }
        written
    }

    /// Writes the last line and moves the journal to the operation log. Returns its number there.
    pub fn finish(&mut self, at: Moment, recovered: bool) -> Result<OperationNumber, Error> {
        if self.entry.end_and_recovered.is_none() {
            self.append_lines(&[JournalLine::End { at, recovered }])?;
            self.file.sync_data().map_err(Error::io("sync", &self.path))?;
        }
        fail_points::hit("journal.ended");
        let number = self.move_to_log()?;
        drop(crate::base::file_tree::remove_tree(self.scratch.path()));
        Ok(number)
    }

    /// Deletes the journal of an operation that has changed nothing.
    pub fn discard(self) {
        drop(crate::base::file_tree::remove_tree(self.scratch.path()));
    }

    /// Leaves the journal in place, so that the next command recovers the operation.
    pub fn leave_for_recovery(self) {
        drop(self);
    }

    /// Moves the journal to the operation log under the next free number.
    fn move_to_log(&self) -> Result<OperationNumber, Error> {
        let log = self.scratch.layout();
        crate::base::atomic::create_private_dir(&log.operations())?;
        let mut number = last_operation_number(&log.operations()).next();
        loop {
            let log_path = log.operation(number);
            // Two operations that finish concurrently may choose the same number; a name is only ever given
            // once.
            match atomic::rename_no_replace(&self.path, &log_path) {
                Ok(()) => break,
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => number = number.next(),
                Err(e) => return Err(Error::io("move to the operation log", &self.path)(e)),
            }
        }
        Ok(number)
    }

    /// Appends lines, after those that could not be written before, and applies them to the contents.
    fn append_lines(&mut self, lines: &[JournalLine<S>]) -> Result<(), Error> {
        let mut bytes = Vec::new();
        for line in self.unwritten_lines.iter().chain(lines) {
            serde_json::to_writer(&mut bytes, line)
                .map_err(|e| Error::Broken { path: self.path.clone(), source: Box::new(e) })?;
            bytes.push(b'\n');
        }
        // An incomplete line would be ignored and corrupt the next one. If it could not be removed earlier,
        // it is removed now.
        if self.file.metadata().map_err(Error::io("inspect", &self.path))?.len() != self.complete_lines_len {
            self.file.set_len(self.complete_lines_len).map_err(Error::io("write", &self.path))?;
        }
        if let Err(e) = self.file.write_all(&bytes) {
            drop(self.file.set_len(self.complete_lines_len));
            return Err(Error::io("write", &self.path)(e));
        }
        self.complete_lines_len += bytes.len() as u64;
        self.unwritten_lines.clear();
        for line in lines {
            self.entry.apply_line(line.clone());
        }
        Ok(())
    }
}

/// Removes an incomplete last line: it would corrupt the next one.
fn truncate_torn_line(file: &mut File, path: &Path) -> Result<(), Error> {
    let mut text = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut text)).map_err(Error::io("read", path))?;
    let complete_len = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    if complete_len < text.len() {
        file.set_len(complete_len as u64).map_err(Error::io("write", path))?;
    }
    Ok(())
}

/// Locks the journal once the git processes of a crashed operation have exited. Fails after
/// [`GIT_EXIT_TIMEOUT`].
fn lock_after_git_exits(file: &File, path: &Path) -> Result<(), Error> {
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", path)(e)),
            Err(TryLockError::WouldBlock) if since.elapsed() < GIT_EXIT_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked {
                    resource: "an interrupted operation".to_owned(),
                    holder: "a git command that it started and that is still running".to_owned(),
                    seconds: since.elapsed().as_secs(),
                });
            }
        }
    }
}

/// Returns the highest operation number in the log folder; zero when the log is empty.
fn last_operation_number(dir: &Path) -> OperationNumber {
    list_operation_numbers(dir).last().copied().unwrap_or_default()
}

impl Layout {
    /// Returns the numbers of all operations in the log, in order.
    pub fn operation_numbers(&self) -> Vec<OperationNumber> {
        list_operation_numbers(&self.operations())
    }
}

/// Lists the numbers of all operations in a log folder, in order.
fn list_operation_numbers(dir: &Path) -> Vec<OperationNumber> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let number = |name: std::ffi::OsString| name.to_str()?.strip_suffix(".jsonl")?.parse().ok();
    let mut all: Vec<OperationNumber> = entries.filter_map(|e| number(e.file_name())).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests;
