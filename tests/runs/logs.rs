//! `git proq logs` and `git proq wait`.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::process::Stdio;

use proq_test_kit::{PTY_SCRIPT, Sandbox};

#[test]
fn prints_agent_output_unchanged() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo out; echo err >&2; printf '\\033[1mbold\\033[0m no newline'");
    assert_eq!(sandbox.proq(&["logs", "x"]).ok(), "out\nerr\n\u{1b}[1mbold\u{1b}[0m no newline");
    assert_eq!(sandbox.proq(&["logs", "--run", "1", "proq/x"]).code, 0);
    let out = sandbox.proq(&["logs", "--json", "x"]).json();
    assert_eq!((&out["lane"], &out["run"]), (&"x".into(), &1.into()));
    assert_eq!(out["text"], "out\nerr\n\u{1b}[1mbold\u{1b}[0m no newline");
}

#[test]
fn log_is_read_in_parts() {
    let sandbox = proq_test_kit::claude::sandbox_with_claude("begin; echo new > n; well");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    let read = |args: &[&str]| sandbox.proq(&[&["logs", "x", "--json"], args].concat()).json();
    let whole = read(&[]);
    assert_eq!(whole.get("next"), None);
    let (mut offset, mut text, mut events) = (0, String::new(), Vec::new());
    for _ in 0..whole["text"].as_str().unwrap().lines().count() {
        let part = read(&["--after", &offset.to_string(), "--limit", "1"]);
        assert_eq!(part["text"].as_str().unwrap().lines().count(), 1);
        text.push_str(part["text"].as_str().unwrap());
        events.extend(part["events"].as_array().cloned().unwrap_or_default());
        offset = part["next"].as_u64().unwrap();
    }
    assert_eq!((&text.into(), &events.into()), (&whole["text"], &whole["events"]));
    let end = read(&["--after", &offset.to_string()]);
    assert_eq!((&end["text"], &end["next"]), (&"".into(), &offset.into()));
    assert_eq!(end.get("events"), None);
    let out = sandbox.proq(&["logs", "x", "--limit", "1"]).fails(2);
    assert!(out.contains("--after and --limit are for programs"), "{out}");
}

#[test]
fn events_at_end_of_complete_log_are_given_once() {
    let sandbox = proq_test_kit::claude::sandbox_with_claude("begin; echo new > n; well");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    // The last line has no end, so its events show only where nothing can follow.
    let log = File::options().write(true).open(sandbox.repo.join(".git/proq/lanes/x/runs/1.log")).unwrap();
    log.set_len(log.metadata().unwrap().len() - 1).unwrap();
    let read = |args: &[&str]| sandbox.proq(&[&["logs", "x", "--json"], args].concat()).json();
    let (whole, first) = (read(&[]), read(&["--after", "0"]));
    let second = read(&["--after", &first["next"].to_string()]);
    assert_eq!((&first["text"], &first["events"]), (&whole["text"], &whole["events"]));
    assert_eq!((&second["text"], second.get("events")), (&"".into(), None));
    assert_eq!(second["next"], first["next"]);
    // A reader who had all text before the run ended still gets them.
    let length = (log.metadata().unwrap().len()).to_string();
    let last = read(&["--after", &length]);
    assert_eq!((&last["text"], &last["next"]), (&"".into(), &first["next"]));
    assert_eq!(last["events"].as_array().unwrap().last(), whole["events"].as_array().unwrap().last());
}

#[test]
fn terminal_gets_colors_but_no_other_escapes() {
    let sandbox = Sandbox::new();
    let writes = r"printf '\033[31mred\033[0m\033]52;c;ZXZpbA==\007\033]2;title\007\033[2Jend\n' >&2";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-c", writes]);
    let on_terminal = |args: &[&str]| {
        let mut command = sandbox.command("python3", &sandbox.repo);
        command.args(["-c", PTY_SCRIPT, "git-proq", "logs", "x"]).args(args);
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
fn prints_gigabyte_log_with_little_memory() {
    let sandbox = proq_test_kit::claude::sandbox_with_claude("begin; echo new > n; well");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    let log = sandbox.repo.join(".git/proq/lanes/x/runs/1.log");
    // A hole takes no space on the disk. It is one line, far too long for an event.
    let mut file = File::options().write(true).open(log).unwrap();
    file.set_len(1 << 30).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    let line =
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"the last word"}]}}"#;
    writeln!(file, "\n{line}").unwrap();
    for flag in ["", "--raw"] {
        let mut command = sandbox.command("sh", &sandbox.repo);
        // Less memory than the log is long.
        let script = format!("ulimit -v 786432; git-proq logs x {flag} | tail -c 200");
        command.args(["-ec", &script]);
        let out = sandbox.output(command);
        assert!(out.stdout.contains("the last word"), "{flag}: {}", out.to_text());
    }
}

#[test]
fn refuses_missing_run() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["logs", "x"]).to_text(), @r"
    --- stderr
    error: lane 'x' has no run yet
    hint: list its runs: git proq show x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["logs", "--run", "2", "x"]).to_text(), @r"
    --- stderr
    error: lane 'x' has no run 2
    hint: list its runs: git proq show x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["logs", "y"]).to_text(), @r"
    --- stderr
    error: there is no lane 'y'
    hint: see all: git proq list
    --- code 1
    ");
}

#[test]
fn log_of_removed_lane_is_available() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo said");
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_eq!(sandbox.proq(&["logs", "x@1"]).ok(), "said\n");
    assert_eq!(sandbox.proq(&["logs", "-f", "x@1"]).ok(), "said\n");
}

#[test]
fn follow_ends_with_the_agent() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.start_lane("x", "echo first; read line < \"$ROOT/go\"; echo second; echo 1 > one");
    let mut follow = sandbox.proq_command(&sandbox.repo, &["logs", "-f", "x"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    sandbox.write_pipe("go");
    assert_eq!(lines.next().unwrap().unwrap(), "second");
    assert!(lines.next().is_none());
    let out = follow.wait_with_output().unwrap();
    assert_eq!((out.status.code(), &*out.stderr), (Some(0), &b"x: done\n"[..]));
    assert_eq!(sandbox.proq(&["logs", "-f", "x"]).ok(), "first\nsecond\n");
}

#[test]
fn wait_ends_when_all_agents_have_ended() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.run_lane("past", "echo 1 > one");
    sandbox.start_lane("bad", "read line < \"$ROOT/go\"; exit 3");
    sandbox.start_lane("good", "echo 1 > one");
    let mut wait = sandbox.proq_command(&sandbox.repo, &["wait", "bad", "good", "past"]);
    let wait = wait.stdout(Stdio::piped()).spawn().unwrap();
    sandbox.write_pipe("go");
    let out = wait.wait_with_output().unwrap();
    insta::assert_snapshot!(String::from_utf8(out.stdout).unwrap(), @r"
    bad: failed (exit code 3)
    good: done
    past: done
    ");
    assert_eq!(out.status.code(), Some(4));
}

#[test]
fn wait_without_names_covers_running_agents() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["wait"]).to_text(), @r"
    --- stderr
    no agent is running
    --- code 0
    ");
    sandbox.pipe("go");
    sandbox.start_lane("x", "read line < \"$ROOT/go\"; echo 1 > one");
    let mut wait = sandbox.proq_command(&sandbox.repo, &["wait", "--json"]);
    let wait = wait.stdout(Stdio::piped()).spawn().unwrap();
    // The agent may only continue once it has been observed running.
    sandbox.write_pipe("go");
    let out = wait.wait_with_output().unwrap();
    let out: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(out["schema"], 1);
    assert_eq!(sandbox.proq(&["wait", "x"]).ok(), "x: done\n");
    insta::assert_snapshot!(sandbox.proq(&["wait", "x", "y"]).to_text(), @r"
    --- stderr
    error: there is no lane or group 'y'
    hint: see all: git proq list
    --- code 1
    ");
}
