//! Event log: definition of events, their numbers, and rotation of full files.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use proq_base::config::settings::EventLogLimits;
use proq_base::{fail_points, terminal_text};
use proq_git::RepoPath;
use proq_store::base::atomic::{rename_no_replace, sync_dir};
use proq_store::base::clock::{Moment, now};
use proq_store::base::operation_number::OperationNumber;
use proq_store::locks::lock::LockName;
use proq_store::{Error, Store};
use serde::{Deserialize, Serialize};

use super::cursor::DispatchCursor;
use super::program_info::are_hooks_disabled;

/// Bytes at the end of the log that are read to get the last number; one line is far shorter.
const TAIL_BYTES: u64 = 64 * 1024;

/// Kind of an event. New kinds may be added; readers skip unknown ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventName {
    /// A lane was created.
    #[serde(rename = "lane.created")]
    LaneCreated,
    /// A lane was cleaned up or discarded.
    #[serde(rename = "lane.removed")]
    LaneRemoved,
    /// A lane has a new title, or another pull request.
    #[serde(rename = "lane.edited")]
    LaneEdited,
    /// Two lanes overlap: they would conflict and did not when they were last checked.
    #[serde(rename = "lane.overlap")]
    LaneOverlap,
    /// A commit was made in a lane.
    #[serde(rename = "lane.committed")]
    LaneCommitted,
    /// A lane's agent changed something outside of its lane, or appears to have done so.
    #[serde(rename = "lane.escape")]
    LaneEscape,
    /// An agent was started.
    #[serde(rename = "run.started")]
    RunStarted,
    /// An agent finished; `state` is the result.
    #[serde(rename = "run.ended")]
    RunEnded,
    /// The activity of an agent changed, according to its hooks: `state` is `working`, `needs-approval` or
    /// `idle`.
    #[serde(rename = "agent.state")]
    AgentState,
    /// A failed run is retried, or an agent reports that it resends a request.
    #[serde(rename = "agent.retry")]
    AgentRetry,
    /// A message was delivered to an agent that was working.
    #[serde(rename = "agent.told")]
    MessageDelivered,
    /// A message waits until the turn of a lane's agent has ended.
    #[serde(rename = "message.waits")]
    MessageWaits,
    /// An agent continues with the next part of a task folder.
    #[serde(rename = "agent.step")]
    AgentStep,
    /// A lane's agent reported on its task.
    #[serde(rename = "task.updated")]
    TaskUpdated,
    /// A landing waits in the merge queue, behind others.
    #[serde(rename = "merge.queued")]
    MergeQueued,
    /// A landing starts a check command, on all of its lanes or in search of the one that fails.
    #[serde(rename = "merge.checking")]
    MergeChecking,
    /// A lane landed.
    #[serde(rename = "merge.landed")]
    MergeLanded,
    /// A landing captured a conflict.
    #[serde(rename = "merge.conflict")]
    MergeConflict,
    /// Checks of a landing fail with a lane and succeed without it.
    #[serde(rename = "merge.check-failed")]
    MergeCheckFailed,
    /// The automatic merge of a lane was refused.
    #[serde(rename = "merge.refused")]
    MergeRefused,
    /// A worktree was opened in which a conflict is to be resolved.
    #[serde(rename = "resolve.started")]
    ResolveStarted,
    /// A conflict was resolved, and the lane can land.
    #[serde(rename = "merge.resolved")]
    MergeResolved,
    /// A task of a batch failed permanently.
    #[serde(rename = "task.failed")]
    TaskFailed,
    /// A batch was paused.
    #[serde(rename = "batch.paused")]
    BatchPaused,
    /// A batch finished.
    #[serde(rename = "batch.ended")]
    BatchEnded,
    /// Uncommitted changes disappeared from a worktree while agents ran; the message names the snapshot.
    #[serde(rename = "changes.lost")]
    ChangesLost,
    /// Settings or hooks of the repository changed, or a lane's worktree disappeared, while agents ran.
    #[serde(rename = "repository.changed")]
    RepositoryChanged,
    /// The main checkout shows a lane.
    #[serde(rename = "preview.entered")]
    PreviewEntered,
    /// The main checkout shows a newer commit of the lane that it shows.
    #[serde(rename = "preview.moved")]
    PreviewMoved,
    /// The main checkout shows its former state again.
    #[serde(rename = "preview.left")]
    PreviewLeft,
    /// An operation ended and is in the operation log.
    #[serde(rename = "op.ended")]
    OperationEnded,
}

impl EventName {
    /// Returns the name of the event as it is in the log.
    pub fn to_text(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
    }

    /// Parses the name of an event.
    pub fn parse(text: &str) -> Option<EventName> {
        serde_json::from_value(text.into()).ok()
    }
}

/// Certainty that a run did something outside of its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Certainty {
    /// The run certainly changed something outside of its lane.
    Certain,
    /// The output of the run mentions the change outside of its lane.
    Likely,
    /// The run was active when something outside of its lane changed.
    Possible,
}

/// How an operation of the log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationOutcome {
    /// All of its changes are in effect.
    Done,
    /// It failed, and what could not be reverted is in effect.
    Failed,
    /// Its process was killed, and another process completed or reverted it. What the log shows is in effect.
    Recovered,
}

/// Operation that an event reports as ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedOperation {
    /// Number in the operation log.
    pub number: OperationNumber,
    /// Kind of the operation, such as `spawn`.
    pub kind: String,
    /// What the operation was started from, such as `terminal`; none if an older program started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// How it ended.
    pub outcome: OperationOutcome,
    /// Numbers of the operations that it undoes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<OperationNumber>,
    /// Number of the undo that it takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redoes: Option<OperationNumber>,
}

/// Event: one line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Number of the event, from 1, without gaps.
    pub n: u64,
    /// Time of the event.
    pub at: Moment,
    /// Kind of the event.
    #[serde(rename = "event")]
    pub name: EventName,
    /// Lane that the event is about, by its name as the log has it. A reader of the log does not check the
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// State after the event: of the lane or of its finished run, or the activity of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Second lane, if the event is about two lanes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// Names of the lanes of a landing; empty for all that are done, and for other events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<String>,
    /// Command line of the check that starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Operation that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<EndedOperation>,
    /// Certainty that a run did what the event reports, where that is in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) certainty: Option<Certainty>,
    /// Paths that the event is about; only the first ones where there are very many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<RepoPath>,
    /// One line of text for the user.
    pub message: String,
    /// Whether the event is delivered to no sink, because a hook or a command with `--no-hooks` caused it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_hooks: bool,
}

impl Event {
    /// Creates an event at the current time, without a lane. The log assigns its number.
    pub fn new(name: EventName, message: impl Into<String>) -> Event {
        let message = terminal_text::escape_line(&message.into());
        Event {
            n: 0,
            at: now(),
            name,
            lane: None,
            state: None,
            other: None,
            lanes: Vec::new(),
            command: None,
            operation: None,
            certainty: None,
            paths: Vec::new(),
            message,
            no_hooks: are_hooks_disabled(),
        }
    }

    /// Returns the event with the lanes of the landing that it is about.
    pub(crate) fn with_lanes(self, lanes: impl IntoIterator<Item = impl ToString>) -> Event {
        let lanes: Vec<_> = lanes.into_iter().map(|lane| lane.to_string()).collect();
        let lane = lanes.first().filter(|_| lanes.len() == 1).cloned();
        Event { lane, lanes, ..self }
    }
}

/// Event log of one repository.
#[derive(Debug)]
pub(crate) struct EventLog<'a> {
    store: &'a Store,
    limits: EventLogLimits,
}

impl EventLog<'_> {
    /// Opens the log of a store, with limits for its size and its number of files.
    pub fn open(store: &Store, limits: EventLogLimits) -> EventLog<'_> {
        EventLog { store, limits }
    }

    /// Appends one event and returns its number. The event is on disk when this returns, and no number is
    /// ever given twice. An incomplete line, after a crash or on a full disk, is terminated first. `is_due`
    /// makes the event due for delivery.
    pub fn append(&self, event: Event, is_due: bool) -> Result<u64, Error> {
        let _lock = self.store.locks().acquire(&LockName::Events)?;
        let path = self.store.layout().event_log();
        let tail = read_tail(&path)?;
        let n = last_number_by(self.store, &tail)? + 1;
        // The cursor comes first, so that a kill cannot leave an event that is never delivered.
        if is_due && !DispatchCursor::exists(self.store) {
            DispatchCursor::create(self.store, n - 1)?;
        }
        let entry = Event { n, ..event };
        let mut line = Vec::new();
        serde_json::to_writer(&mut line, &entry)
            .map_err(|e| Error::Broken { path: path.clone(), source: Box::new(e) })?;
        line.push(b'\n');
        let is_full =
            tail.file_length > 0 && tail.file_length + line.len() as u64 > self.limits.max_file_size;
        // If the file cannot be rotated, the log continues in it.
        if is_full && self.rotate(&path, n).is_ok() {
            append_bytes(&path, &line, true)?;
            self.remove_oldest_files(n);
        } else {
            if !(tail.bytes.is_empty() || tail.bytes.ends_with(b"\n")) {
                line.insert(0, b'\n');
            }
            append_bytes(&path, &line, tail.file_length == 0)?;
        }
        Ok(n)
    }

    /// Renames the full log file by the number of its first event. Until the next line is written, no file
    /// with the usual name exists.
    fn rotate(&self, path: &Path, next_number: u64) -> std::io::Result<()> {
        let first_event = first_number_in(path)?.unwrap_or(next_number);
        fail_points::hit("events.full");
        rename_no_replace(path, &self.store.layout().full_event_log(first_event))?;
        fail_points::hit("events.renamed");
        Ok(())
    }

    /// Removes the oldest full log files that exceed the limit, except those with undelivered events. `n` is
    /// the first event of the current file. A file that cannot be removed is tried again next time.
    fn remove_oldest_files(&self, n: u64) {
        let first_due = match DispatchCursor::load_if_due(self.store) {
            Ok(cursor) => cursor.map_or(u64::MAX, |cursor| cursor.first_due()),
            Err(_) => 0,
        };
        let full_logs = self.store.layout().list_full_event_logs();
        let excess = full_logs.len().saturating_sub(self.limits.max_full_files);
        for (index, (_, path)) in full_logs.iter().enumerate().take(excess) {
            let next = full_logs.get(index + 1).map_or(n, |(next, _)| *next);
            if next > first_due {
                return;
            }
            drop(std::fs::remove_file(path));
        }
    }
}

/// Appends bytes and waits until they are on disk.
fn append_bytes(path: &Path, bytes: &[u8], is_new: bool) -> Result<(), Error> {
    let mut file = File::options().append(true).create(true).open(path).map_err(Error::io("write", path))?;
    fail_points::hit("events.opened");
    file.write_all(bytes).and_then(|()| file.sync_data()).map_err(Error::io("write", path))?;
    fail_points::hit("events.written");
    match path.parent().filter(|_| is_new) {
        Some(dir) => sync_dir(dir),
        None => Ok(()),
    }
}

/// Returns the number of the last event; 0 when there is none.
///
/// # Errors
/// Fails when a file of the log cannot be read.
pub fn last_event_number(store: &Store) -> Result<u64, Error> {
    last_number_by(store, &read_tail(&store.layout().event_log())?)
}

/// Returns the number of the last event, with `tail` as the end of the current file.
fn last_number_by(store: &Store, tail: &Tail) -> Result<u64, Error> {
    if let Some(n) = last_number_in(&store.layout().event_log(), tail)? {
        return Ok(n);
    }
    // No event has been written since the last rotation.
    let newest = store.layout().list_full_event_logs().pop();
    let Some((first, path)) = newest else { return Ok(0) };
    Ok(last_number_in(&path, &read_tail(&path)?)?.unwrap_or(first.saturating_sub(1)))
}

/// The last bytes of a file, at most [`TAIL_BYTES`], and the length of the whole file.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    /// Length of the whole file in bytes.
    file_length: u64,
}

/// Reads the end of a file; an empty tail when the file is missing.
fn read_tail(path: &Path) -> Result<Tail, Error> {
    let mut file = match proq_base::regular_file::open_store_file(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Tail::default()),
        Err(e) => return Err(Error::io("read", path)(e)),
    };
    let mut bytes = Vec::new();
    let length = file.metadata().map_err(Error::io("inspect", path))?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))
        .and_then(|_| file.read_to_end(&mut bytes))
        .map_err(Error::io("read", path))?;
    Ok(Tail { bytes, file_length: length })
}

/// Line of the event log, parsed only for its number: this program may not know the event's kind.
#[derive(Deserialize)]
struct NumberedLine {
    n: u64,
}

/// Returns the event number of a line of the log; none for a damaged line.
fn parse_number(line: &[u8]) -> Option<u64> {
    // A damaged log may have very many lines that are not JSON objects.
    if line.first() != Some(&b'{') {
        return None;
    }
    serde_json::from_slice::<NumberedLine>(line).ok().map(|line| line.n)
}

/// Returns the number of the last event in a log file with this end; none when it has no readable line.
fn last_number_in(path: &Path, tail: &Tail) -> Result<Option<u64>, Error> {
    let find_last = |bytes: &[u8]| bytes.rsplit(|b| *b == b'\n').find_map(parse_number);
    match find_last(&tail.bytes) {
        None if tail.file_length > TAIL_BYTES => {
            Ok(find_last(&std::fs::read(path).map_err(Error::io("read", path))?))
        }
        found => Ok(found),
    }
}

/// Returns the number of the first event in a log file; none when it has no readable line.
fn first_number_in(path: &Path) -> std::io::Result<Option<u64>> {
    for line in BufReader::new(proq_base::regular_file::open_store_file(path)?).split(b'\n') {
        if let Some(n) = parse_number(&line?) {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
