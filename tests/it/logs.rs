//! Owns the tests of `git proq logs` and `git proq wait`.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::process::Stdio;

use super::support::{ON_TERMINAL, Sandbox};

#[test]
fn what_an_agent_wrote_is_printed_as_it_is() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("x", "echo out; echo err >&2; printf '\\033[1mbold\\033[0m no newline'");
    assert_eq!(sandbox.proq(&["logs", "x"]).ok(), "out\nerr\n\u{1b}[1mbold\u{1b}[0m no newline");
    assert_eq!(sandbox.proq(&["logs", "--run", "1", "proq/x"]).code, 0);
    let out = sandbox.proq(&["logs", "--json", "x"]).json();
    assert_eq!((&out["lane"], &out["run"]), (&"x".into(), &1.into()));
    assert_eq!(out["text"], "out\nerr\n\u{1b}[1mbold\u{1b}[0m no newline");
}

#[test]
fn a_terminal_gets_the_colours_of_a_plain_log_and_nothing_else_to_obey() {
    let sandbox = Sandbox::new();
    let writes = r"printf '\033[31mred\033[0m\033]52;c;ZXZpbA==\007\033]2;title\007\033[2Jend\n' >&2";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-c", writes]);
    let on_terminal = |args: &[&str]| {
        let mut command = sandbox.command("python3", &sandbox.repo);
        command.args(["-c", ON_TERMINAL, "git-proq", "logs", "x"]).args(args);
        sandbox.output(command).ok()
    };
    let raw = "\u{1b}[31mred\u{1b}[0m\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]2;title\u{7}\u{1b}[2Jend";
    let safe = "\u{1b}[31mred\u{1b}[0m\\u{1b}]52;c;ZXZpbA==\\u{7}\\u{1b}]2;title\\u{7}\\u{1b}[2Jend";
    for args in [&[][..], &["-f"]] {
        let shown = on_terminal(args);
        assert!(shown.starts_with(safe) && !shown.contains("\u{1b}]"), "{args:?}: {shown:?}");
    }
    assert_eq!(on_terminal(&["--raw"]).trim_end(), raw);
    assert_eq!(sandbox.proq(&["logs", "x"]).ok(), format!("{raw}\n"), "a pipe has every byte");
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_of_a_gigabyte_is_printed_with_little_memory() {
    let sandbox = super::runs::with_claude("begin; echo new > n; well");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    let log = sandbox.repo.join(".git/proq/lanes/x/runs/1.log");
    // A hole takes no room on the disk. It is one line, far too long for an event.
    let mut file = File::options().write(true).open(log).unwrap();
    file.set_len(1 << 30).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    let line =
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"the last word"}]}}"#;
    writeln!(file, "\n{line}").unwrap();
    for how in ["", "--raw"] {
        let mut command = sandbox.command("sh", &sandbox.repo);
        // Less room than the log is long.
        let script = format!("ulimit -v 786432; git-proq logs x {how} | tail -c 200");
        command.args(["-ec", &script]);
        let out = sandbox.output(command);
        assert!(out.stdout.contains("the last word"), "{how}: {}", out.shown());
    }
}

#[test]
fn a_run_that_was_not_there_is_refused() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["logs", "x"]).shown(), @r"
    --- stderr
    error: lane 'x' has no run yet
    hint: see its runs: git proq show x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["logs", "--run", "2", "x"]).shown(), @r"
    --- stderr
    error: lane 'x' has no run 2
    hint: see its runs: git proq show x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["logs", "y"]).shown(), @r"
    --- stderr
    error: there is no lane 'y'
    hint: see all: git proq list
    --- code 1
    ");
}

#[test]
fn a_removed_lanes_log_is_still_there() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("x", "echo said");
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_eq!(sandbox.proq(&["logs", "x@1"]).ok(), "said\n");
    assert_eq!(sandbox.proq(&["logs", "-f", "x@1"]).ok(), "said\n");
}

#[test]
fn following_goes_on_while_the_agent_writes_and_ends_with_it() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.start_lane("x", "echo first; read line < \"$ROOT/go\"; echo second; echo 1 > one");
    let mut follow = sandbox.proq_command(&sandbox.repo, &["logs", "-f", "x"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    sandbox.tell("go");
    assert_eq!(lines.next().unwrap().unwrap(), "second");
    assert!(lines.next().is_none());
    let out = follow.wait_with_output().unwrap();
    assert_eq!((out.status.code(), &*out.stderr), (Some(0), &b"x: done\n"[..]));
    assert_eq!(sandbox.proq(&["logs", "-f", "x"]).ok(), "first\nsecond\n");
}

#[test]
fn waiting_is_over_when_every_agent_has_ended() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.lane_with("past", "echo 1 > one");
    sandbox.start_lane("bad", "read line < \"$ROOT/go\"; exit 3");
    sandbox.start_lane("good", "echo 1 > one");
    let mut wait = sandbox.proq_command(&sandbox.repo, &["wait", "bad", "good", "past"]);
    let wait = wait.stdout(Stdio::piped()).spawn().unwrap();
    sandbox.tell("go");
    let out = wait.wait_with_output().unwrap();
    insta::assert_snapshot!(String::from_utf8(out.stdout).unwrap(), @r"
    bad: failed (exit code 3)
    good: done
    past: done
    ");
    assert_eq!(out.status.code(), Some(4));
}

#[test]
fn without_a_name_only_those_at_work_are_waited_for() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["wait"]).shown(), @r"
    --- stderr
    no agent is running
    --- code 0
    ");
    sandbox.pipe("go");
    sandbox.start_lane("x", "read line < \"$ROOT/go\"; echo 1 > one");
    let mut wait = sandbox.proq_command(&sandbox.repo, &["wait", "--json"]);
    let wait = wait.stdout(Stdio::piped()).spawn().unwrap();
    // The agent may only go on when it has been seen at work.
    sandbox.tell("go");
    let out = wait.wait_with_output().unwrap();
    let out: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(out["schema"], 1);
    assert_eq!(sandbox.proq(&["wait", "x"]).ok(), "x: done\n");
    insta::assert_snapshot!(sandbox.proq(&["wait", "x", "y"]).shown(), @r"
    --- stderr
    error: there is no lane 'y'
    hint: see all: git proq list
    --- code 1
    ");
}
