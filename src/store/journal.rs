//! Owns the journal: what an operation is about to do, on disk before it is done, and how far it has come.
//!
//! One file of JSON lines for each operation, in the folder of the process at work; when the operation has ended it moves,
//! whole, to the operation log. Two kernel locks tell how it stands: the folder's is held by the process itself, the
//! file's also by every git process that it starts to change something. Only when both are free is nobody at work.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::records::Step;
use super::{Error, Moment, Scratch, atomic};
use crate::fault;
use crate::git::WorktreeId;

/// The newest form of the lines that is written and understood.
const FORMAT: u32 = 1;
/// How long the git processes of a dead operation are given to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Which operation, and whose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The form of the lines.
    pub(crate) format: u32,
    /// What no other operation is called.
    pub(crate) id: String,
    /// When it began.
    pub(crate) at: Moment,
    /// What was typed.
    pub(crate) command: String,
    /// What kind it is, as a word: `merge`.
    pub(crate) kind: String,
    /// The process, on its host.
    pub(crate) pid: u32,
    /// The machine.
    pub(crate) host: String,
    /// The terminal session that the process belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<i32>,
    /// The operations that this one takes back, by their numbers in the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) undoes: Vec<u64>,
    /// The undo that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) redoes: Option<u64>,
    /// The command that it is a part of, where all operations of that are taken back together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) together: Option<String>,
    /// The folder with everything of git-proq's, as it was called then: a repository that is moved or copied takes its operations along.
    #[serde(default, with = "super::path_form::option", skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<PathBuf>,
}

impl Header {
    /// The header of an operation of this process.
    pub(crate) fn new(kind: &str) -> Header {
        let me = super::Holder::me();
        Header {
            format: FORMAT,
            id: super::new_id(),
            at: me.since,
            command: me.command,
            kind: kind.to_owned(),
            pid: me.pid,
            host: me.host,
            session: super::holder::terminal_session(),
            undoes: Vec::new(),
            redoes: None,
            together: None,
            root: None,
        }
    }

    /// Whether it was begun in the terminal session that this process belongs to.
    pub(crate) fn is_of_this_session(&self) -> bool {
        let me = Header::new("");
        (&self.host, self.session) == (&me.host, me.session)
    }

    /// Whether the process of the operation ran on this machine.
    pub(crate) fn is_of_this_host(&self) -> bool {
        self.host == Header::new("").host
    }
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line {
    /// The first line.
    Open(Header),
    /// Steps that are about to be taken.
    Plan {
        /// The steps, in order.
        steps: Vec<Step>,
        /// The linked worktree that each of them changes; left out where none of them changes one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        worktrees: Vec<Option<WorktreeId>>,
        /// Once the first of them has happened, the others follow whatever comes; otherwise all are taken back.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        forward: bool,
        /// They take back the step of this number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<usize>,
    },
    /// The step of this number has happened.
    Done(usize),
    /// The step of this number has not happened, or was taken back.
    Back(usize),
    /// Nothing more comes.
    End {
        /// When.
        at: Moment,
        /// Whether another process had to end it.
        recovered: bool,
    },
}

/// How a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// It was about to be taken.
    Open,
    /// It has happened.
    Done,
    /// It has not happened, or was taken back.
    Back,
}

/// A step of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    /// What it changes.
    pub(crate) step: Step,
    /// How it stands.
    pub(crate) status: Status,
    /// The number of the first step that was planned with it, if all of them belong together.
    pub(crate) forward: Option<usize>,
    /// The number of the step that it takes back.
    pub(crate) of: Option<usize>,
    /// The linked worktree that it changes.
    pub(crate) worktree: Option<WorktreeId>,
    /// Whether that was found nowhere.
    pub(crate) is_gone: bool,
}

/// What a journal says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Which operation.
    pub(crate) header: Header,
    /// Its steps, in order.
    pub(crate) steps: Vec<Planned>,
    /// When it ended, and whether another process had to end it.
    pub(crate) end: Option<(Moment, bool)>,
}

impl Entry {
    /// Reads a journal; none when it holds no whole first line: then nothing had been begun. A last line that was cut
    /// short never came to be.
    ///
    /// # Errors
    /// [`Error::Newer`] for one that a newer program wrote.
    pub(crate) fn read(path: &Path) -> Result<Option<Entry>, Error> {
        let mut text = Vec::new();
        match crate::regular_file::open_record(path)
            .and_then(|f| f.take(crate::regular_file::RECORD).read_to_end(&mut text))
        {
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read", path)(e)),
        }
        let mut lines = text.split_inclusive(|b| *b == b'\n').filter(|l| l.ends_with(b"\n"));
        let Some(first) = lines.next() else { return Ok(None) };
        let broken = |e: serde_json::Error| Error::Broken { path: path.to_owned(), source: Box::new(e) };
        let header = match serde_json::from_slice(first) {
            Ok(Line::Open(header)) => header,
            Ok(_) => return Err(broken(serde::de::Error::custom("it does not begin as it should"))),
            Err(e) => return Err(newer(path, first).unwrap_or_else(|| broken(e))),
        };
        if header.format > FORMAT {
            return Err(Error::Newer { path: path.to_owned(), found: header.format, known: FORMAT });
        }
        let mut entry = Entry { header, steps: Vec::new(), end: None };
        for line in lines {
            entry.take(serde_json::from_slice(line).map_err(broken)?);
        }
        if let Some((then, now)) = entry.header.root.as_deref().zip(root_above(path)).filter(|(a, b)| a != b)
        {
            let (then, now) = (repository_of(then), repository_of(now));
            entry.steps.iter_mut().for_each(|planned| planned.step.relocate(then, now));
        }
        Ok(Some(entry))
    }

    /// Takes up one line.
    pub(crate) fn take(&mut self, line: Line) {
        match line {
            Line::Open(_) => {}
            Line::Plan { steps, worktrees, forward, of } => {
                let forward = forward.then_some(self.steps.len());
                let worktrees = worktrees.into_iter().chain(std::iter::repeat(None));
                self.steps.extend(steps.into_iter().zip(worktrees).map(|(step, worktree)| Planned {
                    step,
                    status: Status::Open,
                    forward,
                    of,
                    worktree,
                    is_gone: false,
                }));
            }
            Line::Done(n) => self.mark(n, Status::Done),
            Line::Back(n) => self.mark(n, Status::Back),
            Line::End { at, recovered } => self.end = Some((at, recovered)),
        }
    }

    fn mark(&mut self, n: usize, status: Status) {
        if let Some(planned) = self.steps.get_mut(n) {
            planned.status = status;
        }
    }

    /// The steps that have happened and stand.
    pub(crate) fn standing(&self) -> impl DoubleEndedIterator<Item = &Step> {
        let stands = |p: &&Planned| p.status == Status::Done && p.of.is_none() && !p.step.is_fleeting();
        self.steps.iter().filter(stands).map(|p| &p.step)
    }
}

/// The folder with everything of git-proq's that a journal lies in.
fn root_above(journal: &Path) -> Option<&Path> {
    journal.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == super::layout::ROOT))
}

/// The folder of the repository that such a folder belongs to.
fn repository_of(root: &Path) -> &Path {
    let git_dir = root.parent().unwrap_or(root);
    let is_inside = git_dir.file_name().is_some_and(|name| name == ".git");
    git_dir.parent().filter(|_| is_inside).unwrap_or(git_dir)
}

/// The error for a first line of a newer form, which may have fields that are not known here.
fn newer(path: &Path, line: &[u8]) -> Option<Error> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    let found = u32::try_from(value.get("open")?.get("format")?.as_u64()?).ok()?;
    (found > FORMAT).then(|| Error::Newer { path: path.to_owned(), found, known: FORMAT })
}

/// The journal of an operation under way, for writing.
#[derive(Debug)]
#[must_use]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    scratch: Scratch,
    entry: Entry,
    /// Notes that could not be written; they go before whatever is written next.
    unwritten: Vec<Line>,
    /// How much of the file is whole lines, in bytes.
    length: u64,
    /// The steps whose end is noted and not yet known to be on disk.
    ended: Vec<usize>,
}

impl Journal {
    /// Where the journal lies in the folder of the process at work.
    pub(crate) fn file_in(scratch: &Path) -> PathBuf {
        scratch.join("journal")
    }

    /// Begins a journal with its first steps; they are on disk when this returns.
    pub(crate) fn begin(scratch: Scratch, mut header: Header, first: Line) -> Result<Journal, Error> {
        let path = Journal::file_in(scratch.path());
        header.root = root_above(&path).map(Path::to_owned);
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path);
        let file = file.map_err(Error::io("create", &path))?;
        file.lock().map_err(Error::io("lock", &path))?;
        let entry = Entry { header: header.clone(), steps: Vec::new(), end: None };
        let mut journal =
            Journal { file, path, scratch, entry, unwritten: Vec::new(), length: 0, ended: Vec::new() };
        journal.write(&[Line::Open(header), first])?;
        journal.file.sync_data().map_err(Error::io("sync", &journal.path))?;
        atomic::sync_dir(journal.scratch.path())?;
        if let Some(work) = journal.scratch.path().parent() {
            atomic::sync_dir(work)?;
        }
        // From here on it goes when its operation has ended, and not before: a process that panics drops what it holds, too.
        journal.scratch.keep();
        fault::point("journal.planned");
        Ok(journal)
    }

    /// Takes over what a dead process left; none when it left no journal, or one without a first line. Waits for the git
    /// processes that it started.
    pub(crate) fn adopt(mut scratch: Scratch) -> Result<Option<Journal>, Error> {
        let path = Journal::file_in(scratch.path());
        let mut file = match OpenOptions::new().read(true).append(true).open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => {
                scratch.keep();
                return Err(Error::io("open", &path)(e));
            }
        };
        // Whatever goes wrong from here on, the next command must find it again.
        scratch.keep();
        wait_for(&file, &path)?;
        cut_torn_line(&mut file, &path)?;
        let Some(entry) = Entry::read(&path)? else {
            drop(std::fs::remove_dir_all(scratch.path()));
            return Ok(None);
        };
        let length = file.metadata().map_err(Error::io("look at", &path))?.len();
        Ok(Some(Journal { file, path, scratch, entry, unwritten: Vec::new(), length, ended: Vec::new() }))
    }

    /// Has each step in a linked worktree name the folder that `place` finds for it, given the folder where it was. The file goes on to
    /// name that one.
    pub(crate) fn relocate(&mut self, place: impl Fn(&WorktreeId, &Path) -> Option<PathBuf>) {
        for Planned { step, worktree, is_gone, .. } in &mut self.entry.steps {
            let Some((worktree, dir)) = worktree.as_ref().zip(step.worktree().map(Path::to_owned)) else {
                continue;
            };
            match place(worktree, &dir) {
                Some(now) if now != dir => step.relocate(&dir, &now),
                now => *is_gone = now.is_none(),
            }
        }
    }

    /// What it says so far.
    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The open file whose lock shows that somebody is at work, to hand it down to git.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The folder of the process at work.
    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Writes down what is about to be done and makes it durable. Returns the number of the first step.
    pub(crate) fn plan(&mut self, line: Line) -> Result<usize, Error> {
        let first = self.entry.steps.len();
        self.write(&[line])?;
        self.file.sync_data().map_err(Error::io("sync", &self.path))?;
        fault::point("journal.planned");
        for n in std::mem::take(&mut self.ended) {
            drop(std::fs::remove_dir_all(self.scratch.path().join(n.to_string())));
        }
        Ok(first)
    }

    /// Notes how far it has come. Returns whether that is written down; when it cannot be, it can be seen later from what
    /// is there, so it is no failure, and it is written before whatever comes next. The folder of a step that has ended goes once that is
    /// on disk, with the next plan: without the note it is what tells how the step stands.
    pub(crate) fn note(&mut self, line: Line) -> bool {
        let written = self.write(std::slice::from_ref(&line)).is_ok();
        match line {
            line if !written => {
                self.entry.take(line.clone());
                self.unwritten.push(line);
            }
            Line::Done(n) | Line::Back(n) => self.ended.push(n),
            _ => {}
        }
        written
    }

    /// Notes that nothing more comes, and moves the journal to the log. Returns its number there.
    pub(crate) fn end(&mut self, at: Moment, recovered: bool) -> Result<u64, Error> {
        if self.entry.end.is_none() {
            self.write(&[Line::End { at, recovered }])?;
            self.file.sync_data().map_err(Error::io("sync", &self.path))?;
        }
        fault::point("journal.ended");
        let number = self.file_away()?;
        drop(super::remove_tree(self.scratch.path()));
        Ok(number)
    }

    /// Forgets an operation that has changed nothing.
    pub(crate) fn forget(self) {
        drop(super::remove_tree(self.scratch.path()));
    }

    /// Leaves everything for the next command.
    pub(crate) fn leave(self) {
        drop(self);
    }

    fn file_away(&self) -> Result<u64, Error> {
        let log = self.scratch.layout();
        super::make_private(&log.operations())?;
        let mut number = last_number(&log.operations()) + 1;
        loop {
            let to = log.operation(number);
            // Two that end at once may have chosen the same number; a name is only ever given once.
            match atomic::rename_new(&self.path, &to) {
                Ok(()) => break,
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(Error::io("move to the operation log", &self.path)(e)),
            }
        }
        Ok(number)
    }

    fn write(&mut self, lines: &[Line]) -> Result<(), Error> {
        let mut bytes = Vec::new();
        for line in self.unwritten.iter().chain(lines) {
            serde_json::to_writer(&mut bytes, line)
                .map_err(|e| Error::Broken { path: self.path.clone(), source: Box::new(e) })?;
            bytes.push(b'\n');
        }
        // Half a line would be read as none, and hide the next one. Where it could not be taken away, it is now.
        if self.file.metadata().map_err(Error::io("look at", &self.path))?.len() != self.length {
            self.file.set_len(self.length).map_err(Error::io("write", &self.path))?;
        }
        if let Err(e) = self.file.write_all(&bytes) {
            drop(self.file.set_len(self.length));
            return Err(Error::io("write", &self.path)(e));
        }
        self.length += bytes.len() as u64;
        self.unwritten.clear();
        for line in lines {
            self.entry.take(line.clone());
        }
        Ok(())
    }
}

/// Takes away a last line that was cut short: it would hide the next one.
fn cut_torn_line(file: &mut File, path: &Path) -> Result<(), Error> {
    let mut text = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut text)).map_err(Error::io("read", path))?;
    let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    if whole < text.len() {
        file.set_len(whole as u64).map_err(Error::io("write", path))?;
    }
    Ok(())
}

fn wait_for(file: &File, path: &Path) -> Result<(), Error> {
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", path)(e)),
            Err(TryLockError::WouldBlock) if since.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked {
                    what: "an operation that was cut short".to_owned(),
                    holder: "a git command that it started and that still runs".to_owned(),
                    seconds: since.elapsed().as_secs(),
                });
            }
        }
    }
}

/// The highest number in the log; zero when it is empty.
fn last_number(dir: &Path) -> u64 {
    numbers(dir).last().copied().unwrap_or(0)
}

impl super::Layout {
    /// The numbers of all operations in the log, in order.
    pub(crate) fn operation_numbers(&self) -> Vec<u64> {
        numbers(&self.operations())
    }
}

/// The numbers of all operations in a log, in order.
fn numbers(dir: &Path) -> Vec<u64> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let number = |name: std::ffi::OsString| name.to_str()?.strip_suffix(".jsonl")?.parse().ok();
    let mut all: Vec<u64> = entries.filter_map(|e| number(e.file_name())).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests;
