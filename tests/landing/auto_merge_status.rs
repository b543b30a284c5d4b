//! Tests of the auto-merge status of lanes: accurate reasons, and commands that work.

use proq_test_kit::Sandbox;

/// Runs `script` in a new auto-merge lane and returns the auto-merge line of `show`.
fn spawn_auto_merge(sandbox: &Sandbox, name: &str, script: &str) -> String {
    let _ = sandbox.proq(&["spawn", "--auto-merge", "--wait", "-n", name, "--", "sh", "-ec", script]);
    auto_merge_line(sandbox, name)
}

fn auto_merge_line(sandbox: &Sandbox, name: &str) -> String {
    let all = sandbox.proq(&["show", name]).ok();
    let line = all.lines().find_map(|line| line.strip_prefix("auto-merge"));
    line.unwrap_or_default().trim().to_owned()
}

#[test]
fn show_gives_reason_and_command_for_unlanded_lane() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad"]);
    let failed =
        spawn_auto_merge(&sandbox, "failed", "echo 1 > one; git add one; git commit -qm one; exit 3");
    assert_eq!(failed, "no: its run failed; to merge it anyway: git proq merge --force failed");
    assert_eq!(spawn_auto_merge(&sandbox, "nothing", "true"), "no: it changed nothing");
    let bad = spawn_auto_merge(&sandbox, "bad", "echo 1 > bad");
    assert_eq!(bad, "no: its check failed; retry: git proq merge bad");
    let script = "echo lane > a.txt; unset GIT_CONFIG_PARAMETERS; cd \"$ROOT/repo\"; echo main > a.txt; git commit -qam main";
    let clash = spawn_auto_merge(&sandbox, "clash", script);
    assert_eq!(clash, "no: it conflicts; resolve it: git proq resolve clash");
    sandbox.pipe("up");
    let script = "echo 1 > two; echo > $ROOT/up; sleep 600 & wait";
    let _ = sandbox.proq(&["spawn", "--auto-merge", "-n", "stopped", "--", "sh", "-ec", script]).ok();
    sandbox.read_pipe("up");
    assert_eq!(auto_merge_line(&sandbox, "stopped"), "merged into main when its run is done");
    let _ = sandbox.proq(&["stop", "stopped"]).ok();
    assert_eq!(
        auto_merge_line(&sandbox, "stopped"),
        "no: its run was stopped; to merge it anyway: git proq merge --force stopped"
    );
    let _ = sandbox.proq(&["discard", "nothing"]).ok();
    assert_eq!(auto_merge_line(&sandbox, "nothing@1"), "no: it was discarded");
    // The suggested commands work.
    let _ = sandbox.proq(&["resolve", "clash"]).ok();
    let out = sandbox.proq(&["merge", "failed", "--force"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    sandbox.git(&["config", "proq.verify.commands", "true"]);
    let out = sandbox.proq(&["merge", "bad"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
}

#[cfg(debug_assertions)]
#[test]
fn killed_auto_merge_names_plain_merge_command() {
    // Killed before the landing has its turn in the queue, and before the base has moved.
    for at in ["ticket.drafted", "transition.locked"] {
        let sandbox = Sandbox::new();
        let mut command = sandbox.proq_command(
            &sandbox.repo,
            &["spawn", "--auto-merge", "--wait", "-n", "x", "--", "sh", "-ec", "echo 1 > one"],
        );
        command.env("PROQ_TEST_DIE_AT", at);
        let out = sandbox.output(command);
        assert_eq!(out.code, 1, "{at}: {}", out.to_text());
        assert!(!out.stderr.contains("--auto"), "{at}: {}", out.to_text());
        let cut_short = out.stderr.contains("`git proq merge x` was interrupted");
        assert_eq!(cut_short, at == "transition.locked", "{}", out.to_text());
        assert_eq!(
            auto_merge_line(&sandbox, "x"),
            "its merge was interrupted; tried again after the next landing on main; to merge it now: git proq merge x"
        );
        let out = sandbox.proq(&["merge", "x"]);
        assert!(out.code == 0 && out.stdout.contains("landed x on main"), "{}", out.to_text());
    }
}

#[test]
fn show_reports_landing_in_progress() {
    let sandbox = Sandbox::new();
    sandbox.pipe("here");
    sandbox.pipe("go");
    let check = "timeout 60 sh -c 'echo here > $ROOT/here'; timeout 60 cat $ROOT/go";
    sandbox.git(&["config", "proq.verify.commands", check]);
    let args = ["spawn", "--auto-merge", "-n", "x", "--", "sh", "-ec", "echo 1 > one"];
    let _ = sandbox.proq(&args).ok();
    sandbox.read_pipe("here");
    assert_eq!(auto_merge_line(&sandbox, "x"), "being merged into main: git proq queue");
    sandbox.write_pipe("go");
    sandbox.wait_for_events("merge.landed", "x", 1);
}
