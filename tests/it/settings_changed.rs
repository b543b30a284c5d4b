//! Owns the tests of settings that change while agents run: what an agent changes does not let its own work land, nor that of others.

use super::support::Sandbox;
use super::support::patience::wait_until;
use super::swarm::{planned, task, worker};
use super::swarm_control::is_held;

const BATCH: &str = "20260102-030405";

/// Two tasks, of which one does harm.
const PLAN: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"evil\"\ntitle = \"Evil\"\n[[task]]\nid = \"other\"\ntitle = \"Other\"\n";

/// Commits a file that no check lets through.
const BAD: &str = "echo bad > bad; git add bad; git commit -qm bad";

/// A repository whose own `proq.toml` has a check, which is approved.
fn checked(sandbox: &Sandbox) {
    sandbox.write("proq.toml", "[verify]\ncommands = ['test ! -e bad']\n");
    sandbox.commit_all("checks");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
}

/// Has nothing bad landed on a branch?
fn is_good(sandbox: &Sandbox, branch: &str) -> bool {
    sandbox.git(&["ls-tree", "--name-only", branch, "bad"]).is_empty()
}

#[test]
fn an_edited_settings_file_lets_no_lane_land_by_itself() {
    let sandbox = Sandbox::new();
    checked(&sandbox);
    let script = format!("{BAD}; : > $ROOT/repo/proq.toml");
    let _ = sandbox
        .proq(&["spawn", "-q", "--wait", "--auto-merge", "-n", "x", "--", "sh", "-ec", &script])
        .fails(1);
    assert!(is_good(&sandbox, "main"));
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(
        shown.contains("while it ran, it or somebody else changed file proq.toml; git proq merge x lands it"),
        "{shown}"
    );
    // What lands does not count as an edit.
    sandbox.git(&["checkout", "-q", "proq.toml"]);
    sandbox.lane_of("more", "echo '# more' >> proq.toml");
    sandbox.pipe("go");
    let script = "cat $ROOT/go; echo y > y; git add y; git commit -qm y";
    let _ = sandbox.proq(&["spawn", "-q", "--auto-merge", "-n", "y", "--", "sh", "-ec", script]).ok();
    let _ = sandbox.proq(&["merge", "more"]).ok();
    sandbox.tell("go");
    wait_until("its landing", || sandbox.repo.join("y").exists());
}

#[test]
fn a_lane_that_begins_after_a_change_does_not_land_by_that() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad"]);
    let inner = format!("git-proq spawn -q --wait --auto-merge -n inner -- sh -ec '{BAD}' || :");
    let script = format!("git config proq.verify.commands true; {inner}");
    let _ = sandbox.proq(&["spawn", "-q", "--wait", "-n", "outer", "--", "sh", "-ec", &script]);
    assert!(is_good(&sandbox, "main"));
    let shown = sandbox.proq(&["show", "inner"]).ok();
    let why = "while lane 'outer' ran, it or somebody else changed setting proq.verify.commands; git proq merge inner lands it";
    assert!(shown.contains(why), "{shown}");
}

#[test]
fn a_batch_lands_by_the_checks_that_were_set_when_it_began() {
    let sandbox = planned(PLAN);
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad"]);
    worker(&sandbox, &format!("[ $name != evil ] || {{ {BAD}; git config proq.verify.commands true; }}"));
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).fails(4);
    assert_eq!(
        ["evil", "other"].map(|name| task(&sandbox, name)["state"].clone()),
        ["check failed", "landed"]
    );
    // Those that are set when it is resumed count from then on.
    let _ = sandbox.proq(&["resume", BATCH]).ok();
    assert_eq!(task(&sandbox, "evil")["state"], "landed");
}

#[test]
fn an_edited_settings_file_holds_the_landings_of_a_batch_up() {
    let sandbox = planned(PLAN);
    checked(&sandbox);
    worker(&sandbox, &format!("[ $name != evil ] || {{ {BAD}; : > $ROOT/repo/proq.toml; }}"));
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "--yes", "-q"]).ok();
    let log = sandbox.repo.join(format!(".git/proq/batches/{BATCH}/log.jsonl"));
    let why = "proq.toml in the main checkout was edited while the batch ran; commit that or take it back";
    wait_until("a landing that is held up", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains(why))
    });
    assert!(is_good(&sandbox, &format!("proq/batch-{BATCH}")));
    sandbox.git(&["checkout", "-q", "proq.toml"]);
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(
        ["evil", "other"].map(|name| task(&sandbox, name)["state"].clone()),
        ["check failed", "landed"]
    );
}
