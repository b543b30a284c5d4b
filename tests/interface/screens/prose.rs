//! Sentences on terminals of different widths: wrapped at words, with commands that can be copied as a whole.

use std::collections::BTreeSet;

use proq_test_kit::tmux::{TmuxSandbox, UserTerminal};
use proq_test_kit::{PTY_SCRIPT, Sandbox};

/// Widths of terminals, in characters.
const WIDTHS: [usize; 5] = [40, 60, 80, 100, 140];

/// Name of a lane that fills most of a narrow terminal.
const LONG_NAME: &str = "accept-payments-by-invoice";

/// Returns a repository with a failed lane, two lanes in conflict, a preview that was left with git, and a
/// misspelled setting.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.sh("seq 29 > numbers.txt");
    sandbox.commit_all("numbers");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", LONG_NAME, "--", "sh", "-c", "exit 3"]).fails(4);
    sandbox.run_lane("lane-2", "sed -i s/^5$/cinq/ numbers.txt");
    sandbox.run_lane("lane-3", "sed -i s/^5$/five/ numbers.txt");
    let _ = sandbox.proq(&["preview", "lane-2"]).ok();
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.git(&["config", "proq.merge.stratgy", "squash"]);
    sandbox
}

/// Returns what a command prints on a terminal with this width, both streams in order.
fn on_terminal(sandbox: &Sandbox, args: &str, width: usize) -> String {
    let script = format!("stty rows 50 columns {width}; git-proq {args}");
    let mut command = sandbox.command("python3", &sandbox.repo);
    command.args(["-c", PTY_SCRIPT, "sh", "-c", &script]).env("TERM", "dumb");
    let version = sandbox.git(&["version"]).replace("git version ", "");
    let version = version.trim().split('.').take(2).collect::<Vec<_>>().join(".");
    sandbox.output(command).stdout.replace("\r\n", "\n").replace(&version, "2.xx")
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().collect()
}

#[test]
fn sentences_are_wrapped_at_words() {
    let sandbox = sandbox();
    for (name, args) in [
        ("error", "discard lane-2"),
        ("hint", "show lane-3"),
        ("warning", "list --state idle"),
        ("landing", "merge --all --dry-run"),
        ("repository-status", "status"),
        ("doctor", "doctor"),
    ] {
        let unwrapped = on_terminal(&sandbox, args, 500);
        let mut screens = String::new();
        for width in WIDTHS {
            let text = on_terminal(&sandbox, args, width);
            for line in text.lines().filter(|line| line.chars().count() >= width) {
                let is_whole = line.trim_start().starts_with("git ") || !line.trim_start().contains(' ');
                assert!(is_whole, "{args} at {width}: {line:?}");
            }
            if !["hint", "warning"].contains(&name) {
                assert_eq!(words(&text), words(&unwrapped), "{args} at {width}");
            }
            for command in unwrapped.lines().filter_map(|line| Some(&line[line.find(": git ")? + 2..])) {
                assert!(text.lines().any(|line| line.ends_with(command)), "{args} at {width}: {command}");
            }
            screens.push_str(&format!("---- {width}\n{text}"));
        }
        if name != "hint" {
            insta::with_settings!({ snapshot_suffix => name }, {
                insta::assert_snapshot!("prose", screens);
            });
        }
    }
}

#[test]
fn piped_sentences_stay_on_one_line() {
    let sandbox = sandbox();
    let mut command = sandbox.proq_command(&sandbox.repo, &["discard", "lane-2"]);
    command.env("COLUMNS", "40");
    let out = sandbox.output(command).fails(1);
    assert!(out.lines().any(|line| line.starts_with("error: ") && line.chars().count() > 60), "{out}");
}

#[test]
fn questions_are_wrapped_at_words() {
    let screen = TmuxSandbox::new();
    let _ = screen.proq(&["spawn", "--empty", "-n", LONG_NAME]).ok();
    let terminal = UserTerminal::open(&screen, "git proq undo; echo ended $?; exec cat");
    let shown = terminal.wait_for_text("undo it? [y/N] ");
    let command = format!("git proq spawn --empty -n {LONG_NAME}");
    let question =
        format!("operation 1 was started in another terminal or by another program:\n    {command}\n");
    assert!(shown.starts_with(&question), "{shown}");
    terminal.press(&["y", "Enter"]);
    let _ = terminal.wait_for_text("ended 0");
    assert!(!screen.0.lane_path(LONG_NAME).exists());
}
