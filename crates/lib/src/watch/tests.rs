//! Tests of the watch, with each way to notice changes of files.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use proq_base::config::settings::EventLogLimits;
use proq_base::diagnostics::{Listener, Note};
use proq_base::lane_name::LaneName;
use proq_store::base::batch_id::BatchId;
use proq_store::locks::lock::LockName;

use super::subject::Subject;
use super::watcher::{Watch, WatchOutcome};
use crate::event::log::{Event, EventLog, EventName};
use crate::event::reader::EventReader;
use crate::lane::Project;

/// More than any change takes to be noticed on the slowest machine.
const LIMIT: Option<Duration> = Some(Duration::from_secs(30));

/// Creates a repository without commits in `dir`.
fn open_project(dir: &Path, listener: Listener) -> Project {
    let top = dir.canonicalize().unwrap();
    for folder in ["objects", "refs/heads"] {
        std::fs::create_dir_all(top.join(".git").join(folder)).unwrap();
    }
    std::fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(top.join(".git/config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
    Project::open(&top, listener).unwrap()
}

fn lane(name: &str) -> LaneName {
    LaneName::parse(name).unwrap()
}

fn batch() -> Subject {
    Subject::Batch(BatchId::new("b"))
}

/// Returns the subjects that have changed, after a wait for the first of them.
#[track_caller]
fn changed(watch: &mut Watch<'_>) -> Vec<Subject> {
    match watch.wait(LIMIT).unwrap() {
        WatchOutcome::Changed { subjects, .. } => subjects,
        other => panic!("nothing has changed: {other:?}"),
    }
}

/// Reads all changes that are pending, and fails if more follow.
#[track_caller]
fn assert_settled(watch: &mut Watch<'_>) {
    while watch.wait(Some(Duration::ZERO)).unwrap() != WatchOutcome::TimedOut {}
}

/// Runs a test with inotify, and with comparison of file states.
fn with_each_way(subjects: &[Subject], test: impl Fn(&Project, &mut Watch<'_>)) {
    for compares in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let project = open_project(dir.path(), Listener::silent());
        let mut watch = Watch::new(&project).unwrap();
        if compares {
            watch.compare_from_now_on(&std::io::ErrorKind::QuotaExceeded.into());
            assert_settled(&mut watch);
        }
        for subject in subjects {
            assert!(watch.add(subject.clone()));
        }
        test(&project, &mut watch);
    }
}

#[test]
fn each_freed_lock_is_reported_once() {
    let dir = tempfile::tempdir().unwrap();
    let project = open_project(dir.path(), Listener::silent());
    let locks = project.store.locks();
    let names = ["a", "b", "c"].map(|name| LockName::Run(lane(name)));
    let a = locks.acquire(&names[0]).unwrap();
    let b = locks.acquire(&names[1]).unwrap();
    let mut watch = Watch::new(&project).unwrap();
    for name in names.iter().chain(&names) {
        watch.add_lock(name).unwrap();
    }
    let mut next_free = |limit| match watch.wait(limit).unwrap() {
        WatchOutcome::Changed { free_locks, .. } => free_locks,
        _ => Vec::new(),
    };
    // The third lock was never held.
    assert_eq!(next_free(None), [names[2].clone()]);
    assert_eq!(next_free(Some(Duration::from_millis(1))), []);
    drop(b);
    assert_eq!(next_free(None), [names[1].clone()]);
    drop(a);
    assert_eq!(next_free(None), [names[0].clone()]);
    assert_eq!(next_free(Some(Duration::ZERO)), []);
}

#[test]
fn event_is_read_within_50_ms_at_p95() {
    const COUNT: usize = 40;
    let dir = tempfile::tempdir().unwrap();
    let project = open_project(dir.path(), Listener::silent());
    let root = dir.path().canonicalize().unwrap();
    let mut watch = Watch::new(&project).unwrap();
    watch.add(Subject::Events);
    let mut reader = EventReader::start_after(&project.store, 0);
    let writer = std::thread::spawn(move || {
        let project = Project::open(&root, Listener::silent()).unwrap();
        // Small enough to rotate the log several times.
        let limits = EventLogLimits { max_file_size: 1000, max_full_files: 99 };
        let log = EventLog::open(&project.store, limits);
        let write = |_| {
            std::thread::sleep(Duration::from_millis(25));
            log.append(Event::new(EventName::LaneCreated, "made"), false).unwrap();
            Instant::now()
        };
        (0..COUNT).map(write).collect::<Vec<Instant>>()
    });
    let mut read_at = Vec::new();
    while read_at.len() < COUNT {
        read_at.extend(reader.poll().unwrap().iter().map(|_| Instant::now()));
        if read_at.len() < COUNT {
            assert_eq!(changed(&mut watch), [Subject::Events]);
        }
    }
    let written_at = writer.join().unwrap();
    let pairs = read_at.iter().zip(&written_at);
    let mut delays: Vec<Duration> = pairs.map(|(read, written)| read.duration_since(*written)).collect();
    delays.sort_unstable();
    assert!(delays[COUNT * 95 / 100 - 1] <= Duration::from_millis(50), "{delays:?}");
}

#[test]
fn rotation_and_truncation_are_changes() {
    with_each_way(&[Subject::Events, batch()], |project, watch| {
        let (log, full) = (project.store.layout().event_log(), project.store.layout().full_event_log(1));
        // The folder of the store does not exist before.
        std::fs::create_dir_all(project.store.layout().root()).unwrap();
        assert_settled(watch);
        let steps: [&dyn Fn(); 5] = [
            &|| std::fs::write(&log, "first\n").unwrap(),
            &|| std::fs::rename(&log, &full).unwrap(),
            &|| std::fs::write(&log, "second\n").unwrap(),
            &|| File::options().write(true).open(&log).unwrap().set_len(1).unwrap(),
            &|| std::fs::remove_file(&log).unwrap(),
        ];
        for step in steps {
            step();
            assert_eq!(changed(watch), [Subject::Events]);
            assert_settled(watch);
        }
        std::fs::write(project.store.layout().dispatch_cursor(), "x").unwrap();
        assert_settled(watch);
        assert_eq!(watch.wait(Some(Duration::from_millis(1))).unwrap(), WatchOutcome::TimedOut);
    });
}

#[test]
fn folders_may_appear_move_and_return() {
    let (record, run) = (Subject::Lane(lane("x")), Subject::Activity(lane("x")));
    with_each_way(&[record.clone(), run.clone()], |project, watch| {
        let layout = project.store.layout();
        let (folder, activity) = (
            layout.lane(&lane("x")),
            layout.run_activity(&lane("x"), proq_store::base::run_number::RunNumber::first()),
        );
        for round in 0..3 {
            // Created at once, so that nothing can be watched in between.
            std::fs::create_dir_all(activity.parent().unwrap()).unwrap();
            let _ = changed(watch);
            assert_settled(watch);
            std::fs::write(layout.lane_record(&lane("x")), "x").unwrap();
            assert_eq!(changed(watch), std::slice::from_ref(&record), "round {round}");
            assert_settled(watch);
            std::fs::write(&activity, "x").unwrap();
            assert_eq!(changed(watch), std::slice::from_ref(&run), "round {round}");
            assert_settled(watch);
            match round {
                0 => std::fs::rename(&folder, layout.root().join("aside")).unwrap(),
                1 => std::fs::remove_dir_all(&folder).unwrap(),
                _ => std::fs::remove_dir_all(layout.root()).unwrap(),
            }
            assert!(changed(watch).contains(&record), "round {round}");
            assert_settled(watch);
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn overflow_reports_every_subject() {
    let dir = tempfile::tempdir().unwrap();
    let project = open_project(dir.path(), Listener::silent());
    let folder = project.store.layout().batch(&BatchId::new("b"));
    std::fs::create_dir_all(&folder).unwrap();
    let mut watch = Watch::new(&project).unwrap();
    let all = [batch(), Subject::Events, Subject::Lanes];
    for subject in &all {
        assert!(watch.add(subject.clone()));
    }
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let files = ["a", "b"].map(|name| File::create(folder.join(name)).unwrap());
    for n in 0..limit.trim().parse::<usize>().unwrap() + 2 {
        // Equal notices in a row are merged.
        std::io::Write::write_all(&mut &files[n % 2], b"x").unwrap();
    }
    // Not noticed by itself any more, and it has to be watched again.
    std::fs::create_dir_all(project.store.layout().lane(&lane("x"))).unwrap();
    assert_eq!(changed(&mut watch), all);
    assert_settled(&mut watch);
    std::fs::write(project.store.layout().lane_record(&lane("x")), "x").unwrap();
    assert_eq!(changed(&mut watch), [Subject::Lanes]);
}

#[test]
#[cfg(target_os = "linux")]
fn worktree_changes_with_its_files_but_not_with_ignored_ones() {
    let dir = tempfile::tempdir().unwrap();
    let project = open_project(dir.path(), Listener::silent());
    let top = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(top.join("built/deep")).unwrap();
    std::fs::create_dir_all(top.join("src/deep")).unwrap();
    std::fs::write(top.join(".gitignore"), "built\n").unwrap();
    let subject = Subject::Worktree(top.clone());
    let mut watch = Watch::new(&project).unwrap();
    watch.add(subject.clone());
    watch.add(Subject::Refs);
    std::fs::write(top.join("built/deep/file"), "x").unwrap();
    std::fs::write(top.join("built/file"), "x").unwrap();
    assert_eq!(watch.wait(Some(Duration::from_millis(1))).unwrap(), WatchOutcome::TimedOut);
    std::fs::write(top.join("src/deep/file"), "x").unwrap();
    assert_eq!(changed(&mut watch), std::slice::from_ref(&subject));
    assert_settled(&mut watch);
    // A new folder is watched, also where it has content before it is noticed.
    std::fs::create_dir_all(top.join("new/deep")).unwrap();
    assert_eq!(changed(&mut watch), std::slice::from_ref(&subject));
    assert_settled(&mut watch);
    std::fs::write(top.join("new/deep/Cargo.lock"), "x").unwrap();
    assert_eq!(changed(&mut watch), std::slice::from_ref(&subject));
    std::fs::rename(top.join("new"), top.join("old")).unwrap();
    assert_eq!(changed(&mut watch), std::slice::from_ref(&subject));
    assert_settled(&mut watch);
    std::fs::write(top.join("old/deep/Cargo.lock"), "y").unwrap();
    assert_eq!(changed(&mut watch), std::slice::from_ref(&subject));
    assert_settled(&mut watch);
    // A deleted folder is watched again once it returns.
    std::fs::remove_dir_all(top.join("old/deep")).unwrap();
    assert_eq!(changed(&mut watch), std::slice::from_ref(&subject));
    assert_settled(&mut watch);
    std::fs::create_dir_all(top.join("old/deep")).unwrap();
    assert_eq!(changed(&mut watch), std::slice::from_ref(&subject));
    assert_settled(&mut watch);
    std::fs::write(top.join("old/deep/file"), "x").unwrap();
    assert_eq!(changed(&mut watch), std::slice::from_ref(&subject));
    assert_settled(&mut watch);
    let branch = project.repo.branch_files().loose.join("a/b");
    std::fs::create_dir_all(branch.parent().unwrap()).unwrap();
    std::fs::write(&branch, "x").unwrap();
    assert_eq!(changed(&mut watch), [Subject::Refs]);
}

#[test]
#[cfg(target_os = "linux")]
fn folder_at_depth_limit_is_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let project = open_project(dir.path(), Listener::silent());
    let top = dir.path().canonicalize().unwrap();
    let rebase = top.join(".git/rebase-merge");
    std::fs::create_dir(&rebase).unwrap();
    let subject = Subject::Worktree(top);
    let mut watch = Watch::new(&project).unwrap();
    watch.add(subject.clone());
    std::fs::remove_dir(&rebase).unwrap();
    assert_eq!(changed(&mut watch), std::slice::from_ref(&subject));
    assert_settled(&mut watch);
    std::fs::create_dir(&rebase).unwrap();
    assert_eq!(changed(&mut watch), [subject]);
    // Its content is below the limit.
    assert_settled(&mut watch);
    std::fs::write(rebase.join("done"), "x").unwrap();
    assert_eq!(watch.wait(Some(Duration::from_millis(1))).unwrap(), WatchOutcome::TimedOut);
}

#[test]
#[cfg(target_os = "linux")]
fn file_changes_come_after_a_pause_that_a_free_lock_ends() {
    let dir = tempfile::tempdir().unwrap();
    let project = open_project(dir.path(), Listener::silent());
    let top = dir.path().canonicalize().unwrap();
    let lock = LockName::Run(lane("x"));
    let guard = project.store.locks().acquire(&lock).unwrap();
    let mut watch = Watch::new(&project).unwrap();
    watch.add(Subject::Worktree(top.clone()));
    watch.add_lock(&lock).unwrap();
    std::fs::write(top.join("file"), "x").unwrap();
    let started = Instant::now();
    assert!(matches!(watch.wait_throttled(LIMIT).unwrap(), WatchOutcome::Changed { .. }));
    assert!(started.elapsed() >= Duration::from_millis(250), "{:?}", started.elapsed());
    assert_settled(&mut watch);
    drop(guard);
    watch.pause(LIMIT.unwrap()).unwrap();
    assert!(Some(started.elapsed()) < LIMIT, "{:?}", started.elapsed());
    let free = WatchOutcome::Changed { subjects: Vec::new(), free_locks: vec![lock] };
    assert_eq!(watch.wait_throttled(None).unwrap(), free);
}

#[test]
fn missing_inotify_is_reported_once_and_compared() {
    let dir = tempfile::tempdir().unwrap();
    let notes = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = std::rc::Rc::clone(&notes);
    let listener = Listener::new(move |note: &Note| seen.borrow_mut().push(note.clone()));
    let project = open_project(dir.path(), listener);
    let mut watch = Watch::new(&project).unwrap();
    notes.borrow_mut().clear();
    watch.add(Subject::Events);
    for _ in 0..2 {
        watch.compare_from_now_on(&std::io::ErrorKind::QuotaExceeded.into());
    }
    let text = "cannot watch files (quota exceeded); they are compared every 250 ms";
    assert_eq!(*notes.borrow(), [Note::Detail(text.to_owned())]);
    // What changed before may have been missed.
    assert_eq!(changed(&mut watch), [Subject::Events]);
    EventLog::open(&project.store, EventLogLimits { max_file_size: 1 << 20, max_full_files: 9 })
        .append(Event::new(EventName::LaneCreated, "made"), false)
        .unwrap();
    assert_eq!(changed(&mut watch), [Subject::Events]);
    assert_settled(&mut watch);
}
