//! Settings that change while agents run: an agent's change lets neither its own work land nor that of
//! others.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::waiting::wait_until;

use super::swarm::task_status;
use super::swarm_control::scheduler_is_running;

const BATCH: &str = "20260102-030405";

/// Plan of two tasks, one of which changes the settings.
const PLAN: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"evil\"\ntitle = \"Evil\"\n[[task]]\nid = \"other\"\ntitle = \"Other\"\n";

/// Commits a file that fails the check.
const BAD_COMMIT: &str = "echo bad > bad; git add bad; git commit -qm bad";

/// Commits a `proq.toml` with a check, and approves it.
fn commit_approved_check(sandbox: &Sandbox) {
    sandbox.write("proq.toml", "[verify]\ncommands = ['test ! -e bad']\n");
    sandbox.commit_all("checks");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
}

/// Returns whether nothing bad has landed on a branch.
fn is_free_of_bad_commits(sandbox: &Sandbox, branch: &str) -> bool {
    sandbox.git(&["ls-tree", "--name-only", branch, "bad"]).is_empty()
}

/// Promise: checks/settings-changed
#[test]
fn edited_settings_file_blocks_auto_merge() {
    let sandbox = Sandbox::new();
    commit_approved_check(&sandbox);
    let script = format!("{BAD_COMMIT}; : > $ROOT/repo/proq.toml");
    let _ = sandbox
        .proq(&["spawn", "-q", "--wait", "--auto-merge", "-n", "x", "--", "sh", "-ec", &script])
        .fails(1);
    assert!(is_free_of_bad_commits(&sandbox, "main"));
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(
        shown.contains(
            "while it ran, the agent or someone else changed file proq.toml; to merge it: git proq merge x"
        ),
        "{shown}"
    );
    // A landed change does not count as an edit.
    sandbox.git(&["checkout", "-q", "proq.toml"]);
    sandbox.lane_with_commit("more", "echo '# more' >> proq.toml");
    sandbox.pipe("go");
    let script = "cat $ROOT/go; echo y > y; git add y; git commit -qm y";
    let _ = sandbox.proq(&["spawn", "-q", "--auto-merge", "-n", "y", "--", "sh", "-ec", script]).ok();
    let _ = sandbox.proq(&["merge", "more"]).ok();
    sandbox.write_pipe("go");
    wait_until("its landing", || sandbox.repo.join("y").exists());
}

/// Promise: checks/settings-changed
#[test]
fn earlier_change_blocks_auto_merge_of_new_lane() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad"]);
    let inner = format!("git-proq spawn -q --wait --auto-merge -n inner -- sh -ec '{BAD_COMMIT}' || :");
    let script = format!("git config proq.verify.commands true; {inner}");
    let _ = sandbox.proq(&["spawn", "-q", "--wait", "-n", "outer", "--", "sh", "-ec", &script]);
    assert!(is_free_of_bad_commits(&sandbox, "main"));
    let shown = sandbox.proq(&["show", "inner"]).ok();
    let reason = "while lane 'outer' ran, the agent or someone else changed setting proq.verify.commands; to merge it: git proq merge inner";
    assert!(shown.contains(reason), "{shown}");
}

/// Promise: checks/settings-changed
#[test]
fn killed_supervisor_does_not_hide_settings_change() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad"]);
    let inner = format!("git-proq spawn -q --auto-merge -n inner -- sh -ec 'cat $ROOT/go; {BAD_COMMIT}'");
    sandbox.pipe("go");
    sandbox.pipe("ended");
    let script = format!("cat $ROOT/ended; git config proq.verify.commands true; {inner}; : > $ROOT/spawned");
    let script = format!("echo > $ROOT/up; {script}");
    sandbox.pipe("up");
    sandbox.start_lane("outer", &script);
    let _ = sandbox.read_pipe("up");
    proq_test_kit::runs::kill_supervisor(&sandbox, "outer");
    sandbox.write_pipe("ended");
    wait_until("the other lane", || sandbox.root().join("spawned").exists());
    sandbox.write_pipe("go");
    wait_until("its end", || sandbox.row("inner")["state"] == "done");
    let reason = "since lane 'outer' began, the agent or someone else changed setting proq.verify.commands; to merge it: git proq merge inner";
    wait_until("what holds it", || sandbox.proq(&["show", "inner"]).ok().contains(reason));
    assert!(is_free_of_bad_commits(&sandbox, "main"));
    // The change holds nothing that starts later.
    let _ = sandbox
        .proq(&["spawn", "-q", "--wait", "--auto-merge", "-n", "y", "--", "sh", "-ec", &add_file_script("y")])
        .ok();
    assert!(sandbox.repo.join("y").exists());
}

/// Returns a script that commits a file.
fn add_file_script(name: &str) -> String {
    format!("echo {name} > {name}; git add {name}; git commit -qm {name}")
}

/// Promise: checks/settings-changed
#[test]
fn unrelated_user_changes_block_no_landing() {
    let sandbox = Sandbox::new();
    commit_approved_check(&sandbox);
    for (name, before, during_run) in [
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
        let script = format!("cat $ROOT/{name}; {}", add_file_script(&format!("{name}.txt")));
        let _ = sandbox.proq(&["spawn", "-q", "--auto-merge", "-n", name, "--", "sh", "-ec", &script]).ok();
        sandbox.sh(during_run);
        sandbox.write_pipe(name);
        wait_until("its landing", || sandbox.repo.join(format!("{name}.txt")).exists());
    }
}

/// Promise: checks/settings-changed
#[test]
fn removed_uncommitted_settings_file_blocks_auto_merge() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[verify]\ncommands = ['test ! -e bad']\n");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let script = format!("{BAD_COMMIT}; rm $ROOT/repo/proq.toml");
    let _ = sandbox
        .proq(&["spawn", "-q", "--wait", "--auto-merge", "-n", "x", "--", "sh", "-ec", &script])
        .fails(1);
    assert!(is_free_of_bad_commits(&sandbox, "main"));
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("the agent or someone else changed file proq.toml"), "{shown}");
}

/// Promise: checks/settings-changed
#[test]
fn filters_and_moved_head_hide_no_settings_change() {
    let filter = "echo 'proq.toml filter=x' >> .git/info/attributes; git config filter.x.clean false; git config filter.x.required true; : > proq.toml";
    for (before, harm) in [
        ("true", filter),
        (
            "cp proq.toml strict; echo '[verify]' > proq.toml; git commit -qm less proq.toml; mv strict proq.toml",
            "git checkout -q --detach",
        ),
    ] {
        let sandbox = Sandbox::new();
        commit_approved_check(&sandbox);
        sandbox.sh(before);
        let script = format!("{BAD_COMMIT}; cd $ROOT/repo; {harm}");
        let spawned = ["spawn", "-q", "--wait", "--auto-merge", "-n", "x", "--", "sh", "-ec", &script];
        let _ = sandbox.proq(&spawned).fails(1);
        assert!(is_free_of_bad_commits(&sandbox, "main"), "{harm}");
        let shown = sandbox.proq(&["show", "x"]).ok();
        assert!(shown.contains("the agent or someone else changed file proq.toml"), "{shown}");
    }
}

/// Promise: checks/settings-changed
#[test]
fn batch_lands_by_checks_set_at_its_start() {
    let sandbox = repo_with_plan(PLAN);
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad"]);
    install_worker(
        &sandbox,
        &format!("[ $name != evil ] || {{ {BAD_COMMIT}; git config proq.verify.commands true; }}"),
    );
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).fails(4);
    assert_eq!(
        ["evil", "other"].map(|name| task_status(&sandbox, name)["state"].clone()),
        ["check failed", "landed"]
    );
    // Checks set when the batch is resumed apply from then on.
    let _ = sandbox.proq(&["resume", BATCH]).ok();
    assert_eq!(task_status(&sandbox, "evil")["state"], "landed");
}

/// Promise: checks/settings-changed
#[test]
fn edited_settings_file_holds_batch_landings() {
    assert_holds_landings("true", ": > $ROOT/repo/proq.toml", "git checkout -q proq.toml");
    assert_holds_landings(
        "echo '[verify]' > proq.toml; git commit -qam less; git show HEAD~:proq.toml > proq.toml",
        "(cd $ROOT/repo; git checkout -q proq.toml)",
        "git show HEAD~:proq.toml > proq.toml",
    );
}

/// Runs a batch `from` some state of the settings file that an agent changes with `harm`, and asserts that
/// landings are held until `restore` has run.
fn assert_holds_landings(from: &str, harm: &str, restore: &str) {
    let sandbox = repo_with_plan(PLAN);
    commit_approved_check(&sandbox);
    sandbox.sh(from);
    install_worker(&sandbox, &format!("[ $name != evil ] || {{ {BAD_COMMIT}; {harm}; }}"));
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "--yes", "-q", "--ignore-dirty"]).ok();
    let log = sandbox.repo.join(format!(".git/proq/batches/{BATCH}/log.jsonl"));
    let reason = "proq.toml in the main checkout has changed since the batch started: restore it, or use the new one: git proq batch abort, then git proq batch resume";
    wait_until("a landing that is held up", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains(reason))
    });
    assert!(is_free_of_bad_commits(&sandbox, &format!("proq/batch-{BATCH}")));
    sandbox.sh(restore);
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_eq!(
        ["evil", "other"].map(|name| task_status(&sandbox, name)["state"].clone()),
        ["check failed", "landed"]
    );
}
