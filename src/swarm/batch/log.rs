//! Owns the log of a batch: what its scheduler was told, line by line, each on disk before it counts.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::git::{Oid, RepoPath};
use crate::store::records::{Cost, Tokens};
use crate::store::{Error, Moment, now};
use crate::swarm::schedule::Event;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    /// Something happened.
    Entry(Box<Entry>),
    /// Something that decides nothing and that a person should know.
    Note {
        /// Its number.
        n: u64,
        /// When.
        at: Moment,
        /// What.
        note: String,
        /// The tasks that it is about.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<usize>,
    },
}

/// Something that happened to a batch. `event` has its name; tasks and lanes go by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its number, from 1, without gaps.
    pub(crate) n: u64,
    /// When.
    pub(crate) at: Moment,
    /// What.
    #[serde(flatten)]
    pub(crate) event: Event,
    /// More about it. The scheduler does not go by that.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub(crate) facts: Facts,
}

/// What is known of an event besides. What does not apply to one is left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Facts {
    /// The name of the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<String>,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// With which model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The number of the run in its lane; of several that one attempt took, the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<u32>,
    /// When that began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) began: Option<Moment>,
    /// Where a task's work begins in its lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Oid>,
    /// Where it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<Oid>,
    /// What it cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Cost>,
    /// What it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Tokens>,
    /// What landed, and with which commits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) brought: Vec<Brought>,
    /// Where the branch is since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tip: Option<Oid>,
    /// The checks that succeeded with it before it landed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) checks: Vec<String>,
    /// The files in conflict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<RepoPath>,
    /// The check that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<String>,
    /// What it wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<PathBuf>,
    /// The task that a lane was being made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<usize>,
    /// The batch that has a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<String>,
    /// More, in a line for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// The wish that it answers. One that is in the log is not taken up again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wish: Option<String>,
}

/// A task that landed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Brought {
    /// The task.
    pub(crate) task: usize,
    /// The commit with which all of it was on the branch.
    pub(crate) commit: Oid,
}

impl Facts {
    fn is_empty(&self) -> bool {
        *self == Facts::default()
    }

    /// Nothing but this line.
    pub(crate) fn saying(detail: impl Into<String>) -> Facts {
        Facts { detail: Some(crate::harmless::line(&detail.into())), ..Facts::default() }
    }
}

impl Line {
    /// The event, if it is one.
    pub(crate) fn event(&self) -> Option<&Event> {
        self.entry().map(|entry| &entry.event)
    }

    /// The same with all that is known of it.
    pub(crate) fn entry(&self) -> Option<&Entry> {
        match self {
            Line::Entry(entry) => Some(entry),
            Line::Note { .. } => None,
        }
    }

    /// When.
    pub(crate) fn at(&self) -> Moment {
        match self {
            Line::Entry(entry) => entry.at,
            Line::Note { at, .. } => *at,
        }
    }

    fn n(&self) -> u64 {
        match self {
            Line::Entry(entry) => entry.n,
            Line::Note { n, .. } => *n,
        }
    }
}

/// The log, open for adding to it. Only who holds the batch's lock does so.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    length: u64,
    last: u64,
}

impl Log {
    /// Opens the log of a batch, and answers what it says. What was only half written is taken off its end.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub(crate) fn open(path: &Path) -> Result<(Log, Vec<Line>), Error> {
        let lines = read_log(path)?;
        let open = File::options().append(true).create(true).open(path);
        let file = open.map_err(Error::io("open", path))?;
        let text = crate::regular_file::record(path).map_err(Error::io("read", path))?;
        let length = (text.len() - unfinished_end(&text)) as u64;
        if length < text.len() as u64 {
            file.set_len(length).map_err(Error::io("write", path))?;
        }
        let last = lines.last().map_or(0, Line::n);
        Ok((Log { file, path: path.to_owned(), length, last }, lines))
    }

    /// Adds an event. It is on disk when this returns.
    ///
    /// # Errors
    /// When it could not be written; nothing is left of it then.
    pub(crate) fn add(&mut self, event: &Event, facts: Facts) -> Result<Line, Error> {
        let entry = Entry { n: self.last + 1, at: now(), event: event.clone(), facts };
        self.append(Line::Entry(Box::new(entry)))
    }

    /// Adds a remark.
    ///
    /// # Errors
    /// As [`Log::add`].
    pub(crate) fn note(&mut self, note: &str, tasks: &[usize]) -> Result<Line, Error> {
        let note = crate::harmless::line(note);
        self.append(Line::Note { n: self.last + 1, at: now(), note, tasks: tasks.to_vec() })
    }

    fn append(&mut self, line: Line) -> Result<Line, Error> {
        let failed = |e| Error::io("write", &self.path)(e);
        let mut bytes = serde_json::to_vec(&line).map_err(|e| failed(e.into()))?;
        bytes.push(b'\n');
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        if let Err(e) = written {
            // The next try begins where this one did.
            drop(self.file.set_len(self.length));
            drop(self.file.seek(SeekFrom::End(0)));
            return Err(Error::io("write", &self.path)(e));
        }
        self.length += bytes.len() as u64;
        self.last += 1;
        Ok(line)
    }
}

/// How many bytes at the end of a log are no whole line.
fn unfinished_end(text: &[u8]) -> usize {
    text.len() - text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1)
}

/// Reads a log as far as it is written. One that is not there yet says nothing.
///
/// # Errors
/// When it cannot be read, or a whole line of it is none of this form.
pub(crate) fn read_log(path: &Path) -> Result<Vec<Line>, Error> {
    let text = match crate::regular_file::record(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", path)(e)),
    };
    lines_of(path, &text[..text.len() - unfinished_end(&text)])
}

fn lines_of(path: &Path, whole: &[u8]) -> Result<Vec<Line>, Error> {
    let lines = whole.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let line = |line: &[u8]| {
        let broken = |e| Error::Broken { path: path.to_owned(), source: Box::new(e) };
        serde_json::from_slice(line).map_err(broken)
    };
    lines.map(line).collect()
}

/// A log that is read while it grows: each look reads what has come since, and nothing when nothing has.
#[derive(Debug)]
pub(crate) struct LogTail {
    path: PathBuf,
    /// How much of it was read.
    at: u64,
    /// The number of the last line that was given out.
    last: u64,
    /// How many bytes have been read in all.
    #[cfg(test)]
    cost: u64,
}

impl LogTail {
    /// Reads the log at `path` from its beginning.
    pub(crate) fn of(path: PathBuf) -> LogTail {
        LogTail {
            path,
            at: 0,
            last: 0,
            #[cfg(test)]
            cost: 0,
        }
    }

    /// The lines that have come since, each once.
    ///
    /// # Errors
    /// As [`read_log`].
    pub(crate) fn more(&mut self) -> Result<Vec<Line>, Error> {
        let length = match std::fs::metadata(&self.path) {
            Ok(meta) => meta.len(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("look at", &self.path)(e)),
        };
        if length == self.at {
            return Ok(Vec::new());
        }
        // A line that could not be synced is taken back, and may be written as another one: what follows begins elsewhere then.
        let lines = match self.from(self.at.min(length)) {
            Err(_) if self.at > 0 => self.from(0)?,
            lines => lines?,
        };
        let new: Vec<Line> = lines.into_iter().filter(|line| line.n() > self.last).collect();
        self.last = new.last().map_or(self.last, Line::n);
        Ok(new)
    }

    /// The whole lines behind a place.
    fn from(&mut self, at: u64) -> Result<Vec<Line>, Error> {
        let mut text = Vec::new();
        File::open(&self.path)
            .and_then(|mut file| file.seek(SeekFrom::Start(at)).and_then(|_| file.read_to_end(&mut text)))
            .map_err(Error::io("read", &self.path))?;
        let whole = text.len() - unfinished_end(&text);
        let lines = lines_of(&self.path, &text[..whole])?;
        self.at = at + whole as u64;
        #[cfg(test)]
        {
            self.cost += text.len() as u64;
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::records::RunClass;
    use crate::swarm::schedule::End;

    #[test]
    fn lines_read_back_and_half_a_line_at_the_end_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let (mut log, lines) = Log::open(&path).unwrap();
        assert!(lines.is_empty());
        let events = [
            Event::Begun,
            Event::Ended { task: 3, attempt: 2, end: End::Failed(RunClass::Stalled) },
            Event::Slots { room: None },
            Event::TakenUp { runs: vec![(1, 2)] },
        ];
        for event in &events {
            let _ = log.add(event, Facts::default()).unwrap();
        }
        let _ = log.note("a hook\nrefused it", &[3]).unwrap();
        let _ = log.add(&Event::Landed { tasks: vec![1] }, Facts::saying("x")).unwrap();
        let mut text = std::fs::read(&path).unwrap();
        text.extend(b"{\"n\":7,\"at\":\"2026");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(read_log(&path).unwrap().len(), 6);
        let (mut log, lines) = Log::open(&path).unwrap();
        let read: Vec<&Event> = lines.iter().filter_map(Line::event).collect();
        assert_eq!(read[..4], events.iter().collect::<Vec<_>>()[..]);
        assert!(matches!(&lines[4], Line::Note { n: 5, note, .. } if !note.contains('\n')));
        let _ = log.add(&Event::Pause, Facts::default()).unwrap();
        let numbers: Vec<u64> = read_log(&path).unwrap().iter().map(Line::n).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn what_grows_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let mut tail = LogTail::of(path.clone());
        assert!(tail.more().unwrap().is_empty());
        let (mut log, _) = Log::open(&path).unwrap();
        let mut seen = Vec::new();
        for _ in 0..50 {
            let _ = log.add(&Event::Begun, Facts::default()).unwrap();
            seen.extend(tail.more().unwrap().iter().map(Line::n));
            assert!(tail.more().unwrap().is_empty());
        }
        assert_eq!(seen, (1..=50).collect::<Vec<u64>>());
        let length = std::fs::metadata(&path).unwrap().len();
        assert_eq!(tail.cost, length, "bytes that were read");
        // Half a line waits for its end.
        let half = |text: &str| {
            let mut file = File::options().append(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        half(r#"{"n":51,"at":"2026-01-02T"#);
        assert!(tail.more().unwrap().is_empty());
        half("03:04:05Z\",\"note\":\"taken back\"}\n");
        assert_eq!(tail.more().unwrap().len(), 1);
        // A line that was taken back comes again under its number, longer or shorter than it was.
        File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        assert!(tail.more().unwrap().is_empty());
        half("{\"n\":51,\"at\":\"2026-01-02T03:04:05Z\",\"note\":\"taken back and longer\"}\n");
        half("{\"n\":52,\"at\":\"2026-01-02T03:04:05Z\",\"note\":\"next\"}\n");
        assert_eq!(tail.more().unwrap().iter().map(Line::n).collect::<Vec<_>>(), [52]);
        File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        half(
            "{\"n\":51,\"at\":\"2026-01-02T03:04:05Z\",\"note\":\"once more, and by far longer than before\"}\n",
        );
        half("{\"n\":52,\"at\":\"2026-01-02T03:04:05Z\",\"note\":\"so this begins in the midst of that\"}\n");
        half("{\"n\":53,\"at\":\"2026-01-02T03:04:05Z\",\"note\":\"last\"}\n");
        assert_eq!(tail.more().unwrap().iter().map(Line::n).collect::<Vec<_>>(), [53]);
    }

    #[test]
    fn a_line_that_is_no_event_is_an_error_and_not_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        std::fs::write(&path, "{\"n\":1,\"at\":\"2026-01-02T03:04:05Z\",\"event\":\"sung\"}\n").unwrap();
        assert!(read_log(&path).is_err());
        assert!(read_log(&dir.path().join("none")).unwrap().is_empty());
    }
}
