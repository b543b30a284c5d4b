//! Tests of the commands that follow what happens: they sleep while nothing changes, and end when a process
//! dies or on Ctrl-C.

use std::process::{Command, Stdio};

use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::runs::{kill_process, kill_supervisor};
use proq_test_kit::waiting::{KilledOnDrop, OutputLines, assert_no_wakeups, voluntary_switches, wait_until};
use proq_test_kit::{PTY_SCRIPT, Sandbox};

/// Becomes the program that its arguments name, with the default action of INT.
const DEFAULT_INT_SCRIPT: &str = "import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])";

/// Id of the only batch.
const BATCH: &str = "20260102-030405";

/// Plan with one task.
const PLAN: &str =
    "format = 1\nsummary = \"One\"\nagent = \"worker\"\n[[task]]\nid = \"top\"\ntitle = \"The top\"\n";

/// Running command that follows something.
struct Follower {
    process: KilledOnDrop,
    lines: OutputLines,
}

impl Follower {
    /// Starts a command and waits until it watches files.
    fn start(sandbox: &Sandbox, args: &[&str]) -> Follower {
        Follower::start_command(sandbox.proq_command(&sandbox.repo, args))
    }

    fn start_command(mut command: Command) -> Follower {
        let mut process =
            KilledOnDrop(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        wait_until_watching(&process.0.id().to_string());
        let lines = OutputLines::read_from(process.0.stdout.take().unwrap());
        Follower { process, lines }
    }

    fn pid(&self) -> String {
        self.process.0.id().to_string()
    }

    /// Waits for the process to end, and returns its exit code and what it wrote to standard error.
    #[track_caller]
    fn end(mut self) -> (Option<i32>, String) {
        let code = self.process.exit_code();
        let stderr = self.process.0.stderr.take().unwrap();
        (code, std::io::read_to_string(stderr).unwrap())
    }
}

/// Waits until a process has an inotify descriptor. Elsewhere than on Linux there is none.
#[track_caller]
fn wait_until_watching(pid: &str) {
    if !cfg!(target_os = "linux") {
        return;
    }
    wait_until(&format!("{pid} watches files"), || {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|path| path.to_string_lossy().contains("inotify"))
    });
}

/// Returns a repository in which lane `x` and the task of a batch are at work and write nothing.
fn sandbox_at_work() -> Sandbox {
    let sandbox = repo_with_plan(PLAN);
    sandbox.pipe("up");
    install_worker(&sandbox, "echo $$ > $ROOT/up; exec sleep 600");
    sandbox.start_lane("x", "echo left > left.txt; echo $$ > \"$ROOT/up\"; exec sleep 600");
    sandbox.read_pipe("up");
    let out = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    sandbox.read_pipe("up");
    sandbox
}

/// Arguments of all followers.
const FOLLOWERS: [&[&str]; 6] = [
    &["events", "-f"],
    &["logs", "-f", "x"],
    &["matrix", "--watch"],
    &["matrix", "--watch", "--committed", "--json"],
    &["wait", "x", "top"],
    &["resume", BATCH],
];

#[test]
#[cfg(target_os = "linux")]
fn idle_followers_never_wake() {
    let sandbox = sandbox_at_work();
    let followers = FOLLOWERS.map(|args| Follower::start(&sandbox, args));
    // One after the other, so that a failure names the command.
    for (follower, args) in followers.iter().zip(FOLLOWERS) {
        eprintln!("{args:?}");
        assert_no_wakeups(&[follower.pid()]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn terminal_view_wakes_once_a_second() {
    let sandbox = sandbox_at_work();
    let mut command = sandbox.command("python3", &sandbox.repo);
    command.args(["-c", PTY_SCRIPT]).arg(proq_test_kit::program()).args(["resume", BATCH]);
    command.env("TERM", "xterm");
    let view = KilledOnDrop(command.stdout(Stdio::null()).spawn().unwrap());
    let children = format!("/proc/{0}/task/{0}/children", view.0.id());
    let child = || std::fs::read_to_string(&children).unwrap().trim().to_owned();
    wait_until("its view", || !child().is_empty());
    let pid = child();
    wait_until_watching(&pid);
    let spans = std::iter::repeat_with(|| {
        let before = voluntary_switches(&pid);
        std::thread::sleep(std::time::Duration::from_secs(2));
        voluntary_switches(&pid) - before
    });
    let woken: Vec<u64> = spans.take(6).take_while(|woken| !(1..=4).contains(woken)).collect();
    assert!(woken.len() < 6, "woken in spans of two seconds: {woken:?}");
}

#[test]
fn changes_end_the_sleep_of_each_follower() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.pipe("on");
    // The folder of the store does not exist yet.
    let events = Follower::start(&sandbox, &["events", "-f"]);
    sandbox.start_lane("x", "read line < \"$ROOT/go\"; echo said; echo 1 > one; read line < \"$ROOT/on\"");
    assert!(events.lines.next().ends_with("operation 1: spawn"));
    assert!(events.lines.next().ends_with("created lane 'x' from main"));
    assert!(events.lines.next().ends_with("lane 'x': command started"));
    let log = Follower::start(&sandbox, &["logs", "-f", "x"]);
    let matrix = Follower::start(&sandbox, &["matrix", "--watch", "--json"]);
    let wait = Follower::start(&sandbox, &["wait", "x"]);
    let forecast = || serde_json::from_str::<serde_json::Value>(&matrix.lines.next()).unwrap();
    assert_eq!(forecast()["lanes"], serde_json::json!([]));
    sandbox.write_pipe("go");
    assert_eq!(log.lines.next(), "said");
    assert_eq!(forecast()["lanes"][0]["uncommitted"], 1);
    sandbox.write_pipe("on");
    assert!(events.lines.next().ends_with("lane 'x': done"));
    assert_eq!(wait.lines.next(), "x: done");
    assert_eq!(wait.end(), (Some(0), String::new()));
    let (code, stderr) = log.end();
    assert!(code == Some(0) && stderr.contains("x: done"), "{code:?} {stderr}");
}

/// A killed process releases its lock, which changes no file.
#[test]
fn log_ends_after_its_killed_supervisor_and_agent() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    sandbox.start_lane("x", "echo $$ > \"$ROOT/up\"; exec sleep 600");
    let agent = sandbox.read_pipe("up");
    let log = Follower::start(&sandbox, &["logs", "-f", "x"]);
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    kill_process(&sandbox, agent.trim());
    let (code, stderr) = log.end();
    assert!(code == Some(0) && stderr.contains("x: failed (its supervisor crashed)"), "{stderr}");
}

#[test]
fn batch_view_ends_after_its_killed_scheduler() {
    let sandbox = sandbox_at_work();
    let view = Follower::start(&sandbox, &["resume", BATCH]);
    sandbox.sh(&format!("kill -9 $(sed -n 's/^pid = //p' .git/proq/batches/{BATCH}/scheduler.toml)"));
    assert_eq!(view.lines.next(), format!("batch {BATCH} is not running: its process has ended"));
    assert_eq!(view.end().0, Some(1));
}

#[test]
fn ctrl_c_ends_each_follower() {
    let sandbox = sandbox_at_work();
    for args in FOLLOWERS {
        // Shells start background jobs with INT ignored, and so would this test pass it on.
        let mut command = sandbox.command("python3", &sandbox.repo);
        command.args(["-c", DEFAULT_INT_SCRIPT]).arg(proq_test_kit::program()).args(args);
        let follower = Follower::start_command(command);
        sandbox.sh(&format!("kill -INT {}", follower.pid()));
        let (code, stderr) = follower.end();
        assert!(code.is_none_or(|code| code == 130), "{args:?}: {code:?} {stderr}");
    }
}
