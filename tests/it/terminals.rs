//! Owns the tests of sixteen terminals that land at once, wherever the base is checked out: nothing lost, nothing twice.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;

use super::support::{Image, Sandbox, names};

const TERMINALS: usize = 16;

/// Where the base is while they land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Elsewhere,
    Nowhere,
    Here,
    /// Here, with edits that no lane touches.
    Beside,
    /// Here, with edits of a file that the lane [`CLASHING`] changes.
    Over,
}

/// The lane whose change the user's edits are in the way of.
const CLASHING: &str = "lane-07";

/// What the user has done in the checkout of the base: staged, unstaged, both, removed, untracked, ignored.
const EDITS: &str = "echo s > staged.txt; git add staged.txt; echo u > own.txt; git add own.txt; echo v > own.txt
                     sed -i s/^9$/nine/ long.txt; git rm -q --cached gone.txt; echo n > new.txt; echo d > debug.log";

fn lanes() -> Vec<String> {
    (0..TERMINALS).map(|n| format!("lane-{n:02}")).collect()
}

/// Sixteen lanes, each of which adds a file, changes a line of its own in a shared one and removes one; the base as asked.
/// Returns where the base is checked out.
fn scene(base: Base) -> (Sandbox, Option<PathBuf>) {
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
        sandbox.lane_of(lane, &script);
    }
    let at = match base {
        Base::Here | Base::Beside | Base::Over => Some(sandbox.repo.clone()),
        Base::Nowhere | Base::Elsewhere => {
            sandbox.sh("git switch -q -c topic; echo mine > own.txt");
            (base == Base::Elsewhere).then(|| {
                sandbox.sh("git worktree add -q ../linked main");
                sandbox.root().join("linked")
            })
        }
    };
    if matches!(base, Base::Beside | Base::Over) {
        sandbox.sh(EDITS);
    }
    if base == Base::Over {
        sandbox.sh(&format!("echo mine > both/{CLASHING}.txt"));
    }
    (sandbox, at)
}

/// Starts all before the first one is waited for, and returns how each ended and what it said.
fn at_once(sandbox: &Sandbox, commands: &[Vec<&str>]) -> Vec<(i32, String)> {
    let start = |args: &Vec<&str>| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = commands.iter().map(start).collect();
    let end = |child: std::process::Child| {
        let out = child.wait_with_output().unwrap();
        let text = [out.stdout, out.stderr].concat();
        (out.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    children.into_iter().map(end).collect()
}

/// The lanes that landed, one landing commit each, on a first-parent line that leads back to where the base was.
#[track_caller]
fn landed(sandbox: &Sandbox, from: &str) -> BTreeSet<String> {
    let log = sandbox.git(&["log", "--first-parent", "--format=%H %P|%s", &format!("{from}..main")]);
    let mut found = BTreeSet::new();
    let mut next = sandbox.git(&["rev-parse", "main"]);
    for line in log.lines() {
        let (ids, subject) = line.split_once('|').unwrap();
        let ids: Vec<&str> = ids.split(' ').collect();
        assert_eq!((ids[0], ids.len()), (next.as_str(), 3), "not one merge after the other: {log}");
        ids[1].clone_into(&mut next);
        let lane = subject.strip_prefix("Merge lane ").unwrap().to_owned();
        let work = sandbox.git(&["log", "-1", "--format=%s", ids[2]]);
        assert_eq!(work, format!("work of {lane}"));
        assert!(found.insert(lane), "landed twice: {log}");
    }
    assert_eq!(next, from, "the line does not lead back: {log}");
    found
}

/// What is on the base is what these lanes made of it, each change once.
#[track_caller]
fn holds_exactly(sandbox: &Sandbox, landed: &BTreeSet<String>) {
    let files = sandbox.git(&["ls-tree", "-r", "--name-only", "main"]);
    let shared = sandbox.git(&["show", "main:shared.txt"]);
    for (n, lane) in lanes().iter().enumerate() {
        let has = landed.contains(lane);
        let has_file = |dir: &str| files.lines().any(|file| file == format!("{dir}/{lane}.txt"));
        assert_eq!((has_file("new"), has_file("old")), (has, !has), "{lane}");
        let line = shared.lines().nth(4 + n * 12).unwrap();
        let number = (5 + n * 12).to_string();
        assert_eq!(line, if has { format!("{number} {lane}") } else { number }, "{lane}");
    }
}

/// Files and index of the base's checkout are those of its HEAD, and beyond that as the user left them.
#[track_caller]
fn has_followed(sandbox: &Sandbox, at: &std::path::Path, before: &Image) {
    let after = Image::of(sandbox, at);
    assert_eq!(after.status, before.status);
    for (path, file) in &before.files {
        let of_a_lane = ["new/", "old/", "both/"].iter().any(|dir| path.starts_with(dir));
        if !of_a_lane && path != "old" && path != "shared.txt" {
            assert_eq!(after.files.get(path), Some(file), "{path}");
        }
    }
}

/// No lock of git's, no ticket, no ref of what was under way, no process: and the doctor finds nothing.
#[track_caller]
fn nothing_left(sandbox: &Sandbox) {
    let git = sandbox.repo.join(".git");
    assert_eq!(names(&git.join("proq/locks/tickets")), [""; 0]);
    assert_eq!(names(&git.join("proq/work")), [""; 0]);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/pending", "refs/proq/conflict"]), "");
    assert_eq!(sandbox.sh("find .git -name '*.lock' -not -path '.git/proq/locks/*'"), "");
    assert_eq!(sandbox.proq(&["queue", "--json"]).json()["queue"], serde_json::json!([]));
    assert_eq!(sandbox.git(&["fsck", "--connectivity-only", "--no-dangling", "--no-progress"]), "");
    sandbox.assert_healthy();
}

#[track_caller]
fn check(base: Base, all: bool) {
    let (sandbox, at) = scene(base);
    let from = sandbox.git(&["rev-parse", "main"]);
    let before = at.as_ref().map(|at| Image::of(&sandbox, at));
    let here = Image::of(&sandbox, &sandbox.repo);
    let names = lanes();
    let commands: Vec<Vec<&str>> =
        names.iter().map(|lane| if all { vec!["merge", "--all"] } else { vec!["merge", lane] }).collect();
    let ends = at_once(&sandbox, &commands);
    let landed = landed(&sandbox, &from);
    // What would overwrite an edit is put aside, also where all of them are one landing.
    let lands = |lane: &&String| base != Base::Over || *lane != CLASHING;
    let wanted: BTreeSet<String> = names.iter().filter(lands).cloned().collect();
    assert_eq!(landed, wanted, "{ends:#?}");
    for (lane, (code, text)) in names.iter().zip(&ends) {
        let refused = base == Base::Over && (all || lane == CLASHING);
        assert_eq!(*code, i32::from(refused), "{lane}: {text}");
        assert_eq!(text.contains(&format!("in the way: both/{CLASHING}.txt")), refused, "{lane}: {text}");
        assert_eq!(sandbox.lane(lane).exists(), !landed.contains(lane), "{lane}: {text}");
    }
    holds_exactly(&sandbox, &landed);
    match (&at, &before) {
        (Some(at), Some(before)) => has_followed(&sandbox, at, before),
        _ => assert_eq!(Image::of(&sandbox, &sandbox.repo), here),
    }
    if base == Base::Over {
        assert_eq!(sandbox.read(&format!("both/{CLASHING}.txt")), "mine\n");
    }
    nothing_left(&sandbox);
}

#[test]
fn each_its_lane_onto_a_base_in_another_worktree() {
    check(Base::Elsewhere, false);
}

#[test]
fn each_its_lane_onto_a_base_in_no_worktree() {
    check(Base::Nowhere, false);
}

#[test]
fn each_its_lane_onto_the_base_that_is_here() {
    check(Base::Here, false);
}

#[test]
fn each_its_lane_beside_the_users_edits() {
    check(Base::Beside, false);
}

#[test]
fn each_its_lane_and_one_over_the_users_edits() {
    check(Base::Over, false);
}

#[test]
fn all_of_them_onto_a_base_in_another_worktree() {
    check(Base::Elsewhere, true);
}

#[test]
fn all_of_them_onto_a_base_in_no_worktree() {
    check(Base::Nowhere, true);
}

#[test]
fn all_of_them_onto_the_base_that_is_here() {
    check(Base::Here, true);
}

#[test]
fn all_of_them_beside_the_users_edits() {
    check(Base::Beside, true);
}

#[test]
fn all_of_them_and_one_over_the_users_edits() {
    check(Base::Over, true);
}
