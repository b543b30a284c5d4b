//! Tests of sixteen concurrent merges, wherever the base is checked out: no change is lost or landed twice.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;

use proq_test_kit::{Sandbox, WorktreeState, file_names};

const LANES: usize = 16;

/// Where the base is checked out during the merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    OtherWorktree,
    NotCheckedOut,
    MainCheckout,
    /// The main checkout, with edits that no lane touches.
    UnrelatedEdits,
    /// The main checkout, with edits of a file that the lane [`CLASHING`] changes.
    ClashingEdits,
}

/// The lane whose change the user's edits block.
const CLASHING: &str = "lane-07";

/// Script of the user's changes in the checkout of the base: staged, unstaged, both, removed, untracked,
/// ignored.
const EDITS: &str = "echo s > staged.txt; git add staged.txt; echo u > own.txt; git add own.txt; echo v > own.txt
                     sed -i s/^9$/nine/ long.txt; git rm -q --cached gone.txt; echo n > new.txt; echo d > debug.log";

fn lanes() -> Vec<String> {
    (0..LANES).map(|n| format!("lane-{n:02}")).collect()
}

/// Creates sixteen lanes, each of which adds a file, changes its own line in a shared one and removes one.
/// Returns the worktree of the base.
fn repo_with_sixteen_lanes(base: Base) -> (Sandbox, Option<PathBuf>) {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 1 200 > shared.txt; seq 1 20 > long.txt; echo g > gone.txt; echo o > own.txt; echo '*.log' > .gitignore");
    for lane in lanes() {
        sandbox.write(&format!("old/{lane}.txt"), "old\n");
        sandbox.write(&format!("both/{lane}.txt"), "both\n");
    }
    sandbox.commit_all("base");
    for (n, lane) in lanes().iter().enumerate() {
        let line = 5 + n * 12;
        let script = format!(
            "mkdir new; echo {lane} > new/{lane}.txt; sed -i '{line}s/$/ {lane}/' shared.txt; rm old/{lane}.txt
             echo {lane} > both/{lane}.txt"
        );
        sandbox.lane_with_commit(lane, &script);
    }
    let worktree = match base {
        Base::MainCheckout | Base::UnrelatedEdits | Base::ClashingEdits => Some(sandbox.repo.clone()),
        Base::NotCheckedOut | Base::OtherWorktree => {
            sandbox.sh("git switch -q -c topic; echo mine > own.txt");
            (base == Base::OtherWorktree).then(|| {
                sandbox.sh("git worktree add -q ../linked main");
                sandbox.root().join("linked")
            })
        }
    };
    if matches!(base, Base::UnrelatedEdits | Base::ClashingEdits) {
        sandbox.sh(EDITS);
    }
    if base == Base::ClashingEdits {
        sandbox.sh(&format!("echo mine > both/{CLASHING}.txt"));
    }
    (sandbox, worktree)
}

/// Starts all commands before it waits for the first, and returns the exit code and output of each.
fn run_concurrently(sandbox: &Sandbox, commands: &[Vec<&str>]) -> Vec<(i32, String)> {
    let start = |args: &Vec<&str>| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = commands.iter().map(start).collect();
    let wait = |child: std::process::Child| {
        let out = child.wait_with_output().unwrap();
        let text = [out.stdout, out.stderr].concat();
        (out.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    children.into_iter().map(wait).collect()
}

/// Returns the lanes that landed; asserts one landing commit each, on a first-parent line that leads back to
/// `from`.
#[track_caller]
fn landed_lanes(sandbox: &Sandbox, from: &str) -> BTreeSet<String> {
    let log = sandbox.git(&["log", "--first-parent", "--format=%H %P|%s", &format!("{from}..main")]);
    let mut landed = BTreeSet::new();
    let mut next = sandbox.git(&["rev-parse", "main"]);
    for line in log.lines() {
        let (ids, subject) = line.split_once('|').unwrap();
        let ids: Vec<&str> = ids.split(' ').collect();
        assert_eq!((ids[0], ids.len()), (next.as_str(), 3), "not one merge after the other: {log}");
        ids[1].clone_into(&mut next);
        let lane = subject.strip_prefix("Merge lane ").unwrap().to_owned();
        let work = sandbox.git(&["log", "-1", "--format=%s", ids[2]]);
        assert_eq!(work, format!("work of {lane}"));
        assert!(landed.insert(lane), "landed twice: {log}");
    }
    assert_eq!(next, from, "the line does not lead back: {log}");
    landed
}

/// Asserts that the base holds each change of these lanes once, and no other.
#[track_caller]
fn assert_base_holds(sandbox: &Sandbox, landed: &BTreeSet<String>) {
    let files = sandbox.git(&["ls-tree", "-r", "--name-only", "main"]);
    let shared = sandbox.git(&["show", "main:shared.txt"]);
    for (n, lane) in lanes().iter().enumerate() {
        let has_landed = landed.contains(lane);
        let has_file = |dir: &str| files.lines().any(|file| file == format!("{dir}/{lane}.txt"));
        assert_eq!((has_file("new"), has_file("old")), (has_landed, !has_landed), "{lane}");
        let line = shared.lines().nth(4 + n * 12).unwrap();
        let number = (5 + n * 12).to_string();
        assert_eq!(line, if has_landed { format!("{number} {lane}") } else { number }, "{lane}");
    }
}

/// Asserts that files and index of the base's checkout are those of its HEAD, plus the user's changes.
#[track_caller]
fn assert_checkout_followed(sandbox: &Sandbox, at: &std::path::Path, before: &WorktreeState) {
    let after = WorktreeState::capture(sandbox, at);
    assert_eq!(after.status, before.status);
    for (path, file) in &before.files {
        let is_lane_file = ["new/", "old/", "both/"].iter().any(|dir| path.starts_with(dir));
        if !is_lane_file && path != "old" && path != "shared.txt" {
            assert_eq!(after.files.get(path), Some(file), "{path}");
        }
    }
}

/// Asserts that no lock of git, no ticket, no ref of an unfinished landing and no process is left, and that
/// `doctor` finds nothing.
#[track_caller]
fn assert_nothing_left(sandbox: &Sandbox) {
    let git = sandbox.repo.join(".git");
    assert_eq!(file_names(&git.join("proq/locks/tickets")), [""; 0]);
    assert_eq!(file_names(&git.join("proq/work")), [""; 0]);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/pending", "refs/proq/conflict"]), "");
    assert_eq!(sandbox.sh("find .git -name '*.lock' -not -path '.git/proq/locks/*'"), "");
    assert_eq!(sandbox.proq(&["queue", "--json"]).json()["queue"], serde_json::json!([]));
    assert_eq!(sandbox.git(&["fsck", "--connectivity-only", "--no-dangling", "--no-progress"]), "");
    sandbox.assert_healthy();
}

#[track_caller]
fn run_merges(base: Base, merge_all: bool) {
    let (sandbox, worktree) = repo_with_sixteen_lanes(base);
    let from = sandbox.git(&["rev-parse", "main"]);
    let before = worktree.as_ref().map(|at| WorktreeState::capture(&sandbox, at));
    let here = WorktreeState::capture(&sandbox, &sandbox.repo);
    let names = lanes();
    let commands: Vec<Vec<&str>> = names
        .iter()
        .map(|lane| if merge_all { vec!["merge", "--all"] } else { vec!["merge", lane] })
        .collect();
    let outputs = run_concurrently(&sandbox, &commands);
    let landed = landed_lanes(&sandbox, &from);
    // The lane that would overwrite an edit is left out, also where all lanes are one landing.
    let can_land = |lane: &&String| base != Base::ClashingEdits || *lane != CLASHING;
    let expected: BTreeSet<String> = names.iter().filter(can_land).cloned().collect();
    assert_eq!(landed, expected, "{outputs:#?}");
    for (lane, (code, text)) in names.iter().zip(&outputs) {
        let refused = base == Base::ClashingEdits && (merge_all || lane == CLASHING);
        assert_eq!(*code, i32::from(refused), "{lane}: {text}");
        assert_eq!(text.contains(&format!("in the way: both/{CLASHING}.txt")), refused, "{lane}: {text}");
        assert_eq!(sandbox.lane_path(lane).exists(), !landed.contains(lane), "{lane}: {text}");
    }
    assert_base_holds(&sandbox, &landed);
    match (&worktree, &before) {
        (Some(at), Some(before)) => assert_checkout_followed(&sandbox, at, before),
        _ => assert_eq!(WorktreeState::capture(&sandbox, &sandbox.repo), here),
    }
    if base == Base::ClashingEdits {
        assert_eq!(sandbox.read(&format!("both/{CLASHING}.txt")), "mine\n");
    }
    assert_nothing_left(&sandbox);
}

/// Promise: concurrency/concurrent-merges
#[test]
fn single_merges_onto_base_in_other_worktree() {
    run_merges(Base::OtherWorktree, false);
}

#[test]
fn single_merges_onto_base_not_checked_out() {
    run_merges(Base::NotCheckedOut, false);
}

#[test]
fn single_merges_onto_base_in_main_checkout() {
    run_merges(Base::MainCheckout, false);
}

/// Promise: concurrency/concurrent-merges
#[test]
fn single_merges_keep_unrelated_edits() {
    run_merges(Base::UnrelatedEdits, false);
}

/// Promise: concurrency/concurrent-merges
#[test]
fn single_merges_refuse_lane_over_user_edits() {
    run_merges(Base::ClashingEdits, false);
}

#[test]
fn merge_all_onto_base_in_other_worktree() {
    run_merges(Base::OtherWorktree, true);
}

#[test]
fn merge_all_onto_base_not_checked_out() {
    run_merges(Base::NotCheckedOut, true);
}

/// Promise: concurrency/concurrent-merges
#[test]
fn merge_all_onto_base_in_main_checkout() {
    run_merges(Base::MainCheckout, true);
}

#[test]
fn merge_all_keeps_unrelated_edits() {
    run_merges(Base::UnrelatedEdits, true);
}

#[test]
fn merge_all_refuses_lane_over_user_edits() {
    run_merges(Base::ClashingEdits, true);
}
