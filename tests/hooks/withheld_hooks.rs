//! Hooks that are set while an agent runs, and need approval before they run.

use std::process::Stdio;

use proq_test_kit::Sandbox;
use proq_test_kit::waiting::{KilledOnDrop, OutputLines};

use super::user_hooks::{hook_log, hook_output, wait_until_dispatched};

#[test]
fn hook_set_while_another_runs_sees_later_events() {
    let sandbox = Sandbox::new();
    sandbox.pipe("begun");
    sandbox.pipe("go");
    let root = sandbox.root();
    let line = format!("echo > '{0}/begun'; read line < '{0}/go'", root.display());
    sandbox.git(&["config", "proq.hook.run.ended", &line]);
    let _ = sandbox.proq(&["spawn", "-n", "a", "--wait", "--", "true"]).ok();
    let _ = sandbox.read_pipe("begun");
    let note = |file: &str| format!("echo \"$PROQ_EVENT $PROQ_LANE\" >> '{}'", root.join(file).display());
    sandbox.git(&["config", "proq.hook.run.started", &note("started")]);
    sandbox.git(&["config", "proq.notify.sound", &note("sound")]);
    sandbox.git(&["config", "proq.hook.run.ended", "true"]);
    let _ = sandbox.proq(&["spawn", "-n", "b", "--wait", "--", "true"]).ok();
    sandbox.write_pipe("go");
    wait_until_dispatched(&sandbox);
    let noted = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_default();
    assert_eq!(noted("started"), "run.started b\n");
    assert!(noted("sound").contains("run.ended b\n"), "{}", noted("sound"));
}

/// A hook that an agent sets while it runs does not run without approval.
/// Promise: concurrency/hook-approval
#[test]
fn hook_set_during_a_run_needs_approval() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.run.ended", "echo mine >> $ROOT/told"]);
    sandbox.pipe("go");
    let script = "git config --add proq.hook.run.ended 'echo theirs >> $ROOT/told'; git config proq.hook.lane.created 'echo theirs >> $ROOT/told'; echo > $ROOT/set; cat $ROOT/go";
    sandbox.pipe("set");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--", "sh", "-ec", script]).ok();
    let _ = sandbox.read_pipe("set");
    // While the agent runs, the hook is not run either.
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    sandbox.write_pipe("go");
    sandbox.wait_for_events("run.ended", "x", 1);
    assert_eq!(hook_output(&sandbox), "mine\n");
    let text = hook_log(&sandbox);
    assert_eq!(text.matches("not run: you have not approved it (git proq approve)").count(), 2, "{text}");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "z"]).ok();
    assert_eq!(hook_output(&sandbox), "mine\n");
    let listed = sandbox.proq(&["approve", "--list"]).ok();
    assert_eq!(listed.matches("(not approved)").count(), 2, "{listed}");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let _ = sandbox.proq(&["spawn", "-q", "--wait", "-n", "w", "--", "true"]).ok();
    assert_eq!(hook_output(&sandbox), "mine\ntheirs\nmine\ntheirs\n");
}

#[test]
fn hook_set_in_a_killed_run_needs_approval() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.pipe("set");
    let script =
        "git config proq.hook.lane.created 'echo theirs >> $ROOT/told'; echo > $ROOT/set; cat $ROOT/go";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--", "sh", "-ec", script]).ok();
    let _ = sandbox.read_pipe("set");
    proq_test_kit::runs::kill_supervisor(&sandbox, "x");
    let _ = sandbox.proq(&["stop", "x"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    // This run removes what the other run left of its git guard.
    let _ = sandbox.proq(&["spawn", "-q", "--wait", "-n", "w", "--", "true"]).ok();
    assert!(!sandbox.repo.join(".git/proq/fences/x-1").exists());
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "z"]).ok();
    assert!(!sandbox.root().join("told").exists());
    let listed = sandbox.proq(&["approve", "--list"]).ok();
    assert_eq!(listed.matches("(not approved)").count(), 1, "{listed}");
}

#[test]
fn hook_of_killed_run_stays_withheld_while_the_run_is_closed() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.pipe("set");
    let script = "git config proq.hook.lane.created 'echo theirs'; echo > $ROOT/set; cat $ROOT/go";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--", "sh", "-ec", script]).ok();
    let _ = sandbox.read_pipe("set");
    proq_test_kit::runs::kill_supervisor(&sandbox, "x");
    let _ = sandbox.proq(&["stop", "x"]);
    let mut command = sandbox.proq_command(&sandbox.repo, &["approve", "--list"]);
    command.env("PROQ_TEST_STAND_AT", "hooks.guards-read").stdout(Stdio::piped());
    let mut list = KilledOnDrop(command.spawn().unwrap());
    let lines = OutputLines::read_from(list.0.stdout.take().unwrap());
    let paused = sandbox.wait_until_stopped(list.0.id());
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    // This run removes what the killed run left of its git guard, after it has listed the new hook.
    let _ = sandbox.proq(&["spawn", "-q", "--wait", "-n", "w", "--", "true"]).ok();
    assert!(!sandbox.repo.join(".git/proq/fences/x-1").exists());
    drop(paused);
    let line = lines.next();
    assert!(line.contains("(not approved)") || line.contains("; not approved"), "{line}");
    assert_eq!(list.exit_code(), Some(0));
}
