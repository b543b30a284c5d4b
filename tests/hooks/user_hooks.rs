//! Tests of the user's hooks: their input, their order, how they refuse, and that each event reaches them.

use proq_test_kit::Sandbox;
use proq_test_kit::runs::sandbox_with_old_lane;
use proq_test_kit::waiting::{KilledOnDrop, wait_until, wait_until_unlocked};

/// Waits until all pending events were dispatched.
pub fn wait_until_dispatched(sandbox: &Sandbox) {
    let pending = sandbox.repo.join(".git/proq/dispatch.toml");
    wait_until(&format!("all was told: {}", hook_log(sandbox)), || !pending.exists());
    wait_for_dispatcher(sandbox);
}

/// Waits until no process dispatches events.
fn wait_for_dispatcher(sandbox: &Sandbox) {
    wait_until_unlocked(&sandbox.repo.join(".git/proq/locks/dispatch.lock"));
}

pub fn hook_log(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.repo.join(".git/proq/hooks.log")).unwrap_or_default()
}

/// Waits for the dispatch and returns what hooks have written to the file `told`.
pub fn hook_output(sandbox: &Sandbox) -> String {
    wait_until_dispatched(sandbox);
    sandbox.normalize(&std::fs::read(sandbox.root().join("told")).unwrap_or_default())
}

/// Installs an executable in `proq/hooks/`.
fn install_hook(sandbox: &Sandbox, event: &str, script: &str) {
    sandbox.program("hook", script);
    sandbox.sh(&format!("mkdir -p .git/proq/hooks; mv \"$ROOT/bin/hook\" .git/proq/hooks/{event}"));
}

fn write_user_settings(sandbox: &Sandbox, toml: &str) {
    sandbox.write_in(&sandbox.root(), "home/.config/git-proq/config.toml", toml);
}

#[test]
fn hooks_run_for_their_events_only() {
    let sandbox = Sandbox::new();
    write_user_settings(
        &sandbox,
        "[hook]\n\"run.started\" = [\"echo one >> $ROOT/told\", \"echo two >> $ROOT/told\"]\n",
    );
    let line = "cat >> $ROOT/told; echo \"$PROQ_EVENT $PROQ_EVENT_N $PROQ_LANE $PROQ_STATE $PROQ_REPO ${GIT_DIR-no GIT_DIR}\" >> $ROOT/told; pwd >> $ROOT/told";
    sandbox.git(&["config", "proq.hook.run.ended", line]);
    install_hook(&sandbox, "run.ended", "echo \"file: $PROQ_MESSAGE\" >> $ROOT/told; echo aloud");
    let mut command = sandbox
        .proq_command(&sandbox.repo, &["spawn", "--wait", "-n", "pay", "--", "sh", "-c", "echo 1 > one"]);
    command.env("GIT_DIR", sandbox.repo.join(".git"));
    let _ = sandbox.output(command).ok();
    insta::assert_snapshot!(hook_output(&sandbox), @r#"
    one
    two
    {"at":"2026-01-02T03:04:05Z","event":"run.ended","lane":"pay","message":"lane 'pay': done","n":4,"schema":1,"state":"done"}
    run.ended 4 pay done [ROOT]/repo no GIT_DIR
    [ROOT]/repo
    file: lane 'pay': done
    "#);
    let hook_runs = hook_log(&sandbox);
    assert_eq!(hook_runs.lines().filter(|l| l.contains(": exit code 0")).count(), 4, "{hook_runs}");
    assert!(hook_runs.contains("4 run.ended: ") && hook_runs.ends_with("\n    aloud\n"), "{hook_runs}");
}

#[test]
fn nothing_is_dispatched_without_matching_hooks() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.merge.landed", "true"]);
    sandbox.run_lane("pay", "echo pay > pay.txt");
    assert!(!sandbox.repo.join(".git/proq/locks/dispatch.lock").exists());
    assert!(!sandbox.repo.join(".git/proq/dispatch.toml").exists());
}

/// Promise: concurrency/refusing-hook
#[test]
fn failing_pre_hook_refuses_with_its_output() {
    let sandbox = Sandbox::new();
    sandbox.git(&[
        "config",
        "proq.hook.pre-spawn",
        "grep -q '\"lane\":\"good\"' || { echo not now; echo please; exit 3; }",
    ]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "good"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "bad"]).to_text(), @r#"
    --- stderr
    error: hook pre-spawn refused: not now; please; nothing was changed
    hint: read its output: cat "$(git rev-parse --git-common-dir)/proq/hooks.log"
    hint: or add --no-hooks to skip it
    --- code 1
    "#);
    assert_eq!(sandbox.row("bad"), serde_json::Value::Null);
    sandbox.commit_in_lane("good", "echo good > good.txt");
    let before = sandbox.git(&["rev-parse", "main"]);
    install_hook(&sandbox, "pre-merge", "echo \"frozen: $PROQ_LANES\" >&2; exit 1");
    insta::assert_snapshot!(sandbox.proq(&["merge", "good"]).to_text(), @r#"
    --- stderr
    error: hook pre-merge refused: frozen: good; nothing was changed
    hint: read its output: cat "$(git rev-parse --git-common-dir)/proq/hooks.log"
    hint: or add --no-hooks to skip it
    --- code 1
    "#);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    let _ = sandbox.proq(&["merge", "--dry-run", "good"]).ok();
    install_hook(&sandbox, "pre-remove", "exit 1");
    insta::assert_snapshot!(sandbox.proq(&["discard", "--force", "good"]).to_text(), @r#"
    --- stderr
    error: hook pre-remove refused: exit code 1; nothing was changed
    hint: read its output: cat "$(git rev-parse --git-common-dir)/proq/hooks.log"
    hint: or add --no-hooks to skip it
    --- code 1
    "#);
    insta::assert_snapshot!(sandbox.proq(&["cleanup", "good"]).to_text(), @r#"
    --- stderr
    error: hook pre-remove refused: exit code 1; nothing was changed
    hint: read its output: cat "$(git rev-parse --git-common-dir)/proq/hooks.log"
    hint: or add --no-hooks to skip it
    --- code 1
    "#);
    assert!(sandbox.lane_path("good").join("good.txt").exists());
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "good"]);
    command.env("PROQ_NO_HOOKS", "1");
    let _ = sandbox.output(command).ok();
    assert_ne!(sandbox.git(&["rev-parse", "main"]), before);
    let _ = sandbox.proq(&["spawn", "--no-hooks", "--empty", "-n", "bad"]).ok();
}

/// Promise: concurrency/refusing-hook
#[test]
fn redispatch_runs_pre_remove_and_pre_spawn() {
    let sandbox = sandbox_with_old_lane();
    let before = sandbox.lane_leftovers();
    install_hook(&sandbox, "pre-remove", "echo \"keep $PROQ_LANE\"; exit 1");
    insta::assert_snapshot!(sandbox.proq(&["redispatch", "old"]).to_text(), @r#"
    --- stderr
    error: hook pre-remove refused: keep old; nothing was changed
    hint: read its output: cat "$(git rev-parse --git-common-dir)/proq/hooks.log"
    hint: or add --no-hooks to skip it
    --- code 1
    "#);
    install_hook(&sandbox, "pre-remove", "exit 0");
    install_hook(&sandbox, "pre-spawn", "echo \"no new $PROQ_LANE\"; exit 1");
    let message = sandbox.proq(&["redispatch", "old"]).fails(1);
    assert!(message.contains("hook pre-spawn refused: no new old; nothing was changed"), "{message}");
    assert_eq!(sandbox.lane_leftovers(), before);
    assert_eq!(sandbox.row("old")["state"], "done");
}

/// Promise: concurrency/refusing-hook
#[test]
fn pre_spawn_runs_for_each_lane_before_any_is_created() {
    let sandbox = Sandbox::new();
    install_hook(&sandbox, "pre-spawn", "test $PROQ_LANE != pay-2 || { echo two are enough; exit 1; }");
    let message = sandbox.proq(&["spawn", "--count", "2", "-n", "pay", "--", "true"]).fails(1);
    assert!(message.contains("hook pre-spawn refused: two are enough; nothing was changed"), "{message}");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    assert_eq!(sandbox.row("pay-1"), serde_json::Value::Null);
}

/// Promise: concurrency/refusing-hook
#[test]
fn ctrl_c_ends_pre_hook_and_creates_nothing() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    install_hook(&sandbox, "pre-spawn", "echo $$ > $ROOT/up; exec sleep 600");
    let mut spawn =
        KilledOnDrop(sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "a"]).spawn().unwrap());
    let hook = sandbox.read_pipe("up");
    sandbox.sh(&format!("kill -INT {}", spawn.0.id()));
    assert_eq!(spawn.exit_code(), Some(130));
    assert!(!sandbox.is_alive(hook.trim()));
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

#[test]
fn overlap_hook_receives_the_other_lane() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.lane.overlap", "echo $PROQ_LANE $PROQ_OTHER >> $ROOT/told"]);
    sandbox.lane_with_commit("one", "echo one > a.txt");
    sandbox.lane_with_commit("two", "echo two > a.txt");
    let _ = sandbox.proq(&["_overlaps", "--lane", "two"]).ok();
    assert_eq!(hook_output(&sandbox), "two one\n");
}

/// Promise: concurrency/hook-approval
#[test]
fn repository_hooks_run_only_after_approval() {
    let sandbox = Sandbox::new();
    let settings = |text: &str| {
        sandbox
            .write("proq.toml", &format!("[hook]\n\"lane.created\" = \"{text}\"\npre-merge = \"exit 9\"\n"));
    };
    settings("echo theirs >> $ROOT/told");
    sandbox.commit_all("settings");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    assert_eq!(hook_output(&sandbox), "");
    assert!(
        hook_log(&sandbox).contains("not run: you have not approved it (git proq approve)"),
        "{}",
        hook_log(&sandbox)
    );
    sandbox.commit_in_lane("a", "echo a > b.txt");
    insta::assert_snapshot!(sandbox.proq(&["merge", "a"]).to_text(), @r#"
    --- stderr
    error: cannot run hook pre-merge of [ROOT]/repo/proq.toml: you have not approved `exit 9`; nothing was changed
    hint: read and approve it: git proq approve
    hint: or add --no-hooks to skip it
    --- code 1
    "#);
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    assert!(sandbox.proq(&["merge", "a"]).fails(1).contains("hook pre-merge refused: exit code 9"));
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    assert_eq!(hook_output(&sandbox), "theirs\n");
    settings("echo changed >> $ROOT/told");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "c"]).ok();
    assert_eq!(hook_output(&sandbox), "theirs\n");
    // An approval for one event does not cover another event.
    sandbox.write("proq.toml", "[hook]\n\"lane.removed\" = \"echo theirs >> $ROOT/told\"\n");
    let _ = sandbox.proq(&["discard", "c"]).ok();
    assert_eq!(hook_output(&sandbox), "theirs\n");
    // The user's own hooks need no approval.
    sandbox.git(&["config", "proq.hook.lane.removed", "echo mine >> $ROOT/told"]);
    let _ = sandbox.proq(&["discard", "b"]).ok();
    assert_eq!(hook_output(&sandbox), "theirs\nmine\n");
}

#[test]
fn hook_timeout_kills_its_child_processes() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.timeout", "5"]);
    sandbox.git(&["config", "proq.hook.lane.created", "sleep 600 & echo $! > $ROOT/pid; sleep 600"]);
    sandbox.git(&["config", "--add", "proq.hook.lane.created", "echo after >> $ROOT/told"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    assert_eq!(hook_output(&sandbox), "after\n");
    assert!(hook_log(&sandbox).contains("timed out after 5 s"), "{}", hook_log(&sandbox));
    assert!(!sandbox.is_alive(std::fs::read_to_string(sandbox.root().join("pid")).unwrap().trim()));
}

/// Promise: concurrency/hook-events
#[test]
fn next_command_dispatches_events_of_killed_process() {
    let sandbox = Sandbox::new();
    sandbox.pipe("heard");
    sandbox.git(&[
        "config",
        "proq.hook.lane.created",
        "echo $PROQ_EVENT_N >> $ROOT/told; echo $PROQ_EVENT_N > $ROOT/heard",
    ]);
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "a"]);
    command.env("PROQ_TEST_DIE_AT", "dispatch.taken");
    let _ = sandbox.output(command).ok();
    assert_eq!(sandbox.read_pipe("heard"), "2\n");
    wait_for_dispatcher(&sandbox);
    // Any command continues the dispatch. An event that was being dispatched at the kill is dispatched again.
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(sandbox.read_pipe("heard"), "2\n");
    assert_eq!(hook_output(&sandbox), "2\n2\n");
    // While another process holds the lock, an event starts no dispatcher. The dispatcher to be killed is
    // started here, and awaited.
    let lock = std::fs::File::open(sandbox.repo.join(".git/proq/locks/dispatch.lock")).unwrap();
    lock.lock().unwrap();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    drop(lock);
    let mut command = sandbox.proq_command(&sandbox.repo, &["_dispatch"]);
    command.env("PROQ_TEST_DIE_AT", "dispatch.before");
    assert_eq!(sandbox.output(command).code, 137);
    // The next event continues the dispatch as well.
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "c"]).ok();
    let mut numbers = sandbox.read_pipe("heard");
    // One dispatcher may send both events.
    if numbers == "4\n" {
        numbers.push_str(&sandbox.read_pipe("heard"));
    }
    assert_eq!(numbers, "4\n6\n");
    assert_eq!(hook_output(&sandbox), "2\n2\n4\n6\n");
    // Commands without matching hooks record the dispatch position. The killed process may have left a
    // half-written record.
    sandbox.sh("rm -f .git/proq/.dispatch.toml.*");
    sandbox.assert_healthy();
}

/// Promise: concurrency/hook-events
#[test]
fn event_of_killed_writer_is_dispatched_once() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.task.updated", "echo $PROQ_EVENT_N $PROQ_LANE >> $ROOT/told"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    let mut command = sandbox.proq_command(&sandbox.lane_path("a"), &["task", "update", "--finding", "one"]);
    command.env("PROQ_LANE", "a").env("PROQ_TEST_DIE_AT", "events.written");
    assert_eq!(sandbox.output(command).code, 137);
    assert!(!sandbox.root().join("told").exists());
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(hook_output(&sandbox), "3 a\n");
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(hook_output(&sandbox), "3 a\n");
}

/// Promise: concurrency/hook-events
#[test]
fn commit_event_is_dispatched_while_agent_runs() {
    let sandbox = Sandbox::new();
    sandbox.pipe("heard");
    sandbox.pipe("go");
    sandbox.git(&["config", "proq.hook.lane.committed", "echo $PROQ_LANE > $ROOT/heard"]);
    sandbox.start_lane("x", "git commit -q --allow-empty -m one; read line < $ROOT/go");
    assert_eq!(sandbox.read_pipe("heard"), "x\n");
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
}

/// Promise: concurrency/hook-events
#[test]
fn pending_event_is_dispatched_at_end_of_run() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.task.updated", "echo $PROQ_LANE >> $ROOT/told"]);
    let report = "PROQ_TEST_DIE_AT=events.written git-proq task update --finding one || echo 1 > one";
    sandbox.run_lane("x", report);
    assert_eq!(hook_output(&sandbox), "x\n");
}

/// Promise: concurrency/hook-events
#[test]
fn unknown_event_is_skipped() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.lane.created", "echo $PROQ_EVENT_N >> $ROOT/told"]);
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "a"]);
    command.env("PROQ_TEST_DIE_AT", "dispatch.before");
    let _ = sandbox.output(command).ok();
    // The killed dispatcher has held the lock.
    let lock = sandbox.repo.join(".git/proq/locks/dispatch.lock");
    wait_until("the first dispatcher", || lock.exists());
    wait_for_dispatcher(&sandbox);
    sandbox.sh("echo '{\"n\":3,\"event\":\"moon.rose\"}' >> .git/proq/events.jsonl");
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(hook_output(&sandbox), "2\n");
    // The dispatch also ends after an unknown event.
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    assert_eq!(hook_output(&sandbox), "2\n5\n");
}

#[test]
fn hook_that_runs_git_proq_triggers_no_hooks() {
    let sandbox = Sandbox::new();
    sandbox.git(&[
        "config",
        "proq.hook.lane.created",
        "echo $PROQ_LANE >> $ROOT/told; git proq spawn --empty -n more-$PROQ_EVENT_N",
    ]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    assert_eq!(hook_output(&sandbox), "a\n");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    assert_eq!(hook_output(&sandbox), "a\nb\n");
    let all = sandbox.proq(&["events", "--json"]).json();
    let made_by_hook: Vec<bool> =
        all["events"].as_array().unwrap().iter().map(|e| e["no_hooks"] == true).collect();
    assert_eq!(made_by_hook, [false, false, true, true, false, false, true, true]);
}

/// Promise: concurrency/hook-events
#[test]
fn twenty_agents_dispatch_each_event_once_in_order() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.event.rotate", "1"]);
    for event in ["op.ended", "lane.created", "run.started", "run.ended"] {
        sandbox.git(&["config", &format!("proq.hook.{event}"), "echo $PROQ_EVENT_N >> $ROOT/told"]);
    }
    let children: Vec<_> = (0..20)
        .map(|n| {
            let name = format!("x{n}");
            let args = ["spawn", "-n", &name, "--wait", "--", "true"];
            sandbox.proq_command(&sandbox.repo, &args).stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let numbers: Vec<u64> = hook_output(&sandbox).lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(numbers, (1..=80).collect::<Vec<_>>());
}

#[test]
fn warns_about_hook_for_unknown_event() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.run.finished", "true"]);
    let out = sandbox.proq(&["list"]);
    assert!(
        out.stderr.contains("there is no event 'run.finished', so hook.run.finished never runs"),
        "{}",
        out.stderr
    );
}

#[test]
fn approved_hook_set_during_a_run_sees_its_end() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.start_lane("pay", "read line < $ROOT/go");
    sandbox.git(&["config", "proq.hook.run.ended", "echo $PROQ_LANE >> $ROOT/told"]);
    // The agent could have set the hook.
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "pay"]).ok();
    assert_eq!(hook_output(&sandbox), "pay\n");
}

#[test]
pub fn hook_output_is_truncated_and_log_is_rotated() {
    let sandbox = Sandbox::new();
    let much =
        "i=0; while [ $i -lt 9000 ]; do echo 0123456789012345678901234567890123456789; i=$((i + 1)); done";
    sandbox.git(&["config", "proq.hook.lane.created", much]);
    sandbox.git(&["config", "--add", "proq.hook.lane.created", "echo end"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    wait_until_dispatched(&sandbox);
    assert!((64 * 1024..100 * 1024).contains(&hook_log(&sandbox).len()), "{}", hook_log(&sandbox).len());
    assert!(hook_log(&sandbox).ends_with("    end\n"));
    sandbox.sh("head -c 1100000 /dev/zero > .git/proq/hooks.log");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    wait_until_dispatched(&sandbox);
    assert!(hook_log(&sandbox).len() < 100 * 1024);
    assert_eq!(std::fs::metadata(sandbox.repo.join(".git/proq/hooks.log.1")).unwrap().len(), 1_100_000);
}
