//! Journals as golden files: what the program writes, what it reads, and what undo, redo and the log make of
//! them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proq_lib::operation::journaled_operation::step::BoxedStep;
use proq_lib::step_kinds::register_step_kinds;
use proq_store::operations::operation_entry::JournalLine;
use proq_test_kit::{RepoState, Sandbox, file_names};

use super::canonical::{RunValues, with_serials_of, without_unknown_sessions};
use super::cases::{CASES, Case};
use super::cuts::write_records_of_older_version;

/// Tags of all kinds of steps, as `Step` writes them.
const STEP_TAGS: [&str; 14] = [
    "anchor", "clear", "file", "move", "ref", "regrow", "rename", "resolve", "restore", "reuse", "snap",
    "tree", "worked", "worktree",
];

/// Returns the path of a golden file of operations.
fn golden_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/operations").join(name)
}

/// Returns the golden journals of a case, with what this process can write of them: each operation begins with
/// its own first line.
pub fn golden_journals(case: &Case) -> String {
    without_unknown_sessions(std::fs::read_to_string(golden_path(&format!("{}.jsonl", case.name))).unwrap())
}

/// Returns the operations in the log, by number.
pub fn logged_operations(sandbox: &Sandbox) -> BTreeSet<u32> {
    let names = file_names(&sandbox.repo.join(".git/proq/ops"));
    names.iter().map(|name| name.trim_end_matches(".jsonl").parse().unwrap()).collect()
}

/// Returns the journals of the operations with these numbers.
fn read_journals(sandbox: &Sandbox, numbers: &BTreeSet<u32>) -> String {
    let read = |number: &u32| sandbox.read(&format!(".git/proq/ops/{number}.jsonl"));
    numbers.iter().map(read).collect()
}

/// Runs a case and returns the numbers of its operations.
#[track_caller]
pub fn run_case(sandbox: &Sandbox, case: &Case) -> BTreeSet<u32> {
    let earlier = logged_operations(sandbox);
    let out = sandbox.proq(case.args);
    assert_eq!(out.code, case.code, "{}", out.to_text());
    &logged_operations(sandbox) - &earlier
}

/// Runs a case; compares its journals with the golden ones, what the log shows of them, and the states that
/// undo and redo lead to. `PROQ_TEST_WRITE_GOLDEN` writes the golden journals instead.
#[track_caller]
pub fn check_finished_journals(case: &Case) {
    let sandbox = (case.scene)();
    let before = capture(&sandbox);
    let numbers = run_case(&sandbox, case);
    let after = capture(&sandbox);
    let (text, run) = RunValues::canonicalize(&sandbox, &read_journals(&sandbox, &numbers));
    if std::env::var_os("PROQ_TEST_WRITE_GOLDEN").is_some() {
        std::fs::write(golden_path(&format!("{}.jsonl", case.name)), &text).unwrap();
    }
    assert_eq!(text, with_serials_of(&golden_journals(case), &text));
    let mut shown = sandbox.proq(&["op", "log"]).to_text();
    for number in &numbers {
        shown.push_str(&sandbox.proq(&["op", "show", &number.to_string()]).to_text());
    }
    if !case.undo.is_empty() {
        write_golden_journals(&sandbox, &numbers, &run.materialize(&text));
        write_records_of_older_version(&sandbox);
        let undone = sandbox.proq(case.undo);
        assert_eq!(undone.code, 0, "{}", undone.to_text());
        shown.push_str(&undone.to_text());
        capture(&sandbox).assert_same(&before, "undone");
        let is_undone_by_redo = case.undo == ["op", "redo"];
        let redone = sandbox.proq(if is_undone_by_redo { &["undo"] } else { &["op", "redo"] });
        assert_eq!(redone.code, 0, "{}", redone.to_text());
        shown.push_str(&redone.to_text());
        capture(&sandbox).assert_same(&after, "redone");
    }
    let shown = mask_process(&shown);
    insta::with_settings!({
        snapshot_path => golden_path(""), prepend_module_to_snapshot => false, omit_expression => true,
    }, {
        insta::assert_snapshot!(case.name, shown);
    });
}

/// Captures what recovery, undo and redo restore, without what older versions do not write. What a partly created
/// lane had may be in the trash, and an empty folder stays where conflicts were resolved.
pub fn capture(sandbox: &Sandbox) -> RepoState {
    sandbox.sh("rmdir .proq-worktrees/.resolve 2> /dev/null || true");
    RepoState::capture(sandbox).without_removed_lanes().without_run_and_landing()
}

/// Replaces the journals of finished operations by golden ones.
fn write_golden_journals(sandbox: &Sandbox, numbers: &BTreeSet<u32>, golden: &str) {
    let mut journals: Vec<String> = Vec::new();
    for line in golden.split_inclusive('\n') {
        if line.starts_with("{\"open\"") {
            journals.push(String::new());
        }
        journals.last_mut().unwrap().push_str(line);
    }
    assert_eq!(journals.len(), numbers.len());
    for (number, journal) in numbers.iter().zip(journals) {
        sandbox.write(&format!(".git/proq/ops/{number}.jsonl"), &journal);
    }
}

/// Masks the process and the host that `op show` prints, and leaves out what older journals do not have.
fn mask_process(shown: &str) -> String {
    let mask = |line| if str::starts_with(line, "who  ") { "who        [PROCESS]" } else { line };
    let lines = shown.lines().filter(|line| !line.starts_with("via  "));
    lines.map(mask).collect::<Vec<_>>().join("\n")
}

#[test]
fn golden_journals_are_read_and_written_byte_for_byte() {
    register_step_kinds();
    for case in CASES {
        for line in golden_journals(case).split_inclusive('\n') {
            let read: JournalLine<BoxedStep> = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap() + "\n", line, "{}", case.name);
        }
    }
}

#[test]
fn golden_journals_have_every_kind_of_step() {
    let all: String = CASES.iter().map(golden_journals).collect();
    let missing = STEP_TAGS.iter().filter(|tag| !all.contains(&format!("{{\"do\":\"{tag}\"")));
    assert_eq!(missing.collect::<Vec<_>>(), [&""; 0]);
}

macro_rules! finished {
    ($($test:ident: $name:literal;)*) => {
        $(#[test]
        fn $test() {
            check_finished_journals(CASES.iter().find(|case| case.name == $name).unwrap());
        })*

        #[test]
        fn every_case_is_tested() {
            assert_eq!([$($name),*].as_slice(), CASES.iter().map(|case| case.name).collect::<Vec<_>>());
        }
    };
}

finished! {
    approve: "approve";
    batch_cleanup: "batch-cleanup";
    batch_merge: "batch-merge";
    cleanup: "cleanup";
    cleanup_unrecorded: "cleanup-unrecorded";
    discard: "discard";
    doctor: "doctor";
    edit: "edit";
    in_place: "in-place";
    merge: "merge";
    merge_all: "merge-all";
    merge_autostash: "merge-autostash";
    merge_conflict: "merge-conflict";
    merge_elsewhere: "merge-elsewhere";
    merge_rebase: "merge-rebase";
    merge_squash: "merge-squash";
    pick: "pick";
    preview: "preview";
    preview_back: "preview-back";
    preview_back_commit: "preview-back-commit";
    preview_back_moved: "preview-back-moved";
    preview_refresh: "preview-refresh";
    preview_switch: "preview-switch";
    redispatch: "redispatch";
    redo: "redo";
    rename: "rename";
    resolve: "resolve";
    resolve_abort: "resolve-abort";
    resolve_continue: "resolve-continue";
    retry: "retry";
    snap_restore: "snap-restore";
    spawn: "spawn";
    spawn_carry: "spawn-carry";
    spawn_count: "spawn-count";
    spawn_pool: "spawn-pool";
    sync: "sync";
    undo: "undo";
    undo_pool: "undo-pool";
}
