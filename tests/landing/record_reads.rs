//! Tests of how often a landing reads the record of its lane.

use std::mem::MaybeUninit;
use std::path::Path;

use proq_test_kit::Sandbox;
use rustix::fs::inotify;
use rustix::fs::inotify::{CreateFlags, ReadFlags, WatchFlags};

/// Maximum number of times that the landing of one lane opens the lane's record to read it.
///
/// Its decisions read the record when the lane is named, after the wait in the queue, under the merge lock,
/// before the removal, and under the lock of the removal. The change to the state `landed` reads it twice, to
/// change it and to write it, and its move to the history once.
const MAX_RECORD_READS: usize = 5 + 2 + 1;

/// Counts how often a file `name` in the folder `dir` is opened while `act` runs, wherever the folder moves.
fn count_opens(dir: &Path, name: &str, act: impl FnOnce()) -> usize {
    let watcher = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    // Without the events between them, the kernel would merge two openings into one event.
    inotify::add_watch(&watcher, dir, WatchFlags::OPEN | WatchFlags::CLOSE).unwrap();
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
