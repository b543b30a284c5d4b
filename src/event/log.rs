//! Owns appending to the event log and reading it, also while it grows.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::git::RepoPath;
use crate::store::{Error, LockName, Moment, Store, now};

/// How much of the log's end is read to find the last number; one line is far shorter.
const TAIL: u64 = 64 * 1024;

/// What happened. New names come; readers let unknown ones pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Name {
    /// A lane was made.
    #[serde(rename = "lane.created")]
    LaneCreated,
    /// A lane was cleaned up or discarded.
    #[serde(rename = "lane.removed")]
    LaneRemoved,
    /// Two lanes would conflict that did not when they were last looked at.
    #[serde(rename = "lane.overlap")]
    LaneOverlap,
    /// A commit was made in a lane.
    #[serde(rename = "lane.committed")]
    LaneCommitted,
    /// A lane's agent changed something outside of its lane, or seems to have.
    #[serde(rename = "lane.escape")]
    LaneEscape,
    /// An agent was started.
    #[serde(rename = "run.started")]
    RunStarted,
    /// An agent ended; `state` says how.
    #[serde(rename = "run.ended")]
    RunEnded,
    /// What an agent does changed, by its own hooks: `state` is `working`, `needs-approval` or `idle`.
    #[serde(rename = "agent.state")]
    AgentState,
    /// A run failed, and is tried again.
    #[serde(rename = "agent.retry")]
    AgentRetry,
    /// An agent is told what was sent to it while it was at work.
    #[serde(rename = "agent.told")]
    AgentTold,
    /// A lane's agent reported something.
    #[serde(rename = "task.updated")]
    TaskUpdated,
    /// A lane landed.
    #[serde(rename = "merge.landed")]
    MergeLanded,
    /// A landing captured a conflict.
    #[serde(rename = "merge.conflict")]
    MergeConflict,
    /// Checks of a landing failed with a lane and succeed without it.
    #[serde(rename = "merge.check-failed")]
    MergeCheckFailed,
    /// A lane that was to land by itself was refused.
    #[serde(rename = "merge.refused")]
    MergeRefused,
    /// A conflict was resolved, and the lane can land.
    #[serde(rename = "merge.resolved")]
    MergeResolved,
    /// The main checkout shows a lane.
    #[serde(rename = "preview.entered")]
    PreviewEntered,
    /// The main checkout shows what it showed before.
    #[serde(rename = "preview.left")]
    PreviewLeft,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Its number, from 1, without gaps.
    pub(crate) n: u64,
    /// When.
    pub(crate) at: Moment,
    /// What.
    #[serde(rename = "event")]
    pub(crate) name: Name,
    /// The lane it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<String>,
    /// The lane's state after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    /// The other lane, where it is about two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) other: Option<String>,
    /// The paths it is about, the first of them where there are very many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<RepoPath>,
    /// A line for a person.
    pub(crate) message: String,
}

impl Event {
    /// An event that happens now, about nobody. It gets its number in the log.
    pub(crate) fn now(name: Name, message: impl Into<String>) -> Event {
        let message = message.into();
        Event { n: 0, at: now(), name, lane: None, state: None, other: None, paths: Vec::new(), message }
    }
}

/// The event log of one repository.
#[derive(Debug)]
pub(crate) struct Log<'a> {
    store: &'a Store,
}

impl Log<'_> {
    /// The log of a store.
    pub(crate) fn of(store: &Store) -> Log<'_> {
        Log { store }
    }

    /// Appends one event and returns its number. A line that a crash or a full disk cut short is ended first.
    pub(crate) fn add(&self, event: Event) -> Result<u64, Error> {
        let _lock = self.store.locks().take(&LockName::Events)?;
        let path = self.store.layout().events();
        let tail = tail(&path)?;
        let n = last_number(&tail) + 1;
        let entry = Event { n, ..event };
        let mut line = if tail.is_empty() || tail.ends_with(b"\n") { Vec::new() } else { vec![b'\n'] };
        serde_json::to_writer(&mut line, &entry)
            .map_err(|e| Error::Broken { path: path.clone(), source: Box::new(e) })?;
        line.push(b'\n');
        File::options()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut f| f.write_all(&line))
            .map_err(Error::io("write", &path))?;
        Ok(n)
    }

    /// Reads the whole events that lie beyond byte `from`, and where to go on from.
    pub(crate) fn read_from(&self, from: u64) -> Result<(Vec<Event>, u64), Error> {
        let path = self.store.layout().events();
        let mut bytes = Vec::new();
        match File::open(&path) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(from))
                    .and_then(|_| file.read_to_end(&mut bytes))
                    .map_err(Error::io("read", &path))?;
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), from)),
            Err(e) => return Err(Error::io("read", &path)(e)),
        }
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let events = bytes[..whole]
            .split(|b| *b == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        Ok((events, from + whole as u64))
    }
}

fn tail(path: &Path) -> Result<Vec<u8>, Error> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read", path)(e)),
    };
    let mut out = Vec::new();
    let length = file.metadata().map_err(Error::io("look at", path))?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))
        .and_then(|_| file.read_to_end(&mut out))
        .map_err(Error::io("read", path))?;
    Ok(out)
}

fn last_number(tail: &[u8]) -> u64 {
    tail.rsplit(|b| *b == b'\n')
        .find_map(|line| serde_json::from_slice::<Event>(line).ok())
        .map_or(0, |event| event.n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::Listener;

    #[test]
    fn events_are_numbered_and_a_torn_line_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path(), Listener::silent());
        let log = Log::of(&store);
        assert_eq!(log.add(Event::now(Name::LaneCreated, "made")).unwrap(), 1);
        let path = store.layout().events();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"n\":2,\"at\"").unwrap();
        assert_eq!(log.read_from(0).unwrap().0.len(), 1);
        assert_eq!(log.add(Event::now(Name::LaneRemoved, "gone")).unwrap(), 2);
        let (all, end) = log.read_from(0).unwrap();
        assert_eq!(all.iter().map(|e| e.n).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(log.read_from(end).unwrap().0, []);
    }
}
