//! Log of a batch: the events that its scheduler received, one JSON line each. A line is on disk before its
//! event takes effect.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_base::usage::{Cost, Tokens};
use proq_git::{CommitId, RepoPath};
use proq_plan::schedule::event::ScheduleEvent;
use proq_store::Error;
use proq_store::base::batch_id::BatchId;
use proq_store::base::clock::{Moment, now};
use proq_store::base::run_number::RunNumber;
use serde::{Deserialize, Serialize};

/// One line of a batch's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LogLine {
    /// An event of the scheduler.
    Entry(Box<EventEntry>),
    /// A note for a person, which the scheduler ignores.
    Note {
        /// The number of the line.
        n: u64,
        /// The time of writing.
        at: Moment,
        /// The text of the note.
        note: String,
        /// The tasks that the note is about.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<usize>,
    },
}

/// An event as a line of the batch's log. In JSON the key `event` holds its name; tasks and lanes appear by
/// number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventEntry {
    /// The number of the line, from 1, without gaps.
    pub n: u64,
    /// The time of writing.
    pub at: Moment,
    /// The event that the scheduler received.
    #[serde(flatten)]
    pub event: ScheduleEvent,
    /// Details of the event, which do not affect the scheduler's state.
    #[serde(default, skip_serializing_if = "EventFacts::is_empty")]
    pub facts: EventFacts,
}

/// Details of an event that do not affect the scheduler's state, such as lane, agent and cost. A detail that
/// does not apply to the event is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventFacts {
    /// The name of the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// The agent that did the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model that the agent used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The number of the run in its lane; the last one for an attempt with more than one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunNumber>,
    /// The time when the run started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "began")]
    pub(crate) run_started: Option<Moment>,
    /// The commit at which the task's work starts in its lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "from")]
    pub(crate) work_start: Option<CommitId>,
    /// The commit at which the task's work ends in its lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "to")]
    pub(crate) work_end: Option<CommitId>,
    /// The cost of the agent's work that the event reports; none where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The token usage of the agent's work that the event reports; none where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// The tasks that landed, each with its commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "brought")]
    pub landed: Vec<TaskLanding>,
    /// The tip of the batch's branch after the event; none if the event moves no branch.
    #[serde(rename = "tip", skip_serializing_if = "Option::is_none")]
    pub branch_tip: Option<CommitId>,
    /// The checks that passed before the tasks landed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "checks")]
    pub(crate) passed_checks: Vec<String>,
    /// The files in conflict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "files")]
    pub(crate) conflict_files: Vec<RepoPath>,
    /// The check that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "check")]
    pub failed_check: Option<String>,
    /// The file with the output of the failed check.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "log")]
    pub(crate) check_log: Option<PathBuf>,
    /// The task whose lane could not be created or set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<usize>,
    /// The other batch that has claimed the event's task.
    #[serde(rename = "batch", skip_serializing_if = "Option::is_none")]
    pub claiming_batch: Option<BatchId>,
    /// Further explanation, as one line for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The id of the control request that caused the event. The scheduler skips requests that are in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "wish")]
    pub request_id: Option<String>,
}

/// A task that landed, with its commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskLanding {
    /// The number of the task.
    pub task: usize,
    /// The first commit on the branch that contains all of the task.
    pub commit: CommitId,
}

impl EventFacts {
    /// Returns whether no detail is set.
    fn is_empty(&self) -> bool {
        *self == EventFacts::default()
    }

    /// Returns details with one explanatory line only.
    pub(crate) fn with_detail(detail: impl Into<String>) -> EventFacts {
        EventFacts {
            detail: Some(proq_base::terminal_text::escape_line(&detail.into())),
            ..EventFacts::default()
        }
    }
}

impl LogLine {
    /// Returns the event of the line; none for a note.
    pub fn event(&self) -> Option<&ScheduleEvent> {
        self.entry().map(|entry| &entry.event)
    }

    /// Returns the entry of an event line; none for a note.
    pub fn entry(&self) -> Option<&EventEntry> {
        match self {
            LogLine::Entry(entry) => Some(entry),
            LogLine::Note { .. } => None,
        }
    }

    /// Returns the time when the line was written.
    pub fn time(&self) -> Moment {
        match self {
            LogLine::Entry(entry) => entry.at,
            LogLine::Note { at, .. } => *at,
        }
    }

    /// Returns the number of the line, from 1.
    fn number(&self) -> u64 {
        match self {
            LogLine::Entry(entry) => entry.n,
            LogLine::Note { n, .. } => *n,
        }
    }
}

/// A batch's log, open for appending. Only the holder of the batch's lock appends to it.
#[derive(Debug)]
pub(crate) struct BatchLog {
    file: File,
    path: PathBuf,
    /// The length of the complete lines in the file, in bytes.
    length: u64,
    /// The number of the last line; 0 if the log is empty.
    last_number: u64,
}

impl BatchLog {
    /// Opens or creates a batch's log, and returns it with the lines that it has. A partial line at the end
    /// is truncated.
    ///
    /// # Errors
    /// Fails when the file cannot be read or written.
    pub fn open(path: &Path) -> Result<(BatchLog, Vec<LogLine>), Error> {
        let lines = read_log(path)?;
        let opened = File::options().append(true).create(true).open(path);
        let file = opened.map_err(Error::io("open", path))?;
        let text = proq_base::regular_file::read_store_file(path).map_err(Error::io("read", path))?;
        let length = (text.len() - partial_line_len(&text)) as u64;
        if length < text.len() as u64 {
            file.set_len(length).map_err(Error::io("write", path))?;
        }
        let last_number = lines.last().map_or(0, LogLine::number);
        Ok((BatchLog { file, path: path.to_owned(), length, last_number }, lines))
    }

    /// Appends an event. The line is synced to disk when this returns.
    ///
    /// # Errors
    /// Fails when the line cannot be written; the log is then as it was before.
    pub(crate) fn append_event(
        &mut self,
        event: &ScheduleEvent,
        facts: EventFacts,
    ) -> Result<LogLine, Error> {
        let entry = EventEntry { n: self.last_number + 1, at: now(), event: event.clone(), facts };
        self.append_line(LogLine::Entry(Box::new(entry)))
    }

    /// Appends a note about `tasks`.
    ///
    /// # Errors
    /// Fails as [`BatchLog::append_event`] does.
    pub(crate) fn append_note(&mut self, note: &str, tasks: &[usize]) -> Result<LogLine, Error> {
        let note = proq_base::terminal_text::escape_line(note);
        self.append_line(LogLine::Note { n: self.last_number + 1, at: now(), note, tasks: tasks.to_vec() })
    }

    /// Appends a line and syncs the file. After a failure the file has its former length.
    fn append_line(&mut self, line: LogLine) -> Result<LogLine, Error> {
        let write_error = |e| Error::io("write", &self.path)(e);
        let mut bytes = serde_json::to_vec(&line).map_err(|e| write_error(e.into()))?;
        bytes.push(b'\n');
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        if let Err(e) = written {
            // Truncates the failed line, so that the next write starts where this one did.
            drop(self.file.set_len(self.length));
            drop(self.file.seek(SeekFrom::End(0)));
            return Err(Error::io("write", &self.path)(e));
        }
        self.length += bytes.len() as u64;
        self.last_number += 1;
        Ok(line)
    }
}

/// Returns the number of bytes after the last newline.
fn partial_line_len(text: &[u8]) -> usize {
    text.len() - text.iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1)
}

/// Reads all complete lines of a log; none when the file does not exist yet.
///
/// # Errors
/// Fails when the file cannot be read, or when a complete line is no [`LogLine`].
pub(crate) fn read_log(path: &Path) -> Result<Vec<LogLine>, Error> {
    let text = match proq_base::regular_file::read_store_file(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", path)(e)),
    };
    parse_lines(path, &text[..text.len() - partial_line_len(&text)])
}

/// Parses the lines of a log; `complete` ends with a newline or is empty.
fn parse_lines(path: &Path, complete: &[u8]) -> Result<Vec<LogLine>, Error> {
    let lines = complete.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let parse_line = |line: &[u8]| {
        let parse_error = |e| Error::Broken { path: path.to_owned(), source: Box::new(e) };
        serde_json::from_slice(line).map_err(parse_error)
    };
    lines.map(parse_line).collect()
}

/// Reader of a log that grows: each call reads only the bytes that were appended since the previous call, and
/// nothing when the length is the same.
#[derive(Debug)]
pub struct LogTail {
    path: PathBuf,
    /// The bytes read so far.
    offset: u64,
    /// The number of the last line that was returned.
    last_number: u64,
    /// The bytes read by all calls together.
    #[cfg(test)]
    bytes_read: u64,
}

impl LogTail {
    /// Returns a reader that starts at the first line of the log at `path`.
    pub fn from_start(path: PathBuf) -> LogTail {
        LogTail {
            path,
            offset: 0,
            last_number: 0,
            #[cfg(test)]
            bytes_read: 0,
        }
    }

    /// Returns the lines that were appended since the last call, each once.
    ///
    /// # Errors
    /// Fails as `read_log` does.
    pub fn read_new_lines(&mut self) -> Result<Vec<LogLine>, Error> {
        let length = match std::fs::metadata(&self.path) {
            Ok(meta) => meta.len(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("inspect", &self.path)(e)),
        };
        if length == self.offset {
            return Ok(Vec::new());
        }
        // The writer truncates a line that it could not sync, and may write a different one there. Later
        // lines then start at other offsets, so read from the start.
        let lines = match self.read_complete_lines(self.offset.min(length)) {
            Err(_) if self.offset > 0 => self.read_complete_lines(0)?,
            lines => lines?,
        };
        let new_lines: Vec<LogLine> =
            lines.into_iter().filter(|line| line.number() > self.last_number).collect();
        self.last_number = new_lines.last().map_or(self.last_number, LogLine::number);
        Ok(new_lines)
    }

    /// Reads the complete lines after byte `start`, and moves `offset` to their end.
    fn read_complete_lines(&mut self, start: u64) -> Result<Vec<LogLine>, Error> {
        let mut text = Vec::new();
        File::open(&self.path)
            .and_then(|mut file| file.seek(SeekFrom::Start(start)).and_then(|_| file.read_to_end(&mut text)))
            .map_err(Error::io("read", &self.path))?;
        let complete_len = text.len() - partial_line_len(&text);
        let lines = parse_lines(&self.path, &text[..complete_len])?;
        self.offset = start + complete_len as u64;
        #[cfg(test)]
        {
            self.bytes_read += text.len() as u64;
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proq_base::run_class::RunClass;
    use proq_plan::schedule::event::TaskRunEnd;

    #[test]
    fn reads_lines_back_without_partial_last_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let (mut log, lines) = BatchLog::open(&path).unwrap();
        assert!(lines.is_empty());
        let events = [
            ScheduleEvent::BatchStarted,
            ScheduleEvent::RunEnded { task: 3, attempt: 2, end: TaskRunEnd::Failed(RunClass::Stalled) },
            ScheduleEvent::CapacityChanged { capacity: None },
            ScheduleEvent::BatchTakenOver { runs: vec![(1, 2)] },
        ];
        for event in &events {
            let _ = log.append_event(event, EventFacts::default()).unwrap();
        }
        let _ = log.append_note("a hook\nrefused it", &[3]).unwrap();
        let _ = log
            .append_event(&ScheduleEvent::Landed { tasks: vec![1] }, EventFacts::with_detail("x"))
            .unwrap();
        let mut text = std::fs::read(&path).unwrap();
        text.extend(b"{\"n\":7,\"at\":\"2026");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(read_log(&path).unwrap().len(), 6);
        let (mut log, lines) = BatchLog::open(&path).unwrap();
        let read: Vec<&ScheduleEvent> = lines.iter().filter_map(LogLine::event).collect();
        assert_eq!(read[..4], events.iter().collect::<Vec<_>>()[..]);
        assert!(matches!(&lines[4], LogLine::Note { n: 5, note, .. } if !note.contains('\n')));
        let _ = log.append_event(&ScheduleEvent::Pause, EventFacts::default()).unwrap();
        let numbers: Vec<u64> = read_log(&path).unwrap().iter().map(LogLine::number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn tail_reads_each_new_line_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let mut tail = LogTail::from_start(path.clone());
        assert!(tail.read_new_lines().unwrap().is_empty());
        let (mut log, _) = BatchLog::open(&path).unwrap();
        let mut numbers = Vec::new();
        for _ in 0..50 {
            let _ = log.append_event(&ScheduleEvent::BatchStarted, EventFacts::default()).unwrap();
            numbers.extend(tail.read_new_lines().unwrap().iter().map(LogLine::number));
            assert!(tail.read_new_lines().unwrap().is_empty());
        }
        assert_eq!(numbers, (1..=50).collect::<Vec<u64>>());
        let length = std::fs::metadata(&path).unwrap().len();
        assert_eq!(tail.bytes_read, length, "bytes that were read");
        // A partial line is not returned before its newline.
        let append_text = |text: &str| {
            let mut file = File::options().append(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        append_text(r#"{"n":51,"at":"2026-01-02T"#);
        assert!(tail.read_new_lines().unwrap().is_empty());
        append_text("03:04:05Z\",\"note\":\"taken back\"}\n");
        assert_eq!(tail.read_new_lines().unwrap().len(), 1);
        // A truncated line is written again under its number, longer or shorter than before.
        File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        assert!(tail.read_new_lines().unwrap().is_empty());
        append_text("{\"n\":51,\"at\":\"2026-01-02T03:04:05Z\",\"note\":\"taken back and longer\"}\n");
        append_text("{\"n\":52,\"at\":\"2026-01-02T03:04:05Z\",\"note\":\"next\"}\n");
        assert_eq!(tail.read_new_lines().unwrap().iter().map(LogLine::number).collect::<Vec<_>>(), [52]);
        File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        append_text(
            "{\"n\":51,\"at\":\"2026-01-02T03:04:05Z\",\"note\":\"once more, and by far longer than before\"}\n",
        );
        append_text(
            "{\"n\":52,\"at\":\"2026-01-02T03:04:05Z\",\"note\":\"so this begins in the midst of that\"}\n",
        );
        append_text("{\"n\":53,\"at\":\"2026-01-02T03:04:05Z\",\"note\":\"last\"}\n");
        assert_eq!(tail.read_new_lines().unwrap().iter().map(LogLine::number).collect::<Vec<_>>(), [53]);
    }

    #[test]
    fn refuses_line_with_unknown_event() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        std::fs::write(&path, "{\"n\":1,\"at\":\"2026-01-02T03:04:05Z\",\"event\":\"sung\"}\n").unwrap();
        assert!(read_log(&path).is_err());
        assert!(read_log(&dir.path().join("none")).unwrap().is_empty());
    }
}
