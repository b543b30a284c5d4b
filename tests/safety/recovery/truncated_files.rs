//! Files of which a power failure left only the beginning, and how the next command treats them. The kernel
//! may write a working tree's files late, so a command is killed and the files that it had written are
//! truncated by hand.

use proq_test_kit::faults::{kill_at, recover_after_reboot};
use proq_test_kit::snapshots::snapshot_ids;
use proq_test_kit::{RepoState, Sandbox, fixtures};

/// Scene, command, fault point at which it is killed, and shell commands that truncate what it had written by
/// then.
type TruncationCase = (fn() -> Sandbox, &'static [&'static str], &'static str, &'static str);

const TRUNCATION_CASES: &[TruncationCase] = &[
    (
        fixtures::dirty_with_lanes,
        &["preview", "one"],
        "clear.installed",
        ": >a.txt; : >b.txt; : >dir/gone.txt",
    ),
    (
        fixtures::dirty_with_lanes,
        &["preview", "one"],
        "transition.installed",
        ": >shared.txt; : >one.txt; : >a.txt",
    ),
    (
        fixtures::dirty_with_lanes,
        &["preview", "one"],
        "transition.moved",
        ": >shared.txt; : >dir/gone.txt; : >deep/one",
    ),
    (fixtures::edited_preview, &["preview", "two"], "transition.installed", ": >shared.txt; : >two.txt"),
    (
        fixtures::edited_preview,
        &["preview", "--back"],
        "restore.installed",
        ": >shared.txt; : >run.sh; : >dir/c.txt",
    ),
];

/// Promise: operations/power-cut-files
#[test]
fn truncated_files_are_not_user_changes() {
    for (scene, args, at, truncate) in TRUNCATION_CASES {
        let sandbox = scene();
        let (before, snapshots) = (RepoState::capture(&sandbox), snapshot_ids(&sandbox));
        kill_at(&sandbox, at, args);
        sandbox.sh(truncate);
        recover_after_reboot(&sandbox);
        RepoState::capture(&sandbox).assert_same(&before, at);
        assert_eq!(snapshot_ids(&sandbox), snapshots, "{args:?} {at}");
    }
}

/// Promise: operations/power-cut-files
#[test]
fn truncated_filter_output_and_attributes_are_undone() {
    let sandbox = fixtures::edited_preview();
    sandbox.commit_in_lane("two", "echo '*.txt text eol=crlf' >.gitattributes; seq 200 >two.txt");
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "transition.installed", &["preview", "two"]);
    assert!(sandbox.read("two.txt").starts_with("1\r\n2\r\n"));
    sandbox.sh(": >.gitattributes");
    let file = std::fs::File::options().write(true).open(sandbox.repo.join("two.txt")).unwrap();
    // A disk writes complete blocks.
    file.set_len(512).unwrap();
    recover_after_reboot(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
}

/// Promise: operations/power-cut-files
#[test]
fn overwritten_files_are_kept() {
    // Also where the user removed something from its end.
    for user_text in ["mine\n", "changed\nand more\n", "chan"] {
        let sandbox = fixtures::dirty_with_lanes();
        kill_at(&sandbox, "transition.installed", &["preview", "one"]);
        sandbox.write("shared.txt", user_text);
        recover_after_reboot(&sandbox);
        let is_in_snapshot = snapshot_ids(&sandbox).iter().any(|id| {
            let shown = sandbox.git(&["show", &format!("refs/proq/snap/{id}:shared.txt")]);
            shown == user_text.trim_end()
        });
        assert!(is_in_snapshot || sandbox.read("shared.txt") == user_text, "{user_text:?} is nowhere");
    }
}

/// Only a power failure leaves a beginning, so a file that was emptied while the machine ran was emptied by
/// the user.
/// Promise: operations/power-cut-files
#[test]
fn file_emptied_after_kill_is_kept_empty() {
    let sandbox = fixtures::dirty_with_lanes();
    kill_at(&sandbox, "transition.installed", &["preview", "one"]);
    sandbox.write("shared.txt", "");
    let _ = sandbox.proq(&["list"]).ok();
    let is_kept = snapshot_ids(&sandbox).iter().any(|id| {
        let blob = format!("refs/proq/snap/{id}:shared.txt");
        sandbox.git(&["cat-file", "-s", &blob]) == "0"
    });
    assert!(is_kept || sandbox.read("shared.txt").is_empty(), "the empty file is nowhere");
}

/// Also in the step in progress, where git's unfinished writes have to be distinguished from the user's
/// edits.
/// Promise: operations/power-cut-files
#[test]
fn file_shortened_after_kill_is_kept() {
    for at in ["transition.brought", "transition.staged"] {
        let sandbox = fixtures::two_lanes();
        sandbox.commit_in_lane("two", "seq 300 >long.txt; git commit -qam long");
        sandbox.write("mine.txt", "mine\n");
        kill_at(&sandbox, at, &["preview", "two"]);
        let long = sandbox.read("long.txt");
        let short: String = long.split_inclusive('\n').take(100).collect();
        assert_ne!(short, long, "{at}: nothing was brought yet");
        sandbox.write("long.txt", &short);
        let _ = sandbox.proq(&["list"]).ok();
        std::fs::write(sandbox.root().join("short"), &short).unwrap();
        let kept = sandbox
            .sh("for ref in $(git for-each-ref --format='%(refname)' refs/proq/saved refs/proq/snap); do
                 git show $ref:long.txt 2>/dev/null | cmp -s - ../short && echo kept; done; true");
        assert!(kept.contains("kept") || sandbox.read("long.txt") == short, "{at}: it is nowhere");
    }
}

/// Promise: operations/power-cut-files
#[test]
fn file_shortened_in_unfinished_lane_is_kept() {
    let sandbox = fixtures::clean_checkout();
    sandbox.sh("seq 300 >long.txt; git commit -qam long");
    kill_at(&sandbox, "worktree.added", &["spawn", "--empty", "-n", "new"]);
    sandbox.sh("head -100 long.txt >.proq-worktrees/new/long.txt");
    let _ = sandbox.proq(&["list"]).ok();
    let kept = sandbox.sh("head -100 long.txt | cmp - .git/proq/trash/*/worktree/long.txt && echo kept");
    assert_eq!(kept.trim(), "kept");
}

/// Promise: operations/power-cut-files
#[test]
fn truncated_files_of_restore_are_not_saved() {
    let sandbox = fixtures::dirty_with_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let id = snapshot_ids(&sandbox)[0].clone();
    sandbox.sh("git reset -q --hard; git clean -qfd");
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "restore.given", &["snap", "restore", &id]);
    sandbox.sh(": >a.txt; : >notes.txt");
    recover_after_reboot(&sandbox);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/saved/"]), "");
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
}

/// Promise: operations/power-cut-files
#[test]
fn truncated_symlink_stand_in_is_rewritten() {
    let sandbox = fixtures::clean_checkout();
    sandbox.lane_with_commit("one", "echo one >one.txt");
    sandbox.sh("git config core.symlinks false; rm link; git checkout -q -- link; printf b.txt >link");
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "transition.installed", &["preview", "one"]);
    assert_eq!(sandbox.read("link"), "a.txt");
    sandbox.sh(": >link");
    recover_after_reboot(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
}

/// Promise: operations/power-cut-files
#[test]
fn truncated_snapshot_files_are_not_user_changes() {
    for onto in ["", "echo moved >long.txt; git commit -qam moved"] {
        // Number of snapshots without truncation, for comparison: of merged changes, one snapshot is kept.
        let snapshots =
            ["", ": >a.txt; : >b.txt; : >notes.txt; : >'new dir/with space.txt'"].map(|truncate| {
                let sandbox = fixtures::dirty_with_lanes();
                let _ = sandbox.proq(&["preview", "one"]).ok();
                let _ = sandbox.proq(&["preview", "--back"]).ok();
                let id = snapshot_ids(&sandbox)[0].clone();
                sandbox.sh("git reset -q --hard; git clean -qfd");
                sandbox.sh(onto);
                let before = RepoState::capture(&sandbox);
                kill_at(&sandbox, "restore.installed", &["snap", "restore", &id]);
                assert_eq!(sandbox.read("notes.txt"), "notes\n");
                sandbox.sh(truncate);
                recover_after_reboot(&sandbox);
                RepoState::capture(&sandbox).assert_same(&before, &format!("{onto}, {truncate}"));
                snapshot_ids(&sandbox).len()
            });
        assert_eq!(snapshots[0], snapshots[1], "{onto}");
    }
}
