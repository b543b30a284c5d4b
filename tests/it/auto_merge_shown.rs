//! Owns the tests of what is shown of lanes that were to land by themselves: only what is so, and commands that help.

use super::support::Sandbox;

/// Makes a lane that is to land by itself, its agent a shell script, and returns what `show` has to say of that.
fn by_itself(sandbox: &Sandbox, name: &str, script: &str) -> String {
    let _ = sandbox.proq(&["spawn", "--auto-merge", "--wait", "-n", name, "--", "sh", "-ec", script]);
    shown(sandbox, name)
}

fn shown(sandbox: &Sandbox, name: &str) -> String {
    let all = sandbox.proq(&["show", name]).ok();
    let line = all.lines().find_map(|line| line.strip_prefix("by itself"));
    line.unwrap_or_default().trim().to_owned()
}

#[test]
fn a_lane_that_will_not_land_by_itself_says_why_and_what_helps() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad"]);
    let failed = by_itself(&sandbox, "failed", "echo 1 > one; git add one; git commit -qm one; exit 3");
    assert_eq!(failed, "no: its run failed; git proq merge failed --force lands it");
    assert_eq!(by_itself(&sandbox, "nothing", "true"), "no: it changed nothing");
    let bad = by_itself(&sandbox, "bad", "echo 1 > bad");
    assert_eq!(bad, "no: a check failed with it; git proq merge bad tries again");
    let script = "echo lane > a.txt; unset GIT_CONFIG_PARAMETERS; cd \"$ROOT/repo\"; echo main > a.txt; git commit -qam main";
    let clash = by_itself(&sandbox, "clash", script);
    assert_eq!(clash, "no: it conflicts; git proq resolve clash shows what helps");
    sandbox.pipe("up");
    let script = "echo 1 > two; echo > $ROOT/up; sleep 600 & wait";
    let _ = sandbox.proq(&["spawn", "--auto-merge", "-n", "stopped", "--", "sh", "-ec", script]).ok();
    sandbox.hear("up");
    assert_eq!(shown(&sandbox, "stopped"), "lands on main when its run is done");
    let _ = sandbox.proq(&["stop", "stopped"]).ok();
    assert_eq!(
        shown(&sandbox, "stopped"),
        "no: its run was stopped; git proq merge stopped --force lands it"
    );
    let _ = sandbox.proq(&["discard", "nothing"]).ok();
    assert_eq!(shown(&sandbox, "nothing@1"), "no: it was discarded");
    // The commands do what is said of them.
    let _ = sandbox.proq(&["resolve", "clash"]).ok();
    let out = sandbox.proq(&["merge", "failed", "--force"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    sandbox.git(&["config", "proq.verify.commands", "true"]);
    let out = sandbox.proq(&["merge", "bad"]);
    assert_eq!(out.code, 0, "{}", out.shown());
}

#[cfg(debug_assertions)]
#[test]
fn after_a_kill_the_command_that_lands_it_is_one_that_people_type() {
    // Before it has its turn, and before the base has moved.
    for at in ["ticket.drafted", "transition.locked"] {
        let sandbox = Sandbox::new();
        let mut command = sandbox.proq_command(
            &sandbox.repo,
            &["spawn", "--auto-merge", "--wait", "-n", "x", "--", "sh", "-ec", "echo 1 > one"],
        );
        command.env("PROQ_TEST_DIE_AT", at);
        let out = sandbox.output(command);
        assert_eq!(out.code, 1, "{at}: {}", out.shown());
        assert!(!out.stderr.contains("--auto"), "{at}: {}", out.shown());
        let cut_short = out.stderr.contains("`git proq merge x` was cut short");
        assert_eq!(cut_short, at == "transition.locked", "{}", out.shown());
        assert_eq!(
            shown(&sandbox, "x"),
            "its landing was cut short; tried again after the next landing on main; git proq merge x lands it now"
        );
        let out = sandbox.proq(&["merge", "x"]);
        assert!(out.code == 0 && out.stdout.contains("landed x on main"), "{}", out.shown());
    }
}

#[test]
fn a_lane_that_is_landing_says_so() {
    let sandbox = Sandbox::new();
    sandbox.pipe("here");
    sandbox.pipe("go");
    let check = "timeout 60 sh -c 'echo here > $ROOT/here'; timeout 60 cat $ROOT/go";
    sandbox.git(&["config", "proq.verify.commands", check]);
    let args = ["spawn", "--auto-merge", "-n", "x", "--", "sh", "-ec", "echo 1 > one"];
    let _ = sandbox.proq(&args).ok();
    sandbox.hear("here");
    assert_eq!(shown(&sandbox, "x"), "is landing on main: git proq queue");
    sandbox.tell("go");
    sandbox.until("merge.landed", "x", 1);
}
