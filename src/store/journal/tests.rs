//! Owns the tests of the journal.

use super::*;
use crate::store::{Layout, now};

fn file_step(n: usize) -> Step {
    Step::File { path: format!("{n}").into(), old: None, new: Some("x".into()) }
}

fn plan(n: usize) -> Line {
    Line::Plan { steps: vec![file_step(n)], worktrees: Vec::new(), forward: false, of: None }
}

/// The journal that nobody holds. A program that a test beside this one is starting has all locks of this process, too, until it
/// runs.
fn left_behind(layout: &Layout) -> Journal {
    let since = std::time::Instant::now();
    loop {
        if let Some(orphan) = layout.orphans().unwrap().pop() {
            return Journal::adopt(orphan).unwrap().unwrap();
        }
        assert!(since.elapsed().as_secs() < 60, "nobody lets go of it");
        std::thread::yield_now();
    }
}

#[test]
fn a_journal_tells_how_far_it_came_and_ends_in_the_log() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::new(root.path());
    let scratch = layout.scratch().unwrap();
    let mut journal = Journal::begin(scratch, Header::new("test"), plan(0)).unwrap();
    assert!(journal.note(Line::Done(0)));
    assert_eq!(journal.plan(plan(1)).unwrap(), 1);
    let read = Entry::read(&journal.path).unwrap().unwrap();
    assert_eq!(read, *journal.entry());
    assert_eq!(read.standing().count(), 1);
    assert_eq!(journal.end(now(), false).unwrap(), 1);
    assert_eq!(numbers(&layout.operations()), [1]);
    assert!(std::fs::read_dir(layout.work()).unwrap().next().is_none());
}

#[test]
fn the_folder_of_a_step_stays_until_its_end_is_on_disk() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::new(root.path());
    let mut journal = Journal::begin(layout.scratch().unwrap(), Header::new("test"), plan(0)).unwrap();
    let folder = journal.scratch().path().join("0");
    std::fs::create_dir(&folder).unwrap();
    assert!(journal.note(Line::Done(0)));
    assert!(folder.exists(), "a power cut may take the note");
    let _ = journal.plan(plan(1)).unwrap();
    assert!(!folder.exists());
    journal.forget();
}

#[test]
fn a_journal_outlives_a_process_that_panics() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::new(root.path());
    let journal = Journal::begin(layout.scratch().unwrap(), Header::new("test"), plan(0)).unwrap();
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _journal = journal;
        std::panic::resume_unwind(Box::new("a defect"));
    }));
    assert!(panics.is_err());
    let journal = left_behind(&layout);
    assert_eq!(journal.entry().steps[0].status, Status::Open);
    journal.forget();
    assert!(layout.orphans().unwrap().is_empty());
}

#[test]
fn a_note_that_could_not_be_written_is_written_with_the_next_line() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::new(root.path());
    let mut journal = Journal::begin(layout.scratch().unwrap(), Header::new("test"), plan(0)).unwrap();
    let read_only = File::open(&journal.path).unwrap();
    let file = std::mem::replace(&mut journal.file, read_only);
    assert!(!journal.note(Line::Done(0)));
    journal.file = file;
    let number = journal.end(now(), false).unwrap();
    let read = Entry::read(&layout.operation(number)).unwrap().unwrap();
    assert_eq!(read.standing().count(), 1);
}

#[test]
fn a_line_that_was_cut_short_never_was_and_hides_no_other() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::new(root.path());
    let journal = Journal::begin(layout.scratch().unwrap(), Header::new("test"), plan(0)).unwrap();
    let path = journal.path.clone();
    journal.leave();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"done\":").unwrap();
    drop(file);
    let mut journal = left_behind(&layout);
    assert_eq!(journal.entry().steps[0].status, Status::Open);
    assert!(journal.note(Line::Back(0)));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("}}\n{\"back\":0}\n"), "{text}");
    journal.forget();
    assert!(layout.orphans().unwrap().is_empty());
}

#[test]
fn one_of_a_newer_program_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("journal");
    std::fs::write(&path, "{\"open\":{\"format\":9,\"whatever\":1}}\n").unwrap();
    assert!(matches!(Entry::read(&path), Err(Error::Newer { found: 9, .. })));
    std::fs::write(&path, "{\"open\"").unwrap();
    assert_eq!(Entry::read(&path).unwrap(), None);
}
