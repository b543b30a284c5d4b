//! Owns the tests of many processes on one repository at once: nothing lost, nothing left over, nobody in the way.

use std::process::{Child, Stdio};
use std::sync::mpsc::{self, TryRecvError};

use super::support::Sandbox;

/// How many processes are at work in one round, and how many rounds there are.
const PROCESSES: usize = 32;
const ROUNDS: usize = 8;

fn start(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for all and returns what failed, with its command's place in the round.
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

#[test]
fn many_processes_lose_no_record_and_leave_nothing_over() {
    let sandbox = Sandbox::new();
    let mut standing: Vec<String> = Vec::new();
    for round in 0..ROUNDS {
        let mut children = Vec::new();
        let leaving = std::mem::take(&mut standing);
        for n in 0..PROCESSES {
            match (n % 4, leaving.get(n / 4)) {
                (0 | 1, Some(name)) if n % 4 == 1 => children.push(start(&sandbox, &["discard", name])),
                (0, _) => {
                    let name = format!("r{round}-{n}");
                    children.push(start(&sandbox, &["spawn", "--empty", "-n", &name]));
                    standing.push(name);
                }
                // What the others do half-way must not look wrong to it.
                (2, _) if n % 8 == 2 => children.push(start(&sandbox, &["doctor"])),
                (2, _) => children.push(start(&sandbox, &["list", "--json"])),
                _ => children.push(start(&sandbox, &["cleanup"])),
            }
        }
        assert_eq!(failures(children), [""; 0], "round {round}");
        let all = sandbox.proq(&["list", "--json"]).json();
        let mut names: Vec<&str> =
            all["lanes"].as_array().unwrap().iter().map(|l| l["name"].as_str().unwrap()).collect();
        let mut wanted: Vec<&str> = standing.iter().map(String::as_str).collect();
        names.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(names, wanted, "round {round}");
    }
    nothing_but(&sandbox, &standing);
    assert_eq!(sandbox.git(&["fsck", "--no-dangling"]), "");
    sandbox.assert_healthy();
}

/// Folders, registrations, branches and records are those of these lanes and no others.
fn nothing_but(sandbox: &Sandbox, lanes: &[String]) {
    let mut found = sandbox.traces();
    found.retain(|t| !t.starts_with("refs/proq/"));
    found.sort();
    let mut wanted = Vec::new();
    for name in lanes {
        wanted.push(format!("worktree [ROOT]/repo/.proq-worktrees/{name}"));
        wanted.push(format!("refs/heads/proq/{name}"));
        wanted.extend(["folder", "record", "registration"].map(|what| format!("{what} {name}")));
    }
    wanted.sort();
    assert_eq!(found, wanted);
}

#[test]
fn names_made_from_one_prompt_at_once_are_all_different() {
    let sandbox = Sandbox::new();
    let children = (0..12).map(|_| start(&sandbox, &["spawn", "-q", "--", "true"])).collect();
    assert_eq!(failures(children), [""; 0]);
    let all = sandbox.proq(&["list", "--json"]).json();
    let names: std::collections::BTreeSet<&str> =
        all["lanes"].as_array().unwrap().iter().map(|l| l["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 12, "{names:?}");
}

#[test]
fn events_of_many_processes_are_numbered_without_a_gap() {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (0..10).map(|n| format!("x{n}")).collect();
    let children =
        names.iter().map(|name| start(&sandbox, &["spawn", "-n", name, "--wait", "--", "true"])).collect();
    assert_eq!(failures(children), [""; 0]);
    let all = sandbox.proq(&["events", "--json"]).json();
    let numbers: Vec<u64> =
        all["events"].as_array().unwrap().iter().map(|e| e["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=30).collect::<Vec<u64>>());
}

/// Agents that commit while other lanes are being made, whose files are copied from wherever they are.
#[test]
fn lanes_that_are_made_while_agents_commit_are_whole() {
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
        let lane = sandbox.lane(name);
        assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "", "{name}");
        assert_eq!(sandbox.git_in(&lane, &["ls-files"]), "a.txt\nf1\nf2\nf3\nown.txt", "{name}");
        assert_eq!(sandbox.git(&["rev-list", "--count", &format!("main..proq/{name}")]), "6", "{name}");
    }
    nothing_but(&sandbox, &names);
    sandbox.assert_healthy();
}

/// As beside `git gc`, which removes folders of objects whenever they are empty.
#[test]
fn lanes_land_while_empty_folders_of_objects_are_removed() {
    let sandbox = Sandbox::new();
    let objects = sandbox.repo.join(".git/objects");
    let (test, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // Also where it fails, or the scope would never be left.
        let test = test;
        scope.spawn(move || {
            while ended.try_recv() == Err(TryRecvError::Empty) {
                for n in 0..256 {
                    drop(std::fs::remove_dir(objects.join(format!("{n:02x}"))));
                }
            }
        });
        let mut refused = Vec::new();
        for n in 0..10 {
            let name = format!("x{n}");
            let spawned = sandbox.proq(&["spawn", "--empty", "-n", &name]);
            // Git's own commands lose that race now and then; this is about the landings.
            let work = format!(
                "for t in 1 2 3 4 5 6 7 8 9; do echo {n} > f{n} && git add f{n} && git commit -qm {n} && exit; done; exit 1"
            );
            let mut commit = sandbox.command("sh", &sandbox.lane(&name));
            commit.args(["-c", &work]);
            let _ = sandbox.output(commit).ok();
            let landed = sandbox.proq(&["merge", &name]);
            refused.extend([spawned, landed].into_iter().filter(|out| out.code != 0).map(|out| out.shown()));
        }
        drop(test);
        assert_eq!(refused, [""; 0]);
    });
    assert_eq!(sandbox.git(&["fsck", "--no-dangling"]), "");
}
