//! The commit graph that git writes in the background where a long history has none.

use std::path::PathBuf;
use std::process::Stdio;

use proq_test_kit::waiting::{KilledOnDrop, wait_until};
use proq_test_kit::{Output, Sandbox};

/// Returns a repository with a lane, and a few packed objects, each of which counts as many.
fn long_history() -> Sandbox {
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
    assert_eq!(out.code, 0, "{}", out.to_text());
    out
}

fn graph_path(sandbox: &Sandbox) -> PathBuf {
    sandbox.repo.join(".git/objects/info/commit-graph")
}

/// Returns whether the graph was requested from git. The list records that before the request, and makes the
/// request before it exits.
fn was_requested(sandbox: &Sandbox) -> bool {
    sandbox.repo.join(".git/proq/cache/commit-graph").exists()
}

#[test]
fn list_requests_missing_graph_once_a_day() {
    let sandbox = long_history();
    let shown = list(&sandbox).stdout;
    wait_until("the graph", || graph_path(&sandbox).exists());
    assert_eq!(list(&sandbox).stdout, shown);
    sandbox.git(&["commit-graph", "verify"]);
    // It is not requested again on the same day, even if it is missing.
    std::fs::remove_file(graph_path(&sandbox)).unwrap();
    let _ = list(&sandbox);
    sandbox.sh("touch -d '2 days ago' .git/proq/cache/commit-graph");
    let _ = list(&sandbox);
    wait_until("another one", || graph_path(&sandbox).exists());
}

#[test]
fn unwanted_or_useless_graph_is_not_requested() {
    for script in [
        "git config core.commitGraph false",
        "git config gc.writeCommitGraph false",
        "git commit-graph write --reachable --no-progress",
        "git commit-graph write --reachable --split --no-progress",
        "git commit -q --allow-empty -m two; git replace --graft HEAD >/dev/null; git repack -adq",
        "git rev-parse HEAD >.git/shallow",
        "mv .git/objects/pack/*.pack ../pack; rm -f .git/objects/pack/*; git unpack-objects -q <../pack",
    ] {
        let sandbox = long_history();
        sandbox.sh(script);
        let _ = list(&sandbox);
        assert!(!was_requested(&sandbox), "{script}");
    }
}

#[test]
fn short_history_or_no_lanes_get_no_graph() {
    let sandbox = long_history();
    let _ = sandbox.proq(&["list"]).ok();
    assert!(!was_requested(&sandbox));
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let _ = list(&sandbox);
    assert!(!was_requested(&sandbox));
}

#[test]
fn only_one_of_two_lists_requests_graph() {
    let sandbox = long_history();
    let start = |at: &str| {
        let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
        command.env("PROQ_TEST_MANY_OBJECTS", "1").env("PROQ_TEST_STAND_AT", at).stdout(Stdio::null());
        KilledOnDrop(command.spawn().unwrap())
    };
    // It has seen that there is no graph, and that no process has requested one.
    let mut first = start("graph.lacks");
    let paused = sandbox.wait_until_stopped(first.0.id());
    let mut second = start("");
    assert_eq!(second.exit_code(), Some(0));
    drop(paused);
    assert_eq!(first.exit_code(), Some(0));
    let requester = std::fs::read_to_string(sandbox.repo.join(".git/proq/cache/commit-graph")).unwrap();
    assert_eq!(requester, format!("{}\n", second.0.id()));
    wait_until("the graph", || graph_path(&sandbox).exists());
}
