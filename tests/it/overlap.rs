//! Owns the tests of the event `lane.overlap`: two lanes that have come into each other's way, told once.

use std::path::{Path, PathBuf};

use super::support::Sandbox;
use super::support::patience::wait_until;

/// The lanes and paths of all overlaps that were told, in order.
fn told(sandbox: &Sandbox) -> Vec<String> {
    let all = sandbox.events("lane.overlap");
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    all.iter()
        .map(|e| {
            format!("{} {}: {}", text(&e["lane"]), text(&e["other"]), e["paths"].to_string().replace('"', ""))
        })
        .collect()
}

#[track_caller]
fn look(sandbox: &Sandbox, args: &[&str]) {
    let _ = sandbox.proq(&[&["matrix"], args].concat()).ok();
}

#[test]
fn two_lanes_that_come_into_each_other_s_way_are_told_when_a_run_ends() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("one", "echo one > a.txt; echo one > new.txt");
    sandbox.lane_with("fine", "echo 1 > fine.txt");
    sandbox.lane_with("two", "echo two > a.txt; echo two > new.txt");
    sandbox.until("lane.overlap", "two", 1);
    let all = sandbox.events("lane.overlap");
    insta::assert_snapshot!(all[0]["message"].as_str().unwrap(), @"lanes 'two' and 'one' conflict in a.txt, new.txt");
    assert_eq!(
        (&all[0]["lane"], &all[0]["state"], &all[0]["other"]),
        (&"two".into(), &"done".into(), &"one".into())
    );
    assert_eq!(all[0]["paths"], serde_json::json!(["a.txt", "new.txt"]));
    look(&sandbox, &[]);
    assert_eq!(told(&sandbox), ["two one: [a.txt,new.txt]"]);
    assert_eq!(sandbox.row("two")["state"], "done");
}

#[test]
fn it_is_told_once_until_it_was_over() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > a.txt");
    sandbox.lane_of("two", "echo two > b.txt");
    look(&sandbox, &[]);
    assert_eq!(told(&sandbox), [""; 0]);
    sandbox.commit_in_lane("two", "echo two > a.txt");
    look(&sandbox, &[]);
    assert_eq!(told(&sandbox), ["one two: [a.txt]"]);
    // Other commits, other files, the same two in each other's way.
    sandbox.commit_in_lane("two", "echo more > a.txt; echo more > c.txt");
    sandbox.commit_in_lane("one", "echo other > c.txt");
    look(&sandbox, &[]);
    assert_eq!(told(&sandbox).len(), 1);
    sandbox.commit_in_lane("two", "echo a > a.txt; rm c.txt");
    look(&sandbox, &[]);
    sandbox.commit_in_lane("two", "echo again > a.txt");
    look(&sandbox, &[]);
    assert_eq!(told(&sandbox), ["one two: [a.txt]"; 2]);
    // A lane without any change is in nobody's way either.
    sandbox.git_in(&sandbox.lane("two"), &["reset", "-q", "--hard", "main"]);
    look(&sandbox, &[]);
    sandbox.commit_in_lane("two", "echo again > a.txt");
    look(&sandbox, &[]);
    assert_eq!(told(&sandbox).len(), 3);
}

#[test]
fn what_is_uncommitted_is_told_by_who_looks_at_it_and_no_more_often() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > a.txt");
    sandbox.lane_of("two", "echo two > b.txt");
    sandbox.sh_in(&sandbox.lane("two"), "echo two > a.txt");
    look(&sandbox, &["--committed"]);
    assert_eq!(told(&sandbox), [""; 0]);
    for args in [&[][..], &["--committed"], &[]] {
        look(&sandbox, args);
        assert_eq!(told(&sandbox).len(), 1, "{args:?}");
    }
    sandbox.git_in(&sandbox.lane("two"), &["checkout", "-q", "a.txt"]);
    look(&sandbox, &[]);
    sandbox.sh_in(&sandbox.lane("two"), "echo two > a.txt");
    look(&sandbox, &[]);
    assert_eq!(told(&sandbox).len(), 2);
}

#[test]
fn only_the_lane_whose_run_has_ended_is_looked_at() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > a.txt");
    sandbox.lane_of("two", "echo two > a.txt");
    sandbox.lane_of("three", "echo three > c.txt");
    let _ = sandbox.proq(&["_overlaps", "--lane", "three"]).ok();
    assert_eq!(told(&sandbox), [""; 0]);
    let _ = sandbox.proq(&["_overlaps", "--lane", "two"]).ok();
    assert_eq!(told(&sandbox), ["two one: [a.txt]"]);
}

/// Whether a process has one of these locks open: it has it, or waits for it.
fn is_at(pid: u32, locks: &[PathBuf]) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.into_iter().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|file| locks.contains(&file)))
}

#[test]
fn of_two_that_look_at_the_same_time_one_tells() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > a.txt");
    sandbox.lane_of("two", "echo two > a.txt");
    let locks = ["events", "store"].map(|name| sandbox.repo.join(format!(".git/proq/locks/{name}.lock")));
    // Nobody can tell anything until both have seen that there is something to tell.
    let held = std::fs::File::open(&locks[0]).unwrap();
    held.lock().unwrap();
    let start = |lane| sandbox.proq_command(&sandbox.repo, &["_overlaps", "--lane", lane]).spawn().unwrap();
    let mut both = ["one", "two"].map(start);
    if Path::new("/proc/self/fd").exists() {
        wait_until("both wait", || both.iter().all(|child| is_at(child.id(), &locks)));
    }
    held.unlock().unwrap();
    assert!(both.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!(told(&sandbox).len(), 1);
}

#[test]
fn a_lane_that_lands_by_itself_is_told_before_it_lands() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > a.txt");
    let args = ["spawn", "--auto-merge", "--wait", "-n", "two", "--", "sh", "-ec", "echo two > a.txt"];
    let _ = sandbox.proq(&args).ok();
    assert_eq!(told(&sandbox), ["two one: [a.txt]"]);
    let names: Vec<String> = ["lane.overlap", "merge.landed"]
        .iter()
        .map(|name| sandbox.events(name)[0]["n"].to_string())
        .collect();
    assert!(names[0].len() <= names[1].len() && names[0] < names[1], "{names:?}");
}

#[test]
fn a_run_has_its_result_though_nothing_can_be_told() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > a.txt");
    std::fs::create_dir_all(sandbox.repo.join(".git/proq/cache/overlaps")).unwrap();
    sandbox.lane_with("two", "echo two > a.txt");
    sandbox.until("lane.overlap", "two", 1);
    assert_eq!(sandbox.row("two")["state"], "done");
    look(&sandbox, &[]);
}
