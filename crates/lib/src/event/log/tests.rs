//! Tests of the event log.

use super::*;
use crate::event::reader::EventReader;
use proq_base::diagnostics::Listener;

const LIMITS: EventLogLimits = EventLogLimits { max_file_size: 1 << 20, max_full_files: 9 };

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().map(|e| e.n).collect()
}

fn all_numbers(store: &Store) -> Vec<u64> {
    numbers(&EventReader::start_after(store, 0).poll().unwrap())
}

#[test]
fn hooks_page_lists_every_event() {
    let page = include_str!("../../../../../docs/guide/hooks.md");
    let names = include_str!("../log.rs").lines().filter_map(|line| {
        line.trim().strip_prefix("#[serde(rename = \"")?.split_once('"').map(|(name, _)| name)
    });
    let names: Vec<&str> = names.filter(|name| name.contains('.')).collect();
    assert!(names.contains(&"lane.created") && names.contains(&"batch.ended"));
    for name in names {
        assert!(page.contains(&format!("\n| `{name}` | ")), "{name} is not on the page");
    }
}

#[test]
fn numbers_events_and_skips_torn_line() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Listener::silent());
    let log = EventLog::open(&store, LIMITS);
    assert_eq!(log.append(Event::new(EventName::LaneCreated, "made"), false).unwrap(), 1);
    let path = store.layout().event_log();
    let mut file = File::options().append(true).open(&path).unwrap();
    file.write_all(b"{\"n\":2,\"at\"").unwrap();
    let mut reader = EventReader::start_after(&store, 0);
    assert_eq!(numbers(&reader.poll().unwrap()), [1]);
    assert_eq!(log.append(Event::new(EventName::LaneRemoved, "gone"), false).unwrap(), 2);
    assert_eq!(numbers(&reader.poll().unwrap()), [2]);
    assert_eq!(reader.poll().unwrap(), []);
    assert_eq!(all_numbers(&store), [1, 2]);
}

#[test]
fn unknown_event_keeps_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Listener::silent());
    let log = EventLog::open(&store, LIMITS);
    log.append(Event::new(EventName::LaneCreated, "made"), false).unwrap();
    let mut file = File::options().append(true).open(store.layout().event_log()).unwrap();
    file.write_all(b"{\"n\":2,\"event\":\"moon.rose\"}\n").unwrap();
    assert_eq!(log.append(Event::new(EventName::LaneRemoved, "gone"), false).unwrap(), 3);
    assert_eq!(all_numbers(&store), [1, 3]);
}

#[test]
fn full_file_is_rotated_without_lost_events() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Listener::silent());
    let log = EventLog::open(&store, EventLogLimits { max_file_size: 250, max_full_files: 99 });
    // One reader polls after each event, the other after every fifth, so that multiple rotations happen
    // in between.
    let (mut often, mut seldom) = (EventReader::start_after(&store, 0), EventReader::start_after(&store, 3));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for n in 1..=40 {
        assert_eq!(log.append(Event::new(EventName::LaneCreated, format!("{n}")), false).unwrap(), n);
        first.extend(often.poll().unwrap());
        if n % 5 == 0 {
            second.extend(seldom.poll().unwrap());
        }
    }
    assert!(store.layout().list_full_event_logs().len() > 10);
    assert_eq!(numbers(&first), (1..=40).collect::<Vec<_>>());
    assert_eq!(numbers(&second), (4..=40).collect::<Vec<_>>());
    assert_eq!(all_numbers(&store), (1..=40).collect::<Vec<_>>());
    assert_eq!(numbers(&EventReader::start_after(&store, 38).poll().unwrap()), [39, 40]);
}

#[test]
fn keeps_limited_files_and_continues_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Listener::silent());
    let log = EventLog::open(&store, EventLogLimits { max_file_size: 1, max_full_files: 2 });
    for _ in 1..=9 {
        log.append(Event::new(EventName::LaneCreated, "made"), false).unwrap();
    }
    assert_eq!(all_numbers(&store), [7, 8, 9]);
    assert_eq!(log.append(Event::new(EventName::LaneCreated, "made"), false).unwrap(), 10);
    let none = EventLog::open(&store, EventLogLimits { max_file_size: 1, max_full_files: 0 });
    assert_eq!(none.append(Event::new(EventName::LaneCreated, "made"), false).unwrap(), 11);
    assert_eq!(all_numbers(&store), [11]);
}

#[test]
fn undelivered_events_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Listener::silent());
    let log = EventLog::open(&store, EventLogLimits { max_file_size: 1, max_full_files: 1 });
    for n in 1..=9 {
        log.append(Event::new(EventName::LaneCreated, "made"), n == 4).unwrap();
    }
    assert_eq!(all_numbers(&store), (4..=9).collect::<Vec<_>>());
    DispatchCursor::remove(&store).unwrap();
    log.append(Event::new(EventName::LaneCreated, "made"), false).unwrap();
    assert_eq!(all_numbers(&store), [9, 10]);
}

/// Environment variable that makes a process of the next test a writer, with the folder to write in.
const WRITER_DIR_ENV: &str = "PROQ_TEST_WRITE_EVENTS";

/// Promise: concurrency/no-lost-record
#[test]
fn many_writers_and_full_files_lose_no_event() {
    const SMALL_LIMITS: EventLogLimits = EventLogLimits { max_file_size: 2000, max_full_files: 10_000 };
    if let Some(dir) = std::env::var_os(WRITER_DIR_ENV) {
        let store = Store::open(Path::new(&dir), Listener::silent());
        for _ in 0..50 {
            EventLog::open(&store, SMALL_LIMITS)
                .append(Event::new(EventName::LaneCreated, "made"), false)
                .unwrap();
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Listener::silent());
    let name = "event::log::tests::many_writers_and_full_files_lose_no_event";
    let start = |_| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name]).env(WRITER_DIR_ENV, dir.path());
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut writers: Vec<_> = (0..20).map(start).collect();
    let mut reader = EventReader::start_after(&store, 0);
    let mut followed = Vec::new();
    while followed.len() < 1000 {
        followed.extend(reader.poll().unwrap());
        let all_exited = writers.iter_mut().all(|w| w.try_wait().unwrap().is_some());
        if all_exited {
            followed.extend(reader.poll().unwrap());
            break;
        }
    }
    assert!(writers.iter_mut().all(|w| w.wait().unwrap().success()));
    assert_eq!(numbers(&followed), (1..=1000).collect::<Vec<_>>());
    assert_eq!(all_numbers(&store), (1..=1000).collect::<Vec<_>>());
    assert!(store.layout().list_full_event_logs().len() > 20);
}
