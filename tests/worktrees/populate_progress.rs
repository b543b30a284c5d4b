//! Progress shown while the files of a new lane are written, and commands that stop waiting for them.

use std::io::Read;
use std::process::{Child, Stdio};

use proq_test_kit::waiting::{KilledOnDrop, wait_until};
use proq_test_kit::{PTY_SCRIPT, RepoState, Sandbox};

/// Returns the terminal output of a command that creates a lane of many files in more than two seconds.
fn slow_populate_output(args: &[&str]) -> String {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir many; for n in $(seq 1200); do echo $n > many/$n; done");
    sandbox.commit_all("many");
    let mut command = sandbox.command("python3", &sandbox.repo);
    command.args(["-c", PTY_SCRIPT, "git-proq"]).args(args).env("TERM", "xterm");
    command.env("PROQ_TEST_STAND_AT", "fill.part").stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = sandbox.lock_holder("x", "run");
    let paused = sandbox.wait_until_stopped(&pid);
    wait_until_two_seconds_old(&sandbox, &pid);
    drop(paused);
    read_output(&sandbox, child)
}

/// Waits until a process has existed for more than two seconds.
fn wait_until_two_seconds_old(sandbox: &Sandbox, pid: &str) {
    wait_until("it has taken long", || {
        let mut command = sandbox.command("ps", &sandbox.root());
        command.args(["-o", "etimes=", "-p", pid]);
        sandbox.output(command).stdout.trim().parse::<u32>().is_ok_and(|seconds| seconds > 2)
    });
}

/// Returns the terminal output of a command, which must succeed and leave a clean lane `x`.
fn read_output(sandbox: &Sandbox, mut child: Child) -> String {
    let mut out = Vec::new();
    let _ = child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--porcelain"]), "");
    String::from_utf8(out).unwrap()
}

/// Returns a repository with files that only git can write; the filter of the second and third file waits for
/// the pipe `down`.
fn sandbox_with_slow_filter() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("for n in 1 2 3 4 5 6; do echo $n > $n.bin; done; echo '*.bin filter=slow' > .gitattributes");
    // A file as young as the index is left to git, and would be counted too.
    sandbox.sh("touch -d 2020-01-01 .gitattributes");
    sandbox.commit_all("files with a filter");
    sandbox.git(&["config", "filter.slow.clean", "cat"]);
    let wait = "case %f in 2.bin | 3.bin) echo $$ > $ROOT/up; read go < $ROOT/down ;; esac; cat";
    sandbox.git(&["config", "filter.slow.smudge", wait]);
    sandbox.pipe("up");
    sandbox.pipe("down");
    sandbox
}

/// Returns the terminal output of a command that creates a lane whose files git writes, in more than two
/// seconds.
fn git_checkout_output(args: &[&str]) -> String {
    let sandbox = sandbox_with_slow_filter();
    let mut command = sandbox.command("python3", &sandbox.repo);
    command.args(["-c", PTY_SCRIPT, "git-proq"]).args(args).env("TERM", "xterm").stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    // Git counts the second file when it starts the third, so there is time to show the count.
    for _ in 0..2 {
        wait_until_two_seconds_old(&sandbox, sandbox.read_pipe("up").trim());
        sandbox.write_pipe("down");
    }
    read_output(&sandbox, child)
}

#[test]
fn counts_files_that_git_checks_out() {
    let out = git_checkout_output(&["spawn", "--empty", "-n", "x"]);
    let (before, rest) = out.split_once(" of 6 files").expect(&out);
    assert!(before.contains("x: ") && !out.contains("Updating"), "{out:?}");
    assert!(rest.contains("\r\u{1b}[2K") && rest.contains("lane 'x' on branch proq/x"), "{out:?}");
    for args in [&["-q", "spawn", "--empty", "-n", "x"][..], &["--json", "spawn", "--empty", "-n", "x"]] {
        let out = git_checkout_output(args);
        assert!(!out.contains(" files") && !out.contains('\u{1b}') && !out.contains("Updating"), "{out:?}");
    }
}

/// Promise: new-lane/populate-interrupt
#[test]
fn interrupt_stops_git_and_removes_new_lane() {
    let sandbox = sandbox_with_slow_filter();
    let before = RepoState::capture(&sandbox);
    let command = &mut sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "x"]);
    let mut spawn = KilledOnDrop(command.stderr(Stdio::piped()).spawn().unwrap());
    let filter = sandbox.read_pipe("up").trim().to_owned();
    let _ = sandbox.sh(&format!("kill -INT {}", spawn.0.id()));
    assert_eq!(spawn.exit_code(), Some(130));
    assert!(!sandbox.is_alive(&filter));
    let mut stderr = String::new();
    let _ = spawn.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(stderr.contains("interrupted") && !stderr.contains("read-tree"), "{stderr}");
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
}

/// Promise: new-lane/populate-interrupt
#[test]
fn failed_filter_is_reported_without_progress() {
    let sandbox = sandbox_with_slow_filter();
    sandbox.git(&["config", "filter.slow.required", "true"]);
    let wait = sandbox.git(&["config", "filter.slow.smudge"]);
    let fail = format!("[ %f = 5.bin ] && echo no such key >&2 && exit 1; {wait}");
    sandbox.git(&["config", "filter.slow.smudge", &fail]);
    let before = RepoState::capture(&sandbox);
    let command = &mut sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "x"]);
    let mut spawn = KilledOnDrop(command.stderr(Stdio::piped()).spawn().unwrap());
    for _ in 0..2 {
        wait_until_two_seconds_old(&sandbox, sandbox.read_pipe("up").trim());
        sandbox.write_pipe("down");
    }
    assert_eq!(spawn.exit_code(), Some(1));
    let mut stderr = String::new();
    let _ = spawn.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(
        stderr.contains("failed: no such key; nothing was changed\n") && !stderr.contains("Updating files"),
        "{stderr}"
    );
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
}

#[test]
fn terminal_shows_populate_progress() {
    let out = slow_populate_output(&["spawn", "--empty", "-n", "x"]);
    let (before, rest) = out.rsplit_once(" of 1,201 files").expect(&out);
    assert!(before.contains("x: "), "{out:?}");
    // The progress line is cleared before anything else is printed.
    let (left, after) = rest.split_once("\r\u{1b}[2K").expect(&out);
    assert!(!left.contains('\n') && after.contains("lane 'x' on branch proq/x"), "{out:?}");
}

#[test]
fn quiet_shows_no_progress() {
    let out = slow_populate_output(&["-q", "spawn", "--empty", "-n", "x"]);
    assert!(!out.contains(" files") && !out.contains('\u{1b}'), "{out:?}");
}
