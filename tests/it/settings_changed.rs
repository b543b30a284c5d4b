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
fn an_agent_that_ends_its_supervisor_does_not_get_away_with_a_change() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad"]);
    let inner = format!("git-proq spawn -q --auto-merge -n inner -- sh -ec 'cat $ROOT/go; {BAD}'");
    sandbox.pipe("go");
    sandbox.pipe("ended");
    let script = format!("cat $ROOT/ended; git config proq.verify.commands true; {inner}; : > $ROOT/spawned");
    let script = format!("echo > $ROOT/up; {script}");
    sandbox.pipe("up");
    sandbox.start_lane("outer", &script);
    let _ = sandbox.hear("up");
    super::stop::kill_supervisor(&sandbox, "outer");
    sandbox.tell("ended");
    wait_until("the other lane", || sandbox.root().join("spawned").exists());
    sandbox.tell("go");
    wait_until("its end", || sandbox.row("inner")["state"] == "done");
    let why = "since lane 'outer' began, it or somebody else changed setting proq.verify.commands; git proq merge inner lands it";
    wait_until("what holds it", || sandbox.proq(&["show", "inner"]).ok().contains(why));
    assert!(is_good(&sandbox, "main"));
    // It holds nothing that begins later.
    let _ = sandbox
        .proq(&["spawn", "-q", "--wait", "--auto-merge", "-n", "y", "--", "sh", "-ec", &add("y")])
        .ok();
    assert!(sandbox.repo.join("y").exists());
}

/// Commits a file.
fn add(name: &str) -> String {
    format!("echo {name} > {name}; git add {name}; git commit -qm {name}")
}

#[test]
fn what_a_user_commits_or_sets_for_other_things_holds_no_landing() {
    let sandbox = Sandbox::new();
    checked(&sandbox);
    for (name, before, meanwhile) in [
        ("x", "echo '# more' >> proq.toml", "git commit -qam more"),
        ("y", "true", "git config proq.trash.keep 9"),
        (
            "z",
            "git config core.autocrlf true; sed -i 's/$/\\r/' proq.toml",
            "echo '# z' >> proq.toml; git commit -qam z",
        ),
    ] {
        sandbox.sh(before);
        sandbox.pipe(name);
        let script = format!("cat $ROOT/{name}; {}", add(&format!("{name}.txt")));
        let _ = sandbox.proq(&["spawn", "-q", "--auto-merge", "-n", name, "--", "sh", "-ec", &script]).ok();
        sandbox.sh(meanwhile);
        sandbox.tell(name);
        wait_until("its landing", || sandbox.repo.join(format!("{name}.txt")).exists());
    }
}

#[test]
fn a_settings_file_that_no_commit_has_is_not_taken_away_to_land() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[verify]\ncommands = ['test ! -e bad']\n");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let script = format!("{BAD}; rm $ROOT/repo/proq.toml");
    let _ = sandbox
        .proq(&["spawn", "-q", "--wait", "--auto-merge", "-n", "x", "--", "sh", "-ec", &script])
        .fails(1);
    assert!(is_good(&sandbox, "main"));
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("it or somebody else changed file proq.toml"), "{shown}");
}

#[test]
fn no_filter_and_no_other_head_hides_what_the_settings_file_became() {
    let filter = "echo 'proq.toml filter=x' >> .git/info/attributes; git config filter.x.clean false; git config filter.x.required true; : > proq.toml";
    for (before, harm) in [
        ("true", filter),
        (
            "cp proq.toml strict; echo '[verify]' > proq.toml; git commit -qm less proq.toml; mv strict proq.toml",
            "git checkout -q --detach",
        ),
    ] {
        let sandbox = Sandbox::new();
        checked(&sandbox);
        sandbox.sh(before);
        let script = format!("{BAD}; cd $ROOT/repo; {harm}");
        let spawned = ["spawn", "-q", "--wait", "--auto-merge", "-n", "x", "--", "sh", "-ec", &script];
        let _ = sandbox.proq(&spawned).fails(1);
        assert!(is_good(&sandbox, "main"), "{harm}");
        let shown = sandbox.proq(&["show", "x"]).ok();
        assert!(shown.contains("it or somebody else changed file proq.toml"), "{shown}");
    }
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
    held_up("true", ": > $ROOT/repo/proq.toml", "git checkout -q proq.toml");
    held_up(
        "echo '[verify]' > proq.toml; git commit -qam less; git show HEAD~:proq.toml > proq.toml",
        "(cd $ROOT/repo; git checkout -q proq.toml)",
        "git show HEAD~:proq.toml > proq.toml",
    );
}

/// Runs a batch `from` some state of the settings file, of which an agent makes another, until somebody makes it `good` again.
fn held_up(from: &str, harm: &str, good: &str) {
    let sandbox = planned(PLAN);
    checked(&sandbox);
    sandbox.sh(from);
    worker(&sandbox, &format!("[ $name != evil ] || {{ {BAD}; {harm}; }}"));
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "--yes", "-q", "--ignore-dirty"]).ok();
    let log = sandbox.repo.join(format!(".git/proq/batches/{BATCH}/log.jsonl"));
    let why = "proq.toml in the main checkout is not what it was when the batch began: commit it as it was, put it back, or have it count by git proq abort and git proq resume";
    wait_until("a landing that is held up", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains(why))
    });
    assert!(is_good(&sandbox, &format!("proq/batch-{BATCH}")));
    sandbox.sh(good);
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(
        ["evil", "other"].map(|name| task(&sandbox, name)["state"].clone()),
        ["check failed", "landed"]
    );
}
