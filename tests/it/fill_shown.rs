//! Owns the tests of what is shown while the files of a new lane are made, and of who does not wait for them any more.

use std::io::Read;
use std::process::{Child, Stdio};

use super::support::patience::{Beside, wait_until};
use super::support::{ON_TERMINAL, Sandbox, State};

/// What a terminal gets of a lane of many files whose making takes two seconds.
fn shown(args: &[&str]) -> String {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir many; for n in $(seq 1200); do echo $n > many/$n; done");
    sandbox.commit_all("many");
    let mut command = sandbox.command("python3", &sandbox.repo);
    command.args(["-c", ON_TERMINAL, "git-proq"]).args(args).env("TERM", "xterm");
    command.env("PROQ_TEST_STAND_AT", "fill.part").stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = sandbox.holder("x", "run");
    let standing = sandbox.standing(&pid);
    until_old(&sandbox, &pid);
    drop(standing);
    said(&sandbox, child)
}

/// Waits until a process is there for two seconds.
fn until_old(sandbox: &Sandbox, pid: &str) {
    wait_until("it has taken long", || {
        let mut command = sandbox.command("ps", &sandbox.root());
        command.args(["-o", "etimes=", "-p", pid]);
        sandbox.output(command).stdout.trim().parse::<u32>().is_ok_and(|seconds| seconds > 2)
    });
}

/// All that a command on a terminal said that has made a lane as it is to be.
fn said(sandbox: &Sandbox, mut child: Child) -> String {
    let mut out = Vec::new();
    let _ = child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--porcelain"]), "");
    String::from_utf8(out).unwrap()
}

/// A repository with files that only git can make, the second and third of which wait for a word in the pipe `down`.
fn filtered() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("for n in 1 2 3 4 5 6; do echo $n > $n.bin; done; echo '*.bin filter=slow' > .gitattributes");
    sandbox.commit_all("files with a filter");
    sandbox.git(&["config", "filter.slow.clean", "cat"]);
    let wait = "case %f in 2.bin | 3.bin) echo $$ > $ROOT/up; read go < $ROOT/down ;; esac; cat";
    sandbox.git(&["config", "filter.slow.smudge", wait]);
    sandbox.pipe("up");
    sandbox.pipe("down");
    sandbox
}

/// What a terminal gets of a lane whose files git makes, which takes two seconds.
fn shown_of_git(args: &[&str]) -> String {
    let sandbox = filtered();
    let mut command = sandbox.command("python3", &sandbox.repo);
    command.args(["-c", ON_TERMINAL, "git-proq"]).args(args).env("TERM", "xterm").stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    // Git counts the second file when it comes to the third, and the count has the time to be shown.
    for _ in 0..2 {
        until_old(&sandbox, sandbox.hear("up").trim());
        sandbox.tell("down");
    }
    said(&sandbox, child)
}

#[test]
fn files_that_git_makes_are_counted_too() {
    let out = shown_of_git(&["spawn", "--empty", "-n", "x"]);
    let (before, rest) = out.split_once(" of 7 files").expect(&out);
    assert!(before.contains("x: ") && !out.contains("Updating"), "{out:?}");
    assert!(rest.contains("\r\u{1b}[2K") && rest.contains("lane 'x' on branch proq/x"), "{out:?}");
    for args in [&["-q", "spawn", "--empty", "-n", "x"][..], &["--json", "spawn", "--empty", "-n", "x"]] {
        let out = shown_of_git(args);
        assert!(!out.contains(" files") && !out.contains('\u{1b}') && !out.contains("Updating"), "{out:?}");
    }
}

#[test]
fn an_interrupt_ends_a_git_that_makes_files_and_takes_the_lane_back() {
    let sandbox = filtered();
    let before = State::of(&sandbox);
    let command = &mut sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "x"]);
    let mut spawn = Beside(command.stderr(Stdio::piped()).spawn().unwrap());
    let filter = sandbox.hear("up").trim().to_owned();
    let _ = sandbox.sh(&format!("kill -INT {}", spawn.0.id()));
    assert_eq!(spawn.code(), Some(130));
    assert!(!sandbox.lives(&filter));
    let mut said = String::new();
    let _ = spawn.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("interrupted") && !said.contains("read-tree"), "{said}");
    State::of(&sandbox).is(&before, "taken back");
}

#[test]
fn what_a_filter_says_that_fails_is_told_without_how_far_it_was() {
    let sandbox = filtered();
    sandbox.git(&["config", "filter.slow.required", "true"]);
    let wait = sandbox.git(&["config", "filter.slow.smudge"]);
    let fail = format!("[ %f = 5.bin ] && echo no such key >&2 && exit 1; {wait}");
    sandbox.git(&["config", "filter.slow.smudge", &fail]);
    let before = State::of(&sandbox);
    let command = &mut sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "x"]);
    let mut spawn = Beside(command.stderr(Stdio::piped()).spawn().unwrap());
    for _ in 0..2 {
        until_old(&sandbox, sandbox.hear("up").trim());
        sandbox.tell("down");
    }
    assert_eq!(spawn.code(), Some(1));
    let mut said = String::new();
    let _ = spawn.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(
        said.contains("failed: no such key; nothing was changed\n") && !said.contains("Updating files"),
        "{said}"
    );
    State::of(&sandbox).is(&before, "taken back");
}

#[test]
fn who_waits_for_the_files_of_a_lane_sees_how_far_it_is() {
    let out = shown(&["spawn", "--empty", "-n", "x"]);
    let (before, rest) = out.rsplit_once(" of 1,201 files").expect(&out);
    assert!(before.contains("x: "), "{out:?}");
    // The line goes before anything else is said.
    let (left, after) = rest.split_once("\r\u{1b}[2K").expect(&out);
    assert!(!left.contains('\n') && after.contains("lane 'x' on branch proq/x"), "{out:?}");
}

#[test]
fn who_wants_to_hear_nothing_sees_nothing_of_it() {
    let out = shown(&["-q", "spawn", "--empty", "-n", "x"]);
    assert!(!out.contains(" files") && !out.contains('\u{1b}'), "{out:?}");
}
