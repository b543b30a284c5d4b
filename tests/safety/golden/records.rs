//! Records as golden files, with a value for each key: the program reads all of it, and writes the same file.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use proq_lib::swarm::batch::record::BatchRecord;
use proq_store::base::record::Record;
use proq_store::locks::holder::LockHolder;
use proq_store::locks::merge_queue::QueueEntry;
use proq_store::records::agent::{ActivityRecord, OverseerRecord, ReportRecord};
use proq_store::records::approval::ApprovalsRecord;
use proq_store::records::baseline::{CheckoutBaseline, WorktreeBaselineRecord};
use proq_store::records::batched::BatchBranches;
use proq_store::records::check::{CheckWorktreeRecord, FailedCheckRecord, VerifyCacheRecord};
use proq_store::records::conflict::{ConflictRecord, ResolutionRecord};
use proq_store::records::draft::{DraftRecord, ProposalsRecord};
use proq_store::records::git_guard::{GitGuardRecord, WithheldHooks};
use proq_store::records::lane::AnyLane;
use proq_store::records::message::{DeliveredRecord, MessageRecord};
use proq_store::records::ports::SetUpRecord;
use proq_store::records::preview::PreviewRecord;
use proq_store::records::run::RunRecord;
use proq_store::records::snapshot::SnapshotRecord;
use proq_store::records::task_loop::TaskLoopRecord;
use proq_store::records::trash::{ReusedTrashRecord, TrashRecord};
use proq_test_kit::{Sandbox, file_names};

/// States that a lane's record can have.
const LANE_STATES: [&str; 13] = [
    "idle",
    "starting",
    "running",
    "done",
    "no-change",
    "failed",
    "stalled",
    "stopped",
    "orphaned",
    "conflict",
    "check-failed",
    "landed",
    "discarded",
];

/// Reads and writes a record of one type, and returns its file and its debug form.
type RoundTrip = fn(&Path) -> (String, String);

const RECORDS: &[(&str, RoundTrip)] = &[
    ("activity", round_trip::<ActivityRecord>),
    ("approvals", round_trip::<ApprovalsRecord>),
    ("batch", round_trip::<BatchRecord>),
    ("batch-branches", round_trip::<BatchBranches>),
    ("check-worktree", round_trip::<CheckWorktreeRecord>),
    ("checkout-baseline", round_trip::<CheckoutBaseline>),
    ("conflict", round_trip::<ConflictRecord>),
    ("delivered", round_trip::<DeliveredRecord>),
    ("draft", round_trip::<DraftRecord>),
    ("failed-check", round_trip::<FailedCheckRecord>),
    ("git-guard", round_trip::<GitGuardRecord>),
    ("lane", round_trip::<AnyLane>),
    ("lane-in-place", round_trip::<AnyLane>),
    ("lock-holder", round_trip::<LockHolder>),
    ("message", round_trip::<MessageRecord>),
    ("overseer", round_trip::<OverseerRecord>),
    ("preview", round_trip::<PreviewRecord>),
    ("proposals", round_trip::<ProposalsRecord>),
    ("queue-entry", round_trip::<QueueEntry>),
    ("report", round_trip::<ReportRecord>),
    ("resolution", round_trip::<ResolutionRecord>),
    ("reused-trash", round_trip::<ReusedTrashRecord>),
    ("run", round_trip::<RunRecord>),
    ("set-up", round_trip::<SetUpRecord>),
    ("snapshot", round_trip::<SnapshotRecord>),
    ("task-loop", round_trip::<TaskLoopRecord>),
    ("trash", round_trip::<TrashRecord>),
    ("verify-cache", round_trip::<VerifyCacheRecord>),
    ("withheld-hooks", round_trip::<WithheldHooks>),
    ("worktree-baseline", round_trip::<WorktreeBaselineRecord>),
];

fn round_trip<R: Record + Debug>(path: &Path) -> (String, String) {
    let record = R::load(path).unwrap();
    (record.to_toml(path).unwrap(), format!("{record:?}"))
}

fn records_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/records")
}

#[test]
fn golden_records_are_read_and_written_byte_for_byte() {
    let dir = records_dir();
    let mut read = String::new();
    for (name, round_trip) in RECORDS {
        let path = dir.join(format!("{name}.toml"));
        let (written, debug) = round_trip(&path);
        if std::env::var_os("PROQ_TEST_WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &written).unwrap();
        }
        assert_eq!(written, std::fs::read_to_string(&path).unwrap(), "{name}");
        read.push_str(&format!("{name}: {debug}\n"));
    }
    insta::with_settings!({
        snapshot_path => &dir, prepend_module_to_snapshot => false, omit_expression => true,
    }, {
        insta::assert_snapshot!("records", read);
    });
    let mut files: Vec<String> = RECORDS.iter().map(|(name, _)| format!("{name}.toml")).collect();
    files.sort();
    let mut on_disk = file_names(&dir);
    on_disk.retain(|name| name != "records.snap" && name != "lane-one-state.toml");
    assert_eq!(on_disk, files);
}

#[test]
fn golden_lane_is_read_in_each_state() {
    let sandbox = Sandbox::empty();
    let landed = std::fs::read_to_string(records_dir().join("lane-one-state.toml")).unwrap();
    for state in LANE_STATES {
        let text = landed.replace("state = \"landed\"", &format!("state = \"{state}\""));
        sandbox.write("lane.toml", &text);
        let lane = AnyLane::load(&sandbox.repo.join("lane.toml")).unwrap();
        assert_eq!(lane.state().to_string(), state);
        sandbox.write("lane.toml", &lane.to_toml(Path::new("lane.toml")).unwrap());
        let rewritten = AnyLane::load(&sandbox.repo.join("lane.toml")).unwrap();
        assert_eq!(rewritten.state(), lane.state());
    }
}
