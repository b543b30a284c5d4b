//! Tests of the operation journal.

use super::*;
use crate::base::clock::now;
use crate::operations::operation_entry::StepStatus;
use crate::operations::operation_entry::tests::TestStep;
use crate::paths::layout::Layout;

fn plan(n: usize) -> JournalLine<TestStep> {
    JournalLine::Plan {
        steps: vec![TestStep { name: n.to_string() }],
        worktrees: Vec::new(),
        roll_forward: false,
        reverted_step: None,
    }
}

/// Adopts the journal that no process holds. A program that a concurrent test starts inherits all locks of
/// this process until its `exec`, so this retries.
fn adopt_abandoned(layout: &Layout) -> Journal<TestStep> {
    let since = std::time::Instant::now();
    loop {
        if let Some(orphan) = layout.claim_orphans().unwrap().pop() {
            return Journal::adopt(orphan).unwrap().unwrap();
        }
        assert!(since.elapsed().as_secs() < 60, "nobody lets go of it");
        std::thread::yield_now();
    }
}

#[test]
fn finished_journal_moves_to_log() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::new(root.path());
    let scratch = layout.create_scratch().unwrap();
    let mut journal = Journal::create(scratch, OperationHeader::new("test"), plan(0)).unwrap();
    assert!(journal.record_progress(JournalLine::Done(0)));
    assert_eq!(journal.record_plan(plan(1)).unwrap(), 1);
    let read = OperationEntry::<TestStep>::read(&journal.path).unwrap().unwrap();
    assert_eq!(read, *journal.entry());
    assert_eq!(read.applied_steps().count(), 1);
    assert_eq!(journal.finish(now(), false).unwrap(), OperationNumber::new(1));
    assert_eq!(list_operation_numbers(&layout.operations()), [OperationNumber::new(1)]);
    assert!(std::fs::read_dir(layout.scratch_root()).unwrap().next().is_none());
}

#[test]
fn step_folder_stays_until_end_is_synced() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::new(root.path());
    let mut journal =
        Journal::create(layout.create_scratch().unwrap(), OperationHeader::new("test"), plan(0)).unwrap();
    let folder = journal.scratch().path().join("0");
    std::fs::create_dir(&folder).unwrap();
    assert!(journal.record_progress(JournalLine::Done(0)));
    assert!(folder.exists(), "a power cut may take the note");
    let _ = journal.record_plan(plan(1)).unwrap();
    assert!(!folder.exists());
    journal.discard();
}

/// Promise: operations/panic
#[test]
fn journal_survives_panic() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::new(root.path());
    let journal =
        Journal::create(layout.create_scratch().unwrap(), OperationHeader::new("test"), plan(0)).unwrap();
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _journal = journal;
        std::panic::resume_unwind(Box::new("a defect"));
    }));
    assert!(panics.is_err());
    let journal = adopt_abandoned(&layout);
    assert_eq!(journal.entry().steps[0].status, StepStatus::Pending);
    journal.discard();
    assert!(layout.claim_orphans().unwrap().is_empty());
}

#[test]
fn unwritten_line_precedes_next_line() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::new(root.path());
    let mut journal =
        Journal::create(layout.create_scratch().unwrap(), OperationHeader::new("test"), plan(0)).unwrap();
    let read_only = File::open(&journal.path).unwrap();
    let file = std::mem::replace(&mut journal.file, read_only);
    assert!(!journal.record_progress(JournalLine::Done(0)));
    journal.file = file;
    let number = journal.finish(now(), false).unwrap();
    let read = OperationEntry::<TestStep>::read(&layout.operation(number)).unwrap().unwrap();
    assert_eq!(read.applied_steps().count(), 1);
}

#[test]
fn torn_line_is_removed_on_adopt() {
    let root = tempfile::tempdir().unwrap();
    let layout = Layout::new(root.path());
    let journal =
        Journal::create(layout.create_scratch().unwrap(), OperationHeader::new("test"), plan(0)).unwrap();
    let path = journal.path.clone();
    journal.leave_for_recovery();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"done\":").unwrap();
    drop(file);
    let mut journal = adopt_abandoned(&layout);
    assert_eq!(journal.entry().steps[0].status, StepStatus::Pending);
    assert!(journal.record_progress(JournalLine::Undone(0)));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("}}\n{\"back\":0}\n"), "{text}");
    journal.discard();
    assert!(layout.claim_orphans().unwrap().is_empty());
}
