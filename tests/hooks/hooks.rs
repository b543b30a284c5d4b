//! Scripts and documentation shipped in `hooks/`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use proq_test_kit::Sandbox;
use rustix::process::{Pid, Signal, kill_process_group};

/// Documentation page about hooks.
const PAGE: &str = include_str!("../../docs/guide/hooks.md");

/// The running script, with a `notify-send` that prints its arguments to the script's own output.
struct NotifyScript {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl NotifyScript {
    fn start(sandbox: &Sandbox, args: &[&str], wanted: Option<&str>) -> NotifyScript {
        let bin = sandbox.root().join("bin");
        sandbox.write_in(
            &bin,
            "notify-send",
            "#!/bin/sh\nprintf '%s' \"$1\"\nshift\nprintf '|%s' \"$@\"\necho\n",
        );
        std::fs::set_permissions(bin.join("notify-send"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_git-proq")).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let path = [bin, program.to_owned()].into_iter().chain(std::env::split_paths(&path));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/notify.sh");
        let mut command = sandbox.command(script, &sandbox.repo);
        command.args(args).env("PATH", std::env::join_paths(path).unwrap());
        command.envs(wanted.map(|w| ("PROQ_NOTIFY", w)));
        let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        NotifyScript { child, output }
    }

    /// Waits for the next notification and returns it.
    fn next(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for NotifyScript {
    fn drop(&mut self) {
        let group = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process_group(group, Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn notify_script_prints_past_and_new_events() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("pay", "echo pay > pay.txt");
    let mut watch = NotifyScript::start(&sandbox, &["--last", "100"], None);
    assert_eq!(watch.next(), "--|git proq: pay|lane 'pay': done");
    let _ = sandbox.proq(&["merge", "pay"]).ok();
    assert_eq!(watch.next(), "--|git proq: pay|lane 'pay' landed on main");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "bad", "--", "sh", "-c", "exit 3"]).fails(4);
    let notice = watch.next();
    assert!(notice.starts_with("--|git proq: bad|lane 'bad': failed"), "{notice}");
}

#[test]
fn notify_script_prints_only_wanted_events() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("pay", "echo pay > pay.txt");
    let mut watch = NotifyScript::start(&sandbox, &["--last", "100"], Some("run.started lane.removed"));
    let notice = watch.next();
    assert!(notice.contains("|git proq: pay|lane 'pay': ") && notice.ends_with(" started"), "{notice}");
    let _ = sandbox.proq(&["merge", "pay"]).ok();
    assert_eq!(watch.next(), "--|git proq: pay|lane 'pay' cleaned up");
}

#[test]
fn page_lists_all_events_and_fields() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("pay", "echo pay > a.txt");
    sandbox.run_lane("tax", "echo tax > a.txt");
    // By now the overlap is emitted, whichever process was faster.
    let _ = sandbox.proq(&["matrix"]).ok();
    let _ = sandbox.proq(&["preview", "pay", "--no-hooks"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.run_lane("bad", "echo bad > bad.txt; git-proq task update --finding it");
    let _ = sandbox.proq(&["merge", "pay", "tax", "bad", "--verify", "test ! -e bad.txt"]).fails(4);
    sandbox.program("both", "printf 'pay\ntax\n' > a.txt");
    let _ = sandbox.proq(&["resolve", "tax", "--agent", "both"]).ok();
    sandbox.write("a.txt", "mine\n");
    let auto_merge_args =
        ["spawn", "--auto-merge", "--wait", "-n", "own", "--", "sh", "-c", "echo own > a.txt"];
    let _ = sandbox.proq(&auto_merge_args).fails(1);
    sandbox.program("teller", "echo '{}' | \"$PROQ_PROGRAM\" _agent-event prompt");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "told", "teller", "say it"]).ok();
    retry_and_send(&sandbox);
    sandbox.run_lane("far", "git commit -q --allow-empty -m far; git -C ../own switch -q --detach");
    edit_and_preview(&sandbox, "far");
    wait_to_land(&sandbox);
    // A task that cannot land, since its check fails: its batch is paused, and then aborted.
    sandbox.program("worker", "echo t > t.txt; git add t.txt; git commit -qm t");
    let task = "[[task]]\nid = \"t\"\ntitle = \"T\"\nchecks = [\"false\"]\n";
    sandbox.write("plan.toml", &format!("format = 1\nagent = \"worker\"\n{task}"));
    let _ = sandbox.proq(&["approve", "--yes", "--plan", "plan.toml"]).ok();
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "--ignore-dirty"]);
    let _ = sandbox.proq(&["abort"]).ok();
    // A task folder with two steps, a run for each.
    let steps = "### Step 1: a\n- [ ] a\n### Step 2: b\n- [ ] b\n";
    let prompt = format!("# P-1: X\n\n## Dependencies\n- **None**\n\n{steps}");
    sandbox.write("tasks/pay/P-1-x/PROMPT.md", &prompt);
    sandbox.program("stepper", r"sed -i '0,/- \[ \]/s//- [x]/' tasks/pay/P-1-x/STATUS.md; date > $$.txt; git add -A; git commit -qm step");
    let _ = sandbox.proq(&["spawn", "stepper", "--folder", "tasks/pay/P-1-x", "-n", "steps", "--wait"]).ok();
    let answer = sandbox.proq(&["events", "--json"]).json();
    let events = answer["events"].as_array().unwrap();
    let names: BTreeSet<&str> = events.iter().map(|e| e["event"].as_str().unwrap()).collect();
    let fields: BTreeSet<&str> = events
        .iter()
        .flat_map(|e| e.as_object().unwrap().keys().map(String::as_str))
        .chain(["schema"])
        .collect();
    assert_eq!(first_column(PAGE, "event"), &names | &BTreeSet::from(SNAPSHOT_EVENTS));
    assert_eq!(first_column(PAGE, "field"), fields);
}

/// Runs an agent that is retried, and receives a message while it runs.
fn retry_and_send(sandbox: &Sandbox) {
    let last = |busy: &str| {
        format!(
            "echo '{{\"type\":\"result\",\"is_error\":{busy},\"api_error_status\":529,\"session_id\":\"s\"}}'"
        )
    };
    sandbox.program(
        "claude",
        &format!(
            "n=$(git config --get-all proq.calls | wc -l); git config --add proq.calls x
            case $n in 0) {}; exit 1;; 1) git-proq send -q again more;; esac; {}",
            last("true"),
            last("false")
        ),
    );
    sandbox.git(&["config", "proq.agent.backoff", "0"]);
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "again", "claude", "do it"]).ok();
}

/// Changes the title of a lane, previews it, and moves the preview to a new commit.
fn edit_and_preview(sandbox: &Sandbox, lane: &str) {
    let _ = sandbox.proq(&["edit", lane, "--title", "Far away"]).ok();
    let _ = sandbox.proq(&["preview", lane]).ok();
    sandbox.commit_in_lane(lane, "echo more > more.txt");
    let _ = sandbox.proq(&["preview", "--refresh"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
}

/// Lands a lane while another landing runs its check, so that it waits in the queue.
fn wait_to_land(sandbox: &Sandbox) {
    sandbox.pipe("here");
    sandbox.pipe("go");
    let land = |lane: &str, check: &str| {
        sandbox.lane_with_commit(lane, &format!("echo {lane} > {lane}.txt"));
        let mut command = sandbox.proq_command(&sandbox.repo, &["merge", lane, "--verify", check]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let first = land("first", "echo here > $ROOT/here; timeout 60 cat $ROOT/go > /dev/null");
    assert_eq!(sandbox.read_pipe("here"), "here\n");
    let second = land("second", "true");
    sandbox.wait_for_events("merge.queued", "second", 1);
    sandbox.write_pipe("go");
    for landing in [first, second] {
        assert!(landing.wait_with_output().unwrap().status.success());
    }
    sandbox.wait_for_events("merge.checking", "second", 1);
}

/// Events of the process that takes automatic snapshots; `auto_snapshots.rs` tests them.
const SNAPSHOT_EVENTS: [&str; 2] = ["changes.lost", "repository.changed"];

/// Returns the first column of the table with this heading.
fn first_column<'a>(page: &'a str, heading: &str) -> BTreeSet<&'a str> {
    let (_, table) = page.split_once(&format!("\n| {heading} | ")).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| `"));
    rows.map(|line| line.split('`').nth(1).unwrap()).collect()
}
