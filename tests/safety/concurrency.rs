//! Tests of many concurrent processes on one repository: no lost records, no leftovers, no blocked commands.

use std::process::{Child, Stdio};
use std::sync::mpsc::{self, TryRecvError};

use proq_test_kit::Sandbox;

/// Number of concurrent processes in one round, and number of rounds.
const PROCESSES: usize = 32;
const ROUNDS: usize = 8;

fn start(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for all processes and returns the failures, each with its process's index in the round.
fn failures(children: Vec<Child>) -> Vec<String> {
    let mut out = Vec::new();
    for (n, child) in children.into_iter().enumerate() {
        let done = child.wait_with_output().unwrap();
        if !done.status.success() {
            out.push(format!("{n}: {}: {}", done.status, String::from_utf8_lossy(&done.stderr)));
        }
    }
    out
}

/// Promise: concurrency/no-lost-record
#[test]
fn concurrent_processes_lose_no_record() {
    let sandbox = Sandbox::new();
    let mut live_lanes: Vec<String> = Vec::new();
    for round in 0..ROUNDS {
        let mut children = Vec::new();
        let lanes_to_discard = std::mem::take(&mut live_lanes);
        for n in 0..PROCESSES {
            match (n % 4, lanes_to_discard.get(n / 4)) {
                (0 | 1, Some(name)) if n % 4 == 1 => children.push(start(&sandbox, &["discard", name])),
                (0, _) => {
                    let name = format!("r{round}-{n}");
                    children.push(start(&sandbox, &["spawn", "--empty", "-n", &name]));
                    live_lanes.push(name);
                }
                // Unfinished work of other processes must not be reported as damage.
                (2, _) if n % 8 == 2 => children.push(start(&sandbox, &["doctor"])),
                (2, _) => children.push(start(&sandbox, &["list", "--json"])),
                _ => children.push(start(&sandbox, &["cleanup"])),
            }
        }
        assert_eq!(failures(children), [""; 0], "round {round}");
        let all = sandbox.proq(&["list", "--json"]).json();
        let mut names: Vec<&str> =
            all["lanes"].as_array().unwrap().iter().map(|l| l["name"].as_str().unwrap()).collect();
        let mut wanted: Vec<&str> = live_lanes.iter().map(String::as_str).collect();
        names.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(names, wanted, "round {round}");
    }
    assert_only_lanes(&sandbox, &live_lanes);
    assert_eq!(sandbox.git(&["fsck", "--no-dangling"]), "");
    sandbox.assert_healthy();
}

/// Asserts that folders, worktree registrations, branches and records exist for these lanes and no others.
fn assert_only_lanes(sandbox: &Sandbox, lanes: &[String]) {
    let mut found = sandbox.lane_leftovers();
    found.retain(|t| !t.starts_with("refs/proq/"));
    found.sort();
    let mut wanted = Vec::new();
    for name in lanes {
        wanted.push(format!("worktree [ROOT]/repo/.proq-worktrees/{name}"));
        wanted.push(format!("refs/heads/proq/{name}"));
        wanted.extend(["folder", "record", "registration"].map(|kind| format!("{kind} {name}")));
    }
    wanted.sort();
    assert_eq!(found, wanted);
}

/// Promise: concurrency/unique-names
#[test]
fn concurrent_spawns_of_one_prompt_get_unique_names() {
    let sandbox = Sandbox::new();
    let children = (0..12).map(|_| start(&sandbox, &["spawn", "-q", "--", "true"])).collect();
    assert_eq!(failures(children), [""; 0]);
    let all = sandbox.proq(&["list", "--json"]).json();
    let names: std::collections::BTreeSet<&str> =
        all["lanes"].as_array().unwrap().iter().map(|l| l["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 12, "{names:?}");
}

/// Promise: concurrency/no-lost-record
#[test]
fn events_of_concurrent_processes_have_no_gap() {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (0..10).map(|n| format!("x{n}")).collect();
    let children =
        names.iter().map(|name| start(&sandbox, &["spawn", "-n", name, "--wait", "--", "true"])).collect();
    assert_eq!(failures(children), [""; 0]);
    let all = sandbox.proq(&["events", "--json"]).json();
    let numbers: Vec<u64> =
        all["events"].as_array().unwrap().iter().map(|e| e["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=40).collect::<Vec<u64>>());
}

/// Agents commit while other lanes are created, whose files are copied from existing worktrees.
/// Promise: new-lane/concurrent-commits
#[test]
fn lanes_created_during_commits_are_complete() {
    const LANES: usize = 24;
    let sandbox = Sandbox::new();
    sandbox.sh("for n in 1 2 3; do echo $n > f$n; done");
    sandbox.commit_all("more");
    let names: Vec<String> = (0..LANES).map(|n| format!("p{n}")).collect();
    let script = "for k in 1 2 3 4 5 6; do echo $k > own.txt; git add -A; git commit -qm $k; done";
    let children = names
        .iter()
        .map(|name| start(&sandbox, &["spawn", "-q", "-n", name, "--wait", "--", "sh", "-ec", script]));
    assert_eq!(failures(children.collect()), [""; 0]);
    for name in &names {
        let lane = sandbox.lane_path(name);
        assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "", "{name}");
        assert_eq!(sandbox.git_in(&lane, &["ls-files"]), "a.txt\nf1\nf2\nf3\nown.txt", "{name}");
        assert_eq!(sandbox.git(&["rev-list", "--count", &format!("main..proq/{name}")]), "6", "{name}");
    }
    assert_only_lanes(&sandbox, &names);
    sandbox.assert_healthy();
}

/// Simulates a concurrent `git gc`, which removes empty object folders at any moment.
/// Promise: operations/object-folders
#[test]
fn landings_survive_removal_of_object_folders() {
    let sandbox = Sandbox::new();
    let objects = sandbox.repo.join(".git/objects");
    let (test, stop_receiver) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // The thread owns the sender, so that it is dropped on a failure too and the scope can end.
        let test = test;
        scope.spawn(move || {
            while stop_receiver.try_recv() == Err(TryRecvError::Empty) {
                for n in 0..256 {
                    drop(std::fs::remove_dir(objects.join(format!("{n:02x}"))));
                }
            }
        });
        let mut refused = Vec::new();
        for n in 0..10 {
            let name = format!("x{n}");
            let spawned = sandbox.proq(&["spawn", "--empty", "-n", &name]);
            // Git's own commands lose this race now and then, so they are repeated; the landings are not.
            let work = format!(
                "for t in 1 2 3 4 5 6 7 8 9; do echo {n} > f{n} && git add f{n} && git commit -qm {n} && exit; done; exit 1"
            );
            let mut commit = sandbox.command("sh", &sandbox.lane_path(&name));
            commit.args(["-c", &work]);
            let _ = sandbox.output(commit).ok();
            let landed = sandbox.proq(&["merge", &name]);
            refused
                .extend([spawned, landed].into_iter().filter(|out| out.code != 0).map(|out| out.to_text()));
        }
        drop(test);
        assert_eq!(refused, [""; 0]);
    });
    assert_eq!(sandbox.git(&["fsck", "--no-dangling"]), "");
}
