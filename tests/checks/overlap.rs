//! Tests of the event `lane.overlap`: two lanes that conflict are reported once.

use std::path::{Path, PathBuf};

use proq_test_kit::Sandbox;
use proq_test_kit::waiting::wait_until;

/// Returns the lanes and paths of all reported overlaps, in order.
fn reported_overlaps(sandbox: &Sandbox) -> Vec<String> {
    let all = sandbox.events("lane.overlap");
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    all.iter()
        .map(|e| {
            format!("{} {}: {}", text(&e["lane"]), text(&e["other"]), e["paths"].to_string().replace('"', ""))
        })
        .collect()
}

#[track_caller]
fn run_matrix(sandbox: &Sandbox, args: &[&str]) {
    let _ = sandbox.proq(&[&["matrix"], args].concat()).ok();
}

#[test]
fn reports_overlap_when_a_run_ends() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("one", "echo one > a.txt; echo one > new.txt");
    sandbox.run_lane("fine", "echo 1 > fine.txt");
    sandbox.run_lane("two", "echo two > a.txt; echo two > new.txt");
    sandbox.wait_for_events("lane.overlap", "two", 1);
    let all = sandbox.events("lane.overlap");
    insta::assert_snapshot!(all[0]["message"].as_str().unwrap(), @"lanes 'two' and 'one' conflict in a.txt, new.txt");
    assert_eq!(
        (&all[0]["lane"], &all[0]["state"], &all[0]["other"]),
        (&"two".into(), &"done".into(), &"one".into())
    );
    assert_eq!(all[0]["paths"], serde_json::json!(["a.txt", "new.txt"]));
    run_matrix(&sandbox, &[]);
    assert_eq!(reported_overlaps(&sandbox), ["two one: [a.txt,new.txt]"]);
    assert_eq!(sandbox.row("two")["state"], "done");
}

#[test]
fn reports_overlap_once_until_it_is_resolved() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > a.txt");
    sandbox.lane_with_commit("two", "echo two > b.txt");
    run_matrix(&sandbox, &[]);
    assert_eq!(reported_overlaps(&sandbox), [""; 0]);
    sandbox.commit_in_lane("two", "echo two > a.txt");
    run_matrix(&sandbox, &[]);
    assert_eq!(reported_overlaps(&sandbox), ["one two: [a.txt]"]);
    // Other commits and other files of the same two conflicting lanes.
    sandbox.commit_in_lane("two", "echo more > a.txt; echo more > c.txt");
    sandbox.commit_in_lane("one", "echo other > c.txt");
    run_matrix(&sandbox, &[]);
    assert_eq!(reported_overlaps(&sandbox).len(), 1);
    sandbox.commit_in_lane("two", "echo a > a.txt; rm c.txt");
    run_matrix(&sandbox, &[]);
    sandbox.commit_in_lane("two", "echo again > a.txt");
    run_matrix(&sandbox, &[]);
    assert_eq!(reported_overlaps(&sandbox), ["one two: [a.txt]"; 2]);
    // A lane without changes conflicts with no other lane.
    sandbox.git_in(&sandbox.lane_path("two"), &["reset", "-q", "--hard", "main"]);
    run_matrix(&sandbox, &[]);
    sandbox.commit_in_lane("two", "echo again > a.txt");
    run_matrix(&sandbox, &[]);
    assert_eq!(reported_overlaps(&sandbox).len(), 3);
}

#[test]
fn matrix_reports_uncommitted_overlap_once() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > a.txt");
    sandbox.lane_with_commit("two", "echo two > b.txt");
    sandbox.sh_in(&sandbox.lane_path("two"), "echo two > a.txt");
    run_matrix(&sandbox, &["--committed"]);
    assert_eq!(reported_overlaps(&sandbox), [""; 0]);
    for args in [&[][..], &["--committed"], &[]] {
        run_matrix(&sandbox, args);
        assert_eq!(reported_overlaps(&sandbox).len(), 1, "{args:?}");
    }
    sandbox.git_in(&sandbox.lane_path("two"), &["checkout", "-q", "a.txt"]);
    run_matrix(&sandbox, &[]);
    sandbox.sh_in(&sandbox.lane_path("two"), "echo two > a.txt");
    run_matrix(&sandbox, &[]);
    assert_eq!(reported_overlaps(&sandbox).len(), 2);
}

#[test]
fn checks_only_the_lane_whose_run_ended() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > a.txt");
    sandbox.lane_with_commit("two", "echo two > a.txt");
    sandbox.lane_with_commit("three", "echo three > c.txt");
    let _ = sandbox.proq(&["_overlaps", "--lane", "three"]).ok();
    assert_eq!(reported_overlaps(&sandbox), [""; 0]);
    let _ = sandbox.proq(&["_overlaps", "--lane", "two"]).ok();
    assert_eq!(reported_overlaps(&sandbox), ["two one: [a.txt]"]);
}

/// Returns whether a process has one of these lock files open, so that it holds the lock or waits for it.
fn has_lock_open(pid: u32, lock_paths: &[PathBuf]) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.into_iter().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|file| lock_paths.contains(&file)))
}

#[test]
fn concurrent_checks_report_an_overlap_once() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > a.txt");
    sandbox.lane_with_commit("two", "echo two > a.txt");
    let locks = ["events", "store"].map(|name| sandbox.repo.join(format!(".git/proq/locks/{name}.lock")));
    // Neither process can report the overlap until both have found it.
    let event_lock = std::fs::File::open(&locks[0]).unwrap();
    event_lock.lock().unwrap();
    let start = |lane| sandbox.proq_command(&sandbox.repo, &["_overlaps", "--lane", lane]).spawn().unwrap();
    let mut children = ["one", "two"].map(start);
    if Path::new("/proc/self/fd").exists() {
        wait_until("both wait", || children.iter().all(|child| has_lock_open(child.id(), &locks)));
    }
    event_lock.unlock().unwrap();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!(reported_overlaps(&sandbox).len(), 1);
}

#[test]
fn auto_merge_reports_overlap_before_landing() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > a.txt");
    let args = ["spawn", "--auto-merge", "--wait", "-n", "two", "--", "sh", "-ec", "echo two > a.txt"];
    let _ = sandbox.proq(&args).ok();
    assert_eq!(reported_overlaps(&sandbox), ["two one: [a.txt]"]);
    let names: Vec<String> = ["lane.overlap", "merge.landed"]
        .iter()
        .map(|name| sandbox.events(name)[0]["n"].to_string())
        .collect();
    assert!(names[0].len() <= names[1].len() && names[0] < names[1], "{names:?}");
}

#[test]
fn run_succeeds_when_overlaps_cannot_be_recorded() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > a.txt");
    std::fs::create_dir_all(sandbox.repo.join(".git/proq/cache/overlaps")).unwrap();
    sandbox.run_lane("two", "echo two > a.txt");
    sandbox.wait_for_events("lane.overlap", "two", 1);
    assert_eq!(sandbox.row("two")["state"], "done");
    run_matrix(&sandbox, &[]);
}
