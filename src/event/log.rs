//! Owns appending to the event log: what an event is, its number, and a new file when one is full.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Cursor, no_hooks};
use crate::config::Room;
use crate::fault;
use crate::git::RepoPath;
use crate::harmless;
use crate::store::{Error, LockName, Moment, Store, now, rename_new, sync_dir};

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
    /// A run failed, and is tried again; or an agent says that it sends a request again.
    #[serde(rename = "agent.retry")]
    AgentRetry,
    /// An agent is told what was sent to it while it was at work.
    #[serde(rename = "agent.told")]
    AgentTold,
    /// An agent goes on with the next part of a task that is a folder.
    #[serde(rename = "agent.step")]
    AgentStep,
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
    /// A task of a batch has failed for good.
    #[serde(rename = "task.failed")]
    TaskFailed,
    /// A batch is paused.
    #[serde(rename = "batch.paused")]
    BatchPaused,
    /// A batch is over.
    #[serde(rename = "batch.ended")]
    BatchEnded,
    /// Uncommitted changes disappeared from a worktree while agents were at work; the message names the snapshot.
    #[serde(rename = "changes.lost")]
    ChangesLost,
    /// Settings or hooks of the repository changed, or a lane's worktree disappeared, while agents were at work.
    #[serde(rename = "repository.changed")]
    RepositoryChanged,
    /// The main checkout shows a lane.
    #[serde(rename = "preview.entered")]
    PreviewEntered,
    /// The main checkout shows what it showed before.
    #[serde(rename = "preview.left")]
    PreviewLeft,
}

impl Name {
    /// The name as it is written.
    pub(crate) fn text(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
    }

    /// The event of this name.
    pub(crate) fn parse(text: &str) -> Option<Name> {
        serde_json::from_value(text.into()).ok()
    }
}

/// How sure it is that a run did something outside of its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Certainty {
    /// It did.
    Certain,
    /// What it wrote speaks of it.
    Likely,
    /// It was there at the time.
    Possible,
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
    /// How sure it is, where that has to be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) certainty: Option<Certainty>,
    /// The paths it is about, the first of them where there are very many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<RepoPath>,
    /// A line for a person.
    pub(crate) message: String,
    /// Nobody is handed it: it came of a hook, or of a command with `--no-hooks`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_hooks: bool,
}

impl Event {
    /// An event that happens now, about nobody. It gets its number in the log.
    pub(crate) fn now(name: Name, message: impl Into<String>) -> Event {
        let message = harmless::line(&message.into());
        Event {
            n: 0,
            at: now(),
            name,
            lane: None,
            state: None,
            other: None,
            certainty: None,
            paths: Vec::new(),
            message,
            no_hooks: no_hooks(),
        }
    }
}

/// The event log of one repository.
#[derive(Debug)]
pub(crate) struct Log<'a> {
    store: &'a Store,
    room: Room,
}

impl Log<'_> {
    /// The log of a store, with as much room as it is given.
    pub(crate) fn of(store: &Store, room: Room) -> Log<'_> {
        Log { store, room }
    }

    /// Appends one event and returns its number. It is on disk when this returns: what it tells of is, too, and no number is
    /// ever given twice. A line that a crash or a full disk cut short is ended first. `due` says that it is to be handed out.
    pub(crate) fn add(&self, event: Event, due: bool) -> Result<u64, Error> {
        let _lock = self.store.locks().take(&LockName::Events)?;
        let path = self.store.layout().events();
        let tail = tail(&path)?;
        let n = last_number(self.store)? + 1;
        // First, so that no kill leaves an event behind that nobody is handed.
        if due && !Cursor::is_there(self.store) {
            Cursor::begin(self.store, n - 1)?;
        }
        let entry = Event { n, ..event };
        let mut line = Vec::new();
        serde_json::to_writer(&mut line, &entry)
            .map_err(|e| Error::Broken { path: path.clone(), source: Box::new(e) })?;
        line.push(b'\n');
        let full = tail.length > 0 && tail.length + line.len() as u64 > self.room.size;
        // A log that cannot get a new file goes on in the old one.
        if full && self.begin_anew(&path, n).is_ok() {
            append(&path, &line, true)?;
            self.forget_oldest(n);
        } else {
            if !(tail.bytes.is_empty() || tail.bytes.ends_with(b"\n")) {
                line.insert(0, b'\n');
            }
            append(&path, &line, tail.length == 0)?;
        }
        Ok(n)
    }

    /// Puts the full file under its own name. Until the next line is written there is none of the usual name.
    fn begin_anew(&self, path: &Path, next: u64) -> std::io::Result<()> {
        let first = first_number(path)?.unwrap_or(next);
        fault::point("events.full");
        rename_new(path, &self.store.layout().full_events(first))?;
        fault::point("events.renamed");
        Ok(())
    }

    /// Removes the oldest files, up to what is not yet handed out; `n` is the first event of the file that grows. One that cannot be removed is there for the next time.
    fn forget_oldest(&self, n: u64) {
        let due = match Cursor::read(self.store) {
            Ok(cursor) => cursor.map_or(u64::MAX, |cursor| cursor.first_due()),
            Err(_) => 0,
        };
        let full = self.store.layout().all_full_events();
        let many = full.len().saturating_sub(self.room.files);
        for (at, (_, path)) in full.iter().enumerate().take(many) {
            let next = full.get(at + 1).map_or(n, |(next, _)| *next);
            if next > due {
                return;
            }
            drop(std::fs::remove_file(path));
        }
    }
}

/// Appends bytes and waits until they are on disk.
fn append(path: &Path, bytes: &[u8], is_new: bool) -> Result<(), Error> {
    let mut file = File::options().append(true).create(true).open(path).map_err(Error::io("write", path))?;
    fault::point("events.opened");
    file.write_all(bytes).and_then(|()| file.sync_data()).map_err(Error::io("write", path))?;
    fault::point("events.written");
    match path.parent().filter(|_| is_new) {
        Some(dir) => sync_dir(dir),
        None => Ok(()),
    }
}

/// The number of the last event there is; 0 when there is none.
///
/// # Errors
/// When a file of the log cannot be read.
pub(crate) fn last_number(store: &Store) -> Result<u64, Error> {
    if let Some(n) = last_in(&store.layout().events())? {
        return Ok(n);
    }
    // Nothing has been written since the last file was full.
    let newest = store.layout().all_full_events().pop();
    let Some((first, path)) = newest else { return Ok(0) };
    Ok(last_in(&path)?.unwrap_or(first.saturating_sub(1)))
}

/// The end of a file, and how long the file is.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    length: u64,
}

fn tail(path: &Path) -> Result<Tail, Error> {
    let mut file = match crate::regular_file::open_record(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Tail::default()),
        Err(e) => return Err(Error::io("read", path)(e)),
    };
    let mut bytes = Vec::new();
    let length = file.metadata().map_err(Error::io("look at", path))?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))
        .and_then(|_| file.read_to_end(&mut bytes))
        .map_err(Error::io("read", path))?;
    Ok(Tail { bytes, length })
}

/// What is read of a line that is only counted: its event may be one that this program does not know.
#[derive(Deserialize)]
struct Numbered {
    n: u64,
}

fn number(line: &[u8]) -> Option<u64> {
    // A log may be damaged, and have very many lines that are none of ours.
    if line.first() != Some(&b'{') {
        return None;
    }
    serde_json::from_slice::<Numbered>(line).ok().map(|line| line.n)
}

fn last_in(path: &Path) -> Result<Option<u64>, Error> {
    let last = |bytes: &[u8]| bytes.rsplit(|b| *b == b'\n').find_map(number);
    let tail = tail(path)?;
    match last(&tail.bytes) {
        None if tail.length > TAIL => Ok(last(&std::fs::read(path).map_err(Error::io("read", path))?)),
        found => Ok(found),
    }
}

fn first_number(path: &Path) -> std::io::Result<Option<u64>> {
    let mut lines = BufReader::new(crate::regular_file::open_record(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if let Some(n) = number(&line) {
            return Ok(Some(n));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;
    use crate::note::Listener;

    const ROOM: Room = Room { size: 1 << 20, files: 9 };

    fn numbers(events: &[Event]) -> Vec<u64> {
        events.iter().map(|e| e.n).collect()
    }

    fn all(store: &Store) -> Vec<u64> {
        numbers(&Reader::after(store, 0).poll().unwrap())
    }

    #[test]
    fn the_page_about_hooks_names_every_event() {
        let page = include_str!("../../hooks/README.md");
        let names = include_str!("log.rs").lines().filter_map(|line| {
            line.trim().strip_prefix("#[serde(rename = \"")?.split_once('"').map(|(name, _)| name)
        });
        let names: Vec<&str> = names.filter(|name| name.contains('.')).collect();
        assert!(names.contains(&"lane.created") && names.contains(&"batch.ended"));
        for name in names {
            assert!(page.contains(&format!("\n| `{name}` | ")), "{name} is not on the page");
        }
    }

    #[test]
    fn events_are_numbered_and_a_torn_line_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path(), Listener::silent());
        let log = Log::of(&store, ROOM);
        assert_eq!(log.add(Event::now(Name::LaneCreated, "made"), false).unwrap(), 1);
        let path = store.layout().events();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"n\":2,\"at\"").unwrap();
        let mut reader = Reader::after(&store, 0);
        assert_eq!(numbers(&reader.poll().unwrap()), [1]);
        assert_eq!(log.add(Event::now(Name::LaneRemoved, "gone"), false).unwrap(), 2);
        assert_eq!(numbers(&reader.poll().unwrap()), [2]);
        assert_eq!(reader.poll().unwrap(), []);
        assert_eq!(all(&store), [1, 2]);
    }

    #[test]
    fn an_event_that_this_program_does_not_know_keeps_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path(), Listener::silent());
        let log = Log::of(&store, ROOM);
        log.add(Event::now(Name::LaneCreated, "made"), false).unwrap();
        let mut file = File::options().append(true).open(store.layout().events()).unwrap();
        file.write_all(b"{\"n\":2,\"event\":\"moon.rose\"}\n").unwrap();
        assert_eq!(log.add(Event::now(Name::LaneRemoved, "gone"), false).unwrap(), 3);
        assert_eq!(all(&store), [1, 3]);
    }

    #[test]
    fn a_full_file_gets_its_own_name_and_readers_miss_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path(), Listener::silent());
        let log = Log::of(&store, Room { size: 250, files: 99 });
        // One looks after each event, one after every fifth, so that several files are full meanwhile.
        let (mut often, mut seldom) = (Reader::after(&store, 0), Reader::after(&store, 3));
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for n in 1..=40 {
            assert_eq!(log.add(Event::now(Name::LaneCreated, format!("{n}")), false).unwrap(), n);
            first.extend(often.poll().unwrap());
            if n % 5 == 0 {
                second.extend(seldom.poll().unwrap());
            }
        }
        assert!(store.layout().all_full_events().len() > 10);
        assert_eq!(numbers(&first), (1..=40).collect::<Vec<_>>());
        assert_eq!(numbers(&second), (4..=40).collect::<Vec<_>>());
        assert_eq!(all(&store), (1..=40).collect::<Vec<_>>());
        assert_eq!(numbers(&Reader::after(&store, 38).poll().unwrap()), [39, 40]);
    }

    #[test]
    fn only_so_many_full_files_are_kept_and_the_numbers_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path(), Listener::silent());
        let log = Log::of(&store, Room { size: 1, files: 2 });
        for _ in 1..=9 {
            log.add(Event::now(Name::LaneCreated, "made"), false).unwrap();
        }
        assert_eq!(all(&store), [7, 8, 9]);
        assert_eq!(log.add(Event::now(Name::LaneCreated, "made"), false).unwrap(), 10);
        let none = Log::of(&store, Room { size: 1, files: 0 });
        assert_eq!(none.add(Event::now(Name::LaneCreated, "made"), false).unwrap(), 11);
        assert_eq!(all(&store), [11]);
    }

    #[test]
    fn what_is_not_handed_out_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path(), Listener::silent());
        let log = Log::of(&store, Room { size: 1, files: 1 });
        for n in 1..=9 {
            log.add(Event::now(Name::LaneCreated, "made"), n == 4).unwrap();
        }
        assert_eq!(all(&store), (4..=9).collect::<Vec<_>>());
        Cursor::end(&store).unwrap();
        log.add(Event::now(Name::LaneCreated, "made"), false).unwrap();
        assert_eq!(all(&store), [9, 10]);
    }

    /// What says to a process of the next test where to write, and how often.
    const WRITE: &str = "PROQ_TEST_WRITE_EVENTS";

    #[test]
    fn many_writers_and_full_files_lose_no_event() {
        const SMALL: Room = Room { size: 2000, files: 10_000 };
        if let Some(dir) = std::env::var_os(WRITE) {
            let store = Store::at(Path::new(&dir), Listener::silent());
            for _ in 0..50 {
                Log::of(&store, SMALL).add(Event::now(Name::LaneCreated, "made"), false).unwrap();
            }
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path(), Listener::silent());
        let name = "event::log::tests::many_writers_and_full_files_lose_no_event";
        let start = |_| {
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", name]).env(WRITE, dir.path());
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        };
        let mut writers: Vec<_> = (0..20).map(start).collect();
        let mut reader = Reader::after(&store, 0);
        let mut followed = Vec::new();
        while followed.len() < 1000 {
            followed.extend(reader.poll().unwrap());
            let over = writers.iter_mut().all(|w| w.try_wait().unwrap().is_some());
            if over {
                followed.extend(reader.poll().unwrap());
                break;
            }
        }
        assert!(writers.iter_mut().all(|w| w.wait().unwrap().success()));
        assert_eq!(numbers(&followed), (1..=1000).collect::<Vec<_>>());
        assert_eq!(all(&store), (1..=1000).collect::<Vec<_>>());
        assert!(store.layout().all_full_events().len() > 20);
    }
}
