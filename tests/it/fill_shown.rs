//! Owns the tests of what is shown while the files of a new lane are made.

use std::io::Read;
use std::process::Stdio;

use super::support::patience::wait_until;
use super::support::{ON_TERMINAL, Sandbox};

/// What a terminal gets of a lane of many files whose making takes two seconds.
fn shown(args: &[&str]) -> String {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir many; for n in $(seq 1200); do echo $n > many/$n; done");
    sandbox.commit_all("many");
    let mut command = sandbox.command("python3", &sandbox.repo);
    command.args(["-c", ON_TERMINAL, "git-proq"]).args(args).env("TERM", "xterm");
    command.env("PROQ_TEST_STAND_AT", "fill.part").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pid = sandbox.holder("x", "run");
    let standing = sandbox.standing(&pid);
    wait_until("it has taken long", || {
        let mut command = sandbox.command("ps", &sandbox.root());
        command.args(["-o", "etimes=", "-p", &pid]);
        sandbox.output(command).stdout.trim().parse::<u32>().is_ok_and(|seconds| seconds > 2)
    });
    drop(standing);
    let mut out = Vec::new();
    let _ = child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--porcelain"]), "");
    String::from_utf8(out).unwrap()
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
