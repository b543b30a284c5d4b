//! Tests of spans: `-vv` and `PROQ_LOG` print them, and an operation that failed keeps its own.

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::{Output, Sandbox};

use super::git_failures::full_disk_at;

/// Text of a prompt that no trace may have.
const PROMPT: &str = "a well kept secret";

/// Returns the kind and name of each span in printed lines, without those around it and without times.
fn printed_spans(out: &Output) -> Vec<String> {
    let spans = out.stderr.lines().filter_map(|line| line.split_once("}: close time.busy="));
    let names = spans.filter_map(|(path, _)| path.rsplit_once("{name="));
    names.map(|(before, name)| format!("{} {name}", before.rsplit([':', ' ']).next().unwrap())).collect()
}

/// Returns the lines of a trace without times.
fn plain_lines(out: Output) -> Vec<String> {
    out.ok().lines().map(|line| line[25..].to_owned()).collect()
}

#[test]
fn verbose_twice_prints_spans_in_order() {
    let sandbox = Sandbox::new();
    let spans = printed_spans(&sandbox.proq(&["-vv", "spawn", "--empty", "-n", "x"]));
    let outer: Vec<&str> =
        spans.iter().map(String::as_str).filter(|span| !span.starts_with("git ")).collect();
    let expected = ["step CreateWorktree", "step WriteRecord", "operation spawn", "command spawn"];
    assert!(outer.ends_with(&expected), "{spans:?}");
    let once = sandbox.proq(&["-v", "spawn", "--empty", "-n", "y"]);
    assert!(printed_spans(&once).is_empty() && once.stderr.contains("files:"), "{}", once.stderr);
}

#[test]
fn variable_filters_spans() {
    let sandbox = Sandbox::new();
    let run = |filter: &str, args: &[&str]| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env("PROQ_LOG", filter);
        sandbox.output(command)
    };
    let spans = printed_spans(&run("operation=info", &["spawn", "--empty", "-n", "x"]));
    assert_eq!(spans, ["operation spawn"]);
    assert_eq!(printed_spans(&run("info", &["list"])), ["command list"]);
    assert_eq!(printed_spans(&run("", &["list"])), [""; 0]);
    assert!(run("info=info=info", &["list"]).stderr.starts_with("warning: PROQ_LOG is no filter: "));
}

#[test]
fn reverted_operation_keeps_its_trace() {
    let sandbox = full_disk_at("read-tree");
    sandbox.write(".gitattributes", "* ident\n");
    sandbox.commit_all("attributes");
    insta::assert_snapshot!(sandbox.proq(&["op", "show", "--trace"]).fails(1), @"
    error: no failed operation outside of the log has a trace
    hint: list operations: git proq op log
    ");
    sandbox.agent("claude", "true");
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "claude", PROMPT, "-n", "x"]);
    command.env("FULL", "before").env("PROQ_LOG", "trace");
    let out = sandbox.output(command);
    assert!(printed_spans(&out).contains(&"git read-tree".to_owned()), "{}", out.stderr);
    let printed = out.fails(1);
    let trace = plain_lines(sandbox.proq(&["op", "show", "--trace"]));
    assert_eq!(trace[0], "operation spawn (failed)");
    assert!(trace.contains(&"  step CreateWorktree".to_owned()), "{trace:?}");
    assert!(trace.contains(&"  git read-tree (failed)".to_owned()), "{trace:?}");
    let shown = format!("{printed}{}", trace.join("\n"));
    assert!(PROMPT.split(' ').filter(|word| word.len() > 1).all(|word| !shown.contains(word)), "{shown}");
}

#[test]
fn trace_of_logged_operation_expires_with_it() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x");
    kill_at(&sandbox, "transition.moved", &["merge", "--no-cleanup", "x"]);
    let _ = recover(&sandbox);
    let log = sandbox.proq(&["op", "log", "--json"]).json();
    let row = &log["operations"][0];
    assert_eq!(row["recovered"], true, "{log:#}");
    let number = row["operation"].to_string();
    let shown = plain_lines(sandbox.proq(&["op", "show", &number, "--trace"]));
    assert_eq!(shown[0], "operation merge (failed)");
    assert!(shown.contains(&"  step Checkout".to_owned()), "{shown:?}");
    let json = sandbox.proq(&["op", "show", &number, "--trace", "--json"]).json();
    assert_eq!(json["trace"].as_array().unwrap().len(), shown.len());
    insta::assert_snapshot!(sandbox.proq(&["op", "show", "1", "--trace"]).fails(1), @"
    error: operation 1 has no trace; only failed and interrupted operations have one
    hint: show what it did: git proq op show 1
    ");
    let path = sandbox.repo.join(format!(".git/proq/traces/{number}"));
    assert!(path.exists());
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "later"]).ok();
    let _ = sandbox.proq_at("2026-02-12T03:04:05Z", &["gc"]).ok();
    assert!(!path.exists() && !sandbox.repo.join(format!(".git/proq/ops/{number}.jsonl")).exists());
}
