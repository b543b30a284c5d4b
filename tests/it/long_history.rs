//! Owns the tests of the graph of commits that git writes in the background where a long history has none.

use std::path::PathBuf;
use std::process::Stdio;

use super::support::patience::{Beside, wait_until};
use super::support::{Output, Sandbox};

/// A repository with a lane, and a few objects in a pack, of which each counts as many.
fn long() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.git(&["repack", "-adq"]);
    sandbox
}

#[track_caller]
fn list(sandbox: &Sandbox) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
    command.env("PROQ_TEST_MANY_OBJECTS", "1");
    let out = sandbox.output(command);
    assert_eq!(out.code, 0, "{}", out.shown());
    out
}

fn graph(sandbox: &Sandbox) -> PathBuf {
    sandbox.repo.join(".git/objects/info/commit-graph")
}

/// Whether git was asked for it. The list notes that before it asks, and asks before it ends.
fn was_tried(sandbox: &Sandbox) -> bool {
    sandbox.repo.join(".git/proq/cache/commit-graph").exists()
}

#[test]
fn a_list_has_it_written_once_where_it_is_missing() {
    let sandbox = long();
    let shown = list(&sandbox).stdout;
    wait_until("the graph", || graph(&sandbox).exists());
    assert_eq!(list(&sandbox).stdout, shown);
    sandbox.git(&["commit-graph", "verify"]);
    // It is not asked for again on the same day, even if it is gone.
    std::fs::remove_file(graph(&sandbox)).unwrap();
    let _ = list(&sandbox);
    sandbox.sh("touch -d '2 days ago' .git/proq/cache/commit-graph");
    let _ = list(&sandbox);
    wait_until("another one", || graph(&sandbox).exists());
}

#[test]
fn where_it_is_not_wanted_or_of_no_use_git_is_not_asked() {
    for deed in [
        "git config core.commitGraph false",
        "git config gc.writeCommitGraph false",
        "git commit-graph write --reachable --no-progress",
        "git commit-graph write --reachable --split --no-progress",
        "git commit -q --allow-empty -m two; git replace --graft HEAD >/dev/null; git repack -adq",
        "git rev-parse HEAD >.git/shallow",
        "mv .git/objects/pack/*.pack ../pack; rm -f .git/objects/pack/*; git unpack-objects -q <../pack",
    ] {
        let sandbox = long();
        sandbox.sh(deed);
        let _ = list(&sandbox);
        assert!(!was_tried(&sandbox), "{deed}");
    }
}

#[test]
fn a_short_history_and_a_repository_without_lanes_get_none() {
    let sandbox = long();
    let _ = sandbox.proq(&["list"]).ok();
    assert!(!was_tried(&sandbox));
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let _ = list(&sandbox);
    assert!(!was_tried(&sandbox));
}

#[test]
fn of_two_lists_at_once_one_asks() {
    let sandbox = long();
    let start = |at: &str| {
        let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
        command.env("PROQ_TEST_MANY_OBJECTS", "1").env("PROQ_TEST_STAND_AT", at).stdout(Stdio::null());
        Beside(command.spawn().unwrap())
    };
    // It has seen that there is no graph, and that nobody has asked.
    let mut first = start("graph.lacks");
    let standing = sandbox.standing(first.0.id());
    let mut second = start("");
    assert_eq!(second.code(), Some(0));
    drop(standing);
    assert_eq!(first.code(), Some(0));
    let asked = std::fs::read_to_string(sandbox.repo.join(".git/proq/cache/commit-graph")).unwrap();
    assert_eq!(asked, format!("{}\n", second.0.id()));
    wait_until("the graph", || graph(&sandbox).exists());
}
