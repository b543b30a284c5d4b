//! Owns the tests of hooks: what they are told, in which order, how they refuse, and that none misses an event.

use super::redispatch::old_lane;
use super::support::Sandbox;
use super::support::patience::{Beside, wait_until, wait_until_free};

/// Waits until all events that are due were handed out.
pub fn all_told(sandbox: &Sandbox) {
    let due = sandbox.repo.join(".git/proq/dispatch.toml");
    wait_until(&format!("all was told: {}", log(sandbox)), || !due.exists());
    wait_for_dispatcher(sandbox);
}

/// Waits until no process hands out events.
fn wait_for_dispatcher(sandbox: &Sandbox) {
    wait_until_free(&sandbox.repo.join(".git/proq/locks/dispatch.lock"));
}

pub fn log(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.repo.join(".git/proq/hooks.log")).unwrap_or_default()
}

/// What hooks have written to the file `told`.
pub fn told(sandbox: &Sandbox) -> String {
    all_told(sandbox);
    sandbox.plain(&std::fs::read(sandbox.root().join("told")).unwrap_or_default())
}

/// Puts an executable below `proq/hooks/`.
fn executable(sandbox: &Sandbox, event: &str, script: &str) {
    sandbox.program("hook", script);
    sandbox.sh(&format!("mkdir -p .git/proq/hooks; mv \"$ROOT/bin/hook\" .git/proq/hooks/{event}"));
}

fn user_settings(sandbox: &Sandbox, toml: &str) {
    sandbox.write_in(&sandbox.root(), "home/.config/git-proq/config.toml", toml);
}

#[test]
fn hooks_are_told_of_their_events_and_of_no_others() {
    let sandbox = Sandbox::new();
    user_settings(
        &sandbox,
        "[hook]\n\"run.started\" = [\"echo one >> $ROOT/told\", \"echo two >> $ROOT/told\"]\n",
    );
    let line = "cat >> $ROOT/told; echo \"$PROQ_EVENT $PROQ_EVENT_N $PROQ_LANE $PROQ_STATE $PROQ_REPO ${GIT_DIR-no GIT_DIR}\" >> $ROOT/told; pwd >> $ROOT/told";
    sandbox.git(&["config", "proq.hook.run.ended", line]);
    executable(&sandbox, "run.ended", "echo \"file: $PROQ_MESSAGE\" >> $ROOT/told; echo aloud");
    let mut command = sandbox
        .proq_command(&sandbox.repo, &["spawn", "--wait", "-n", "pay", "--", "sh", "-c", "echo 1 > one"]);
    command.env("GIT_DIR", sandbox.repo.join(".git"));
    let _ = sandbox.output(command).ok();
    insta::assert_snapshot!(told(&sandbox), @r#"
    one
    two
    {"at":"2026-01-02T03:04:05Z","event":"run.ended","lane":"pay","message":"lane 'pay': done","n":3,"schema":1,"state":"done"}
    run.ended 3 pay done [ROOT]/repo no GIT_DIR
    [ROOT]/repo
    file: lane 'pay': done
    "#);
    let ran = log(&sandbox);
    assert_eq!(ran.lines().filter(|l| l.contains(": exit code 0")).count(), 4, "{ran}");
    assert!(ran.contains("3 run.ended: ") && ran.ends_with("\n    aloud\n"), "{ran}");
}

#[test]
fn nothing_is_started_where_no_hook_is_set() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.merge.landed", "true"]);
    sandbox.lane_with("pay", "echo pay > pay.txt");
    assert!(!sandbox.repo.join(".git/proq/locks/dispatch.lock").exists());
    assert!(!sandbox.repo.join(".git/proq/dispatch.toml").exists());
}

#[test]
fn a_hook_that_says_no_is_obeyed_and_quoted() {
    let sandbox = Sandbox::new();
    sandbox.git(&[
        "config",
        "proq.hook.pre-spawn",
        "grep -q '\"lane\":\"good\"' || { echo not now; echo please; exit 3; }",
    ]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "good"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "bad"]).shown(), @r#"
    --- stderr
    error: pre-spawn said no: not now; please; nothing was changed
    hint: all that it wrote is in proq/hooks.log below the git directory
    hint: or do it without asking pre-spawn: --no-hooks
    --- code 1
    "#);
    assert_eq!(sandbox.row("bad"), serde_json::Value::Null);
    sandbox.commit_in_lane("good", "echo good > good.txt");
    let before = sandbox.git(&["rev-parse", "main"]);
    executable(&sandbox, "pre-merge", "echo \"frozen: $PROQ_LANES\" >&2; exit 1");
    insta::assert_snapshot!(sandbox.proq(&["merge", "good"]).shown(), @r#"
    --- stderr
    error: pre-merge said no: frozen: good; nothing was changed
    hint: all that it wrote is in proq/hooks.log below the git directory
    hint: or do it without asking pre-merge: --no-hooks
    --- code 1
    "#);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    let _ = sandbox.proq(&["merge", "--dry-run", "good"]).ok();
    executable(&sandbox, "pre-remove", "exit 1");
    insta::assert_snapshot!(sandbox.proq(&["discard", "--force", "good"]).shown(), @r#"
    --- stderr
    error: pre-remove said no: exit code 1; nothing was changed
    hint: all that it wrote is in proq/hooks.log below the git directory
    hint: or do it without asking pre-remove: --no-hooks
    --- code 1
    "#);
    insta::assert_snapshot!(sandbox.proq(&["cleanup", "good"]).shown(), @r#"
    --- stderr
    error: pre-remove said no: exit code 1; nothing was changed
    hint: all that it wrote is in proq/hooks.log below the git directory
    hint: or do it without asking pre-remove: --no-hooks
    --- code 1
    "#);
    assert!(sandbox.lane("good").join("good.txt").exists());
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "good"]);
    command.env("PROQ_NO_HOOKS", "1");
    let _ = sandbox.output(command).ok();
    assert_ne!(sandbox.git(&["rev-parse", "main"]), before);
    let _ = sandbox.proq(&["spawn", "--no-hooks", "--empty", "-n", "bad"]).ok();
}

#[test]
fn starting_afresh_asks_whether_the_old_lane_may_go_and_a_new_one_come() {
    let sandbox = old_lane();
    let before = sandbox.traces();
    executable(&sandbox, "pre-remove", "echo \"keep $PROQ_LANE\"; exit 1");
    insta::assert_snapshot!(sandbox.proq(&["redispatch", "old"]).shown(), @r"
    --- stderr
    error: pre-remove said no: keep old; nothing was changed
    hint: all that it wrote is in proq/hooks.log below the git directory
    hint: or do it without asking pre-remove: --no-hooks
    --- code 1
    ");
    executable(&sandbox, "pre-remove", "exit 0");
    executable(&sandbox, "pre-spawn", "echo \"no new $PROQ_LANE\"; exit 1");
    let said = sandbox.proq(&["redispatch", "old"]).fails(1);
    assert!(said.contains("pre-spawn said no: no new old; nothing was changed"), "{said}");
    assert_eq!(sandbox.traces(), before);
    assert_eq!(sandbox.row("old")["state"], "done");
}

#[test]
fn each_of_several_attempts_is_asked_about_before_the_first_is_made() {
    let sandbox = Sandbox::new();
    executable(&sandbox, "pre-spawn", "test $PROQ_LANE != pay-2 || { echo two are enough; exit 1; }");
    let said = sandbox.proq(&["spawn", "--count", "2", "-n", "pay", "--", "true"]).fails(1);
    assert!(said.contains("pre-spawn said no: two are enough; nothing was changed"), "{said}");
    assert_eq!(sandbox.traces(), [""; 0]);
    assert_eq!(sandbox.row("pay-1"), serde_json::Value::Null);
}

#[test]
fn ctrl_c_ends_a_hook_that_is_asked_and_nothing_is_made() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    executable(&sandbox, "pre-spawn", "echo $$ > $ROOT/up; exec sleep 600");
    let mut spawn =
        Beside(sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "a"]).spawn().unwrap());
    let hook = sandbox.hear("up");
    sandbox.sh(&format!("kill -INT {}", spawn.0.id()));
    assert_eq!(spawn.code(), Some(130));
    assert!(!sandbox.lives(hook.trim()));
    assert_eq!(sandbox.traces(), [""; 0]);
}

#[test]
fn a_hook_is_told_the_other_lane_of_two() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.lane.overlap", "echo $PROQ_LANE $PROQ_OTHER >> $ROOT/told"]);
    sandbox.lane_of("one", "echo one > a.txt");
    sandbox.lane_of("two", "echo two > a.txt");
    let _ = sandbox.proq(&["_overlaps", "--lane", "two"]).ok();
    assert_eq!(told(&sandbox), "two one\n");
}

#[test]
fn hooks_of_the_repository_run_only_as_they_were_approved() {
    let sandbox = Sandbox::new();
    let settings = |text: &str| {
        sandbox
            .write("proq.toml", &format!("[hook]\n\"lane.created\" = \"{text}\"\npre-merge = \"exit 9\"\n"));
    };
    settings("echo theirs >> $ROOT/told");
    sandbox.commit_all("settings");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    assert_eq!(told(&sandbox), "");
    assert!(log(&sandbox).contains("not run: git proq approve has not allowed it"), "{}", log(&sandbox));
    sandbox.commit_in_lane("a", "echo a > b.txt");
    insta::assert_snapshot!(sandbox.proq(&["merge", "a"]).shown(), @r#"
    --- stderr
    error: [ROOT]/repo/proq.toml wants to be asked first (pre-merge: exit 9), which you have not approved; nothing was changed
    hint: let it run: git proq approve
    hint: or leave it out: --no-hooks
    --- code 1
    "#);
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    assert!(sandbox.proq(&["merge", "a"]).fails(1).contains("pre-merge said no: exit code 9"));
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    assert_eq!(told(&sandbox), "theirs\n");
    settings("echo changed >> $ROOT/told");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "c"]).ok();
    assert_eq!(told(&sandbox), "theirs\n");
    // What was approved for one event is not for another.
    sandbox.write("proq.toml", "[hook]\n\"lane.removed\" = \"echo theirs >> $ROOT/told\"\n");
    let _ = sandbox.proq(&["discard", "c"]).ok();
    assert_eq!(told(&sandbox), "theirs\n");
    // The user's own needs no approval.
    sandbox.git(&["config", "proq.hook.lane.removed", "echo mine >> $ROOT/told"]);
    let _ = sandbox.proq(&["discard", "b"]).ok();
    assert_eq!(told(&sandbox), "theirs\nmine\n");
}

#[test]
fn a_hook_that_takes_too_long_ends_with_all_that_it_started() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.timeout", "5"]);
    sandbox.git(&["config", "proq.hook.lane.created", "sleep 600 & echo $! > $ROOT/pid; sleep 600"]);
    sandbox.git(&["config", "--add", "proq.hook.lane.created", "echo after >> $ROOT/told"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    assert_eq!(told(&sandbox), "after\n");
    assert!(log(&sandbox).contains("timed out after 5 s"), "{}", log(&sandbox));
    assert!(!sandbox.lives(std::fs::read_to_string(sandbox.root().join("pid")).unwrap().trim()));
}

#[test]
fn what_a_killed_process_did_not_hand_out_the_next_one_does() {
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
    assert_eq!(sandbox.hear("heard"), "1\n");
    wait_for_dispatcher(&sandbox);
    // Any command goes on with it. What was handed out when it was killed is handed out again.
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(sandbox.hear("heard"), "1\n");
    assert_eq!(told(&sandbox), "1\n1\n");
    // Where somebody holds its lock, an event starts nobody: the one who is to die is started here, and waited for.
    let lock = std::fs::File::open(sandbox.repo.join(".git/proq/locks/dispatch.lock")).unwrap();
    lock.lock().unwrap();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    drop(lock);
    let mut command = sandbox.proq_command(&sandbox.repo, &["_dispatch"]);
    command.env("PROQ_TEST_DIE_AT", "dispatch.before");
    assert_eq!(sandbox.output(command).code, 137);
    // So does the next event.
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "c"]).ok();
    let mut heard = sandbox.hear("heard");
    // One who listens may hear both.
    if heard == "2\n" {
        heard.push_str(&sandbox.hear("heard"));
    }
    assert_eq!(heard, "2\n3\n");
    assert_eq!(told(&sandbox), "1\n1\n2\n3\n");
    // Those who want no event note how far they are meanwhile: one may have died with a record half written.
    sandbox.sh("rm -f .git/proq/.dispatch.toml.*");
    sandbox.assert_healthy();
}

#[test]
fn an_event_whose_writer_was_killed_right_after_it_is_handed_out_once() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.task.updated", "echo $PROQ_EVENT_N $PROQ_LANE >> $ROOT/told"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    let mut command = sandbox.proq_command(&sandbox.lane("a"), &["task", "update", "--finding", "one"]);
    command.env("PROQ_LANE", "a").env("PROQ_TEST_DIE_AT", "events.written");
    assert_eq!(sandbox.output(command).code, 137);
    assert!(!sandbox.root().join("told").exists());
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(told(&sandbox), "2 a\n");
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(told(&sandbox), "2 a\n");
}

#[test]
fn what_an_agents_git_tells_of_is_handed_out_while_the_agent_is_at_work() {
    let sandbox = Sandbox::new();
    sandbox.pipe("heard");
    sandbox.pipe("go");
    sandbox.git(&["config", "proq.hook.lane.committed", "echo $PROQ_LANE > $ROOT/heard"]);
    sandbox.start_lane("x", "git commit -q --allow-empty -m one; read line < $ROOT/go");
    assert_eq!(sandbox.hear("heard"), "x\n");
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
}

#[test]
fn what_was_not_handed_out_in_a_run_is_when_it_ends() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.task.updated", "echo $PROQ_LANE >> $ROOT/told"]);
    let report = "PROQ_TEST_DIE_AT=events.written git-proq task update --finding one || echo 1 > one";
    sandbox.lane_with("x", report);
    assert_eq!(told(&sandbox), "x\n");
}

#[test]
fn an_event_that_only_a_later_program_knows_is_nobodys() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.lane.created", "echo $PROQ_EVENT_N >> $ROOT/told"]);
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "a"]);
    command.env("PROQ_TEST_DIE_AT", "dispatch.before");
    let _ = sandbox.output(command).ok();
    // It has held the lock, and died.
    let taken = sandbox.repo.join(".git/proq/locks/dispatch.lock");
    wait_until("the first dispatcher", || taken.exists());
    wait_for_dispatcher(&sandbox);
    sandbox.sh("echo '{\"n\":2,\"event\":\"moon.rose\"}' >> .git/proq/events.jsonl");
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(told(&sandbox), "1\n");
    // Where it is nobody's the one who hands out has an end.
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    assert_eq!(told(&sandbox), "1\n3\n");
}

#[test]
fn a_hook_that_uses_the_program_starts_no_hooks_in_its_turn() {
    let sandbox = Sandbox::new();
    sandbox.git(&[
        "config",
        "proq.hook.lane.created",
        "echo $PROQ_LANE >> $ROOT/told; git proq spawn --empty -n more-$PROQ_EVENT_N",
    ]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    assert_eq!(told(&sandbox), "a\n");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    assert_eq!(told(&sandbox), "a\nb\n");
    let all = sandbox.proq(&["events", "--json"]).json();
    let of_hooks: Vec<bool> =
        all["events"].as_array().unwrap().iter().map(|e| e["no_hooks"] == true).collect();
    assert_eq!(of_hooks, [false, true, false, true]);
}

#[test]
fn of_twenty_agents_at_once_every_event_is_handed_out_once_and_in_order() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.event.rotate", "1"]);
    for event in ["lane.created", "run.started", "run.ended"] {
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
    let numbers: Vec<u64> = told(&sandbox).lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(numbers, (1..=60).collect::<Vec<_>>());
}

#[test]
fn a_hook_for_what_never_happens_is_named() {
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
fn a_hook_that_is_set_while_an_agent_runs_is_told_of_its_end() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.start_lane("pay", "read line < $ROOT/go");
    sandbox.git(&["config", "proq.hook.run.ended", "echo $PROQ_LANE >> $ROOT/told"]);
    // It could be the agent's.
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "pay"]).ok();
    assert_eq!(told(&sandbox), "pay\n");
}

#[test]
fn a_hook_that_says_too_much_is_cut_and_its_log_is_put_aside() {
    let sandbox = Sandbox::new();
    let much =
        "i=0; while [ $i -lt 9000 ]; do echo 0123456789012345678901234567890123456789; i=$((i + 1)); done";
    sandbox.git(&["config", "proq.hook.lane.created", much]);
    sandbox.git(&["config", "--add", "proq.hook.lane.created", "echo end"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    all_told(&sandbox);
    assert!((64 * 1024..100 * 1024).contains(&log(&sandbox).len()), "{}", log(&sandbox).len());
    assert!(log(&sandbox).ends_with("    end\n"));
    sandbox.sh("head -c 1100000 /dev/zero > .git/proq/hooks.log");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    all_told(&sandbox);
    assert!(log(&sandbox).len() < 100 * 1024);
    assert_eq!(std::fs::metadata(sandbox.repo.join(".git/proq/hooks.log.1")).unwrap().len(), 1_100_000);
}

#[test]
fn a_hook_that_is_set_while_another_one_runs_is_run_at_what_comes_then() {
    let sandbox = Sandbox::new();
    sandbox.pipe("begun");
    sandbox.pipe("go");
    let root = sandbox.root();
    let line = format!("echo > '{0}/begun'; read line < '{0}/go'", root.display());
    sandbox.git(&["config", "proq.hook.run.ended", &line]);
    let _ = sandbox.proq(&["spawn", "-n", "a", "--wait", "--", "true"]).ok();
    let _ = sandbox.hear("begun");
    let note = |file: &str| format!("echo \"$PROQ_EVENT $PROQ_LANE\" >> '{}'", root.join(file).display());
    sandbox.git(&["config", "proq.hook.run.started", &note("started")]);
    sandbox.git(&["config", "proq.notify.sound", &note("sound")]);
    sandbox.git(&["config", "proq.hook.run.ended", "true"]);
    let _ = sandbox.proq(&["spawn", "-n", "b", "--wait", "--", "true"]).ok();
    sandbox.tell("go");
    all_told(&sandbox);
    let told = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_default();
    assert_eq!(told("started"), "run.started b\n");
    assert!(told("sound").contains("run.ended b\n"), "{}", told("sound"));
}

/// What an agent sets while it runs is not run for it.
#[test]
fn a_hook_that_is_set_while_an_agent_runs_needs_approval() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.hook.run.ended", "echo mine >> $ROOT/told"]);
    sandbox.pipe("go");
    let script = "git config --add proq.hook.run.ended 'echo theirs >> $ROOT/told'; git config proq.hook.lane.created 'echo theirs >> $ROOT/told'; echo > $ROOT/set; cat $ROOT/go";
    sandbox.pipe("set");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--", "sh", "-ec", script]).ok();
    let _ = sandbox.hear("set");
    // Not while it runs either.
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    sandbox.tell("go");
    sandbox.until("run.ended", "x", 1);
    assert_eq!(told(&sandbox), "mine\n");
    let text = log(&sandbox);
    assert_eq!(text.matches("not run: git proq approve has not allowed it").count(), 2, "{text}");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "z"]).ok();
    assert_eq!(told(&sandbox), "mine\n");
    let listed = sandbox.proq(&["approve", "--list"]).ok();
    assert_eq!(listed.matches("(not approved)").count(), 2, "{listed}");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let _ = sandbox.proq(&["spawn", "-q", "--wait", "-n", "w", "--", "true"]).ok();
    assert_eq!(told(&sandbox), "mine\ntheirs\nmine\ntheirs\n");
}

#[test]
fn a_hook_that_came_in_a_run_whose_supervisor_was_killed_needs_approval() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.pipe("set");
    let script =
        "git config proq.hook.lane.created 'echo theirs >> $ROOT/told'; echo > $ROOT/set; cat $ROOT/go";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--", "sh", "-ec", script]).ok();
    let _ = sandbox.hear("set");
    super::stop::kill_supervisor(&sandbox, "x");
    let _ = sandbox.proq(&["stop", "x"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    // This run takes away what is left of the other one's.
    let _ = sandbox.proq(&["spawn", "-q", "--wait", "-n", "w", "--", "true"]).ok();
    assert!(!sandbox.repo.join(".git/proq/fences/x-1").exists());
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "z"]).ok();
    assert!(!sandbox.root().join("told").exists());
    let listed = sandbox.proq(&["approve", "--list"]).ok();
    assert_eq!(listed.matches("(not approved)").count(), 1, "{listed}");
}
