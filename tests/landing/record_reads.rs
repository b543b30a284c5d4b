//! Tests of how often a landing reads the record of its lane.

use std::mem::MaybeUninit;
use std::path::Path;

use proq_test_kit::Sandbox;
use rustix::fs::inotify;
use rustix::fs::inotify::{CreateFlags, ReadFlags, WatchFlags};

/// Maximum number of times that a landing opens the record of a lane to read it: when the lane is named, and
/// after each of at most two changes by the landing, such as the one to the state `landed`. Decisions under a
/// lock read a record only if it was replaced since.
const MAX_RECORD_READS: usize = 3;

/// Counts how often a file `name` in the folder `dir` is opened while `act` runs, wherever the folder moves.
fn count_opens(dir: &Path, name: &str, act: impl FnOnce()) -> usize {
    let watcher = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    // Without the events between them, the kernel would merge two openings into one event.
    inotify::add_watch(&watcher, dir, WatchFlags::OPEN | WatchFlags::ACCESS | WatchFlags::CLOSE).unwrap();
    act();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(&watcher, &mut buffer);
    let mut opens = 0;
    while let Ok(event) = reader.next() {
        let is_named = event.file_name().is_some_and(|file| file.to_bytes() == name.as_bytes());
        opens += usize::from(is_named && event.events().contains(ReadFlags::OPEN));
    }
    opens
}

/// Counts how often the record of each of `lanes` is opened while `act` runs.
fn count_record_reads(sandbox: &Sandbox, lanes: &[String], act: &dyn Fn()) -> Vec<usize> {
    let Some((lane, others)) = lanes.split_first() else {
        act();
        return Vec::new();
    };
    let dir = sandbox.repo.join(".git/proq/lanes").join(lane);
    let mut counts = Vec::new();
    let opens = count_opens(&dir, "lane.toml", || counts = count_record_reads(sandbox, others, act));
    counts.push(opens);
    counts
}

#[test]
fn landing_reads_lane_record_few_times() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let dir = sandbox.repo.join(".git/proq/lanes/one");
    let opens = count_opens(&dir, "lane.toml", || {
        let _ = sandbox.proq(&["merge", "one"]).ok();
    });
    assert_eq!(sandbox.read("one.txt"), "one\n");
    assert!((1..=MAX_RECORD_READS).contains(&opens), "{opens} times");
}

#[test]
fn landing_of_all_lanes_reads_each_record_few_times() {
    let sandbox = Sandbox::new();
    let lanes: Vec<String> = (0..10).map(|n| format!("lane{n}")).collect();
    for lane in &lanes {
        sandbox.lane_with_commit(lane, &format!("echo {lane} > {lane}"));
    }
    let counts = count_record_reads(&sandbox, &lanes, &|| {
        let _ = sandbox.proq(&["merge", "--all"]).ok();
    });
    assert!(lanes.iter().all(|lane| sandbox.read(lane) == format!("{lane}\n")));
    assert!(counts.iter().all(|count| (1..=MAX_RECORD_READS).contains(count)), "{counts:?}");
}
