//! Tests of automatic snapshots: files that an agent deletes outside its lane can be restored.

use proq_test_kit::waiting::{wait_for, wait_until, wait_until_unlocked};
use proq_test_kit::{Sandbox, WorktreeState};
use serde_json::Value;

/// Creates a repository with uncommitted changes of every kind in the main checkout and in an idle lane.
fn with_changes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "for f in staged edited gone; do seq 9 > $f; done; printf '.env\\ncache/\\nlarge\\n' > .gitignore",
    );
    sandbox.commit_all("files");
    sandbox.lane_with_commit("idle", "echo work > work");
    sandbox.sh_in(&sandbox.lane_path("idle"), "echo mine >> edited; echo mine > new; echo secret > .env");
    sandbox.sh("echo mine >> edited; echo mine >> staged; git add staged; rm gone; echo mine > new; mkdir -p d/e cache/in");
    sandbox
        .sh("echo mine > d/e/deep; echo secret > .env; echo made > cache/in/made; ln -s made cache/in/link");
    sandbox
}

/// Starts an agent in a lane, with automatic snapshots every second.
fn spawn(sandbox: &Sandbox, lane: &str, script: &str) {
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "-q", "-n", lane, "--", "sh", "-c", script]);
    command.env("PROQ_SNAPSHOT_INTERVAL", "1");
    let _ = sandbox.output(command).ok();
}

/// Starts an agent that runs `script` when `run_agent_script` is called.
fn start_agent(sandbox: &Sandbox, script: &str) {
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox.pipe("end");
    let script = format!(
        "echo > \"$ROOT/up\"; read -r _ < \"$ROOT/go\"; {script}; echo > \"$ROOT/up\"; read -r _ < \"$ROOT/end\""
    );
    spawn(sandbox, "agent", &script);
    let _ = sandbox.read_pipe("up");
}

/// Lets the agent run its script and waits until the script has finished.
fn run_agent_script(sandbox: &Sandbox) {
    sandbox.write_pipe("go");
    let _ = sandbox.read_pipe("up");
}

/// Lets the agent exit and waits until no process takes snapshots any more.
fn finish_agent(sandbox: &Sandbox) {
    sandbox.write_pipe("end");
    let _ = sandbox.proq(&["wait", "agent"]);
    wait_until_unlocked(&sandbox.repo.join(".git/proq/locks/supervisor/snapshots.lock"));
}

/// Waits until each listed worktree has an automatic snapshot with that number of files.
fn wait_for_snapshots(sandbox: &Sandbox, expected: &[(&str, u64)]) {
    for (worktree, files) in expected {
        wait_until(&format!("a snapshot of {worktree}"), || {
            let list = sandbox.proq(&["snap", "list", "--json"]).json();
            let rows = list["snapshots"].as_array().unwrap();
            rows.iter().any(|row| {
                row["state"] == "automatic"
                    && row["files"] == *files
                    && row["why"].as_str().unwrap().contains(worktree)
            })
        });
    }
}

/// Returns the JSON output of a command, with ids unmasked.
fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let out = sandbox.proq_command(&sandbox.repo, args).output().unwrap();
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Waits for `times` events of lost changes and returns the restore commands that they name.
fn restore_commands(sandbox: &Sandbox, times: usize) -> Vec<String> {
    let all = wait_for("events of lost changes", || {
        let events = json(sandbox, &["events", "--json"]);
        let lost =
            events["events"].as_array().unwrap().iter().filter(|event| event["event"] == "changes.lost");
        Some(lost.cloned().collect::<Vec<_>>()).filter(|all| all.len() >= times)
    });
    let command = |event: &Value| {
        let message = event["message"].as_str().unwrap().to_owned();
        message.split_once("restore them: git proq ").unwrap().1.to_owned()
    };
    all.iter().map(command).collect()
}

/// Promise: worktree/auto-snapshots
#[test]
fn event_command_restores_files_deleted_elsewhere() {
    let sandbox = with_changes();
    let (main, lane) = (
        WorktreeState::capture(&sandbox, &sandbox.repo),
        WorktreeState::capture(&sandbox, &sandbox.lane_path("idle")),
    );
    let (env, made) = (sandbox.read(".env"), sandbox.read("cache/in/made"));
    start_agent(
        &sandbox,
        "cd ../..; git reset -q --hard; git clean -qfdx -e .proq-worktrees; git worktree remove --force .proq-worktrees/idle",
    );
    wait_for_snapshots(&sandbox, &[("main checkout", 5), ("lane 'idle'", 2)]);
    run_agent_script(&sandbox);
    assert!(!sandbox.repo.join("new").exists() && !sandbox.lane_path("idle").exists());
    let commands = restore_commands(&sandbox, 2);
    for command in &commands {
        let _ = sandbox.proq(&command.split(' ').collect::<Vec<_>>()).ok();
    }
    assert_eq!(WorktreeState::capture(&sandbox, &sandbox.repo), main);
    assert_eq!(WorktreeState::capture(&sandbox, &sandbox.lane_path("idle")), lane);
    assert_eq!((sandbox.read(".env"), sandbox.read("cache/in/made")), (env, made));
    assert_eq!(std::fs::read_link(sandbox.repo.join("cache/in/link")).unwrap().to_str(), Some("made"));
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("idle").join(".env")).unwrap(), "secret\n");
    finish_agent(&sandbox);
    assert_eq!(sandbox.events("changes.lost").len(), 2, "what git-proq brought back is not lost");
}

/// Promise: worktree/auto-snapshots
#[test]
fn restores_files_deleted_right_after_start() {
    let sandbox = with_changes();
    let (main, lane) = (
        WorktreeState::capture(&sandbox, &sandbox.repo),
        WorktreeState::capture(&sandbox, &sandbox.lane_path("idle")),
    );
    let script = "cd ../..; git worktree remove --force .proq-worktrees/idle; git reset -q --hard; git clean -qfdx -e .proq-worktrees";
    spawn(&sandbox, "agent", script);
    let _ = sandbox.proq(&["wait", "agent"]);
    assert!(!sandbox.repo.join("new").exists() && !sandbox.lane_path("idle").exists());
    for command in &restore_commands(&sandbox, 2) {
        let _ = sandbox.proq(&command.split(' ').collect::<Vec<_>>()).ok();
    }
    assert_eq!(WorktreeState::capture(&sandbox, &sandbox.repo), main);
    assert_eq!(WorktreeState::capture(&sandbox, &sandbox.lane_path("idle")), lane);
    wait_until_unlocked(&sandbox.repo.join(".git/proq/locks/supervisor/snapshots.lock"));
}

/// Promise: worktree/auto-snapshots
#[test]
fn restores_files_after_reset_or_clean_elsewhere() {
    for (script, worktree, files) in [
        ("git -C ../idle clean -qfdx", "lane 'idle'", 2),
        ("git -C ../idle reset -q --hard; git -C ../idle clean -qfdx", "lane 'idle'", 2),
        ("git -C ../.. checkout -qf", "main checkout", 5),
        ("git -C ../.. checkout -qf HEAD -- .", "main checkout", 5),
    ] {
        let sandbox = with_changes();
        let dir = if worktree.starts_with("lane") { sandbox.lane_path("idle") } else { sandbox.repo.clone() };
        let secret = |dir: &std::path::Path| std::fs::read_to_string(dir.join(".env")).ok();
        let before = (WorktreeState::capture(&sandbox, &dir), secret(&dir));
        start_agent(&sandbox, script);
        wait_for_snapshots(&sandbox, &[(worktree, files)]);
        run_agent_script(&sandbox);
        assert_ne!(WorktreeState::capture(&sandbox, &dir), before.0, "{script}");
        let commands = restore_commands(&sandbox, 1);
        let _ = sandbox.proq(&commands[0].split(' ').collect::<Vec<_>>()).ok();
        assert_eq!((WorktreeState::capture(&sandbox, &dir), secret(&dir)), before, "{script}");
        finish_agent(&sandbox);
    }
}

/// Promise: worktree/running-lane-copies
#[test]
fn restores_deleted_worktree_of_running_lane() {
    for (writes, removes) in [
        (":", "git worktree remove --force ../busy"),
        // This agent writes to its files all the time.
        ("while ! test -e $ROOT/over; do echo x >> .log; sleep 0.1; done &", "rm -rf ../busy"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.sh("seq 9 > edited; printf '.env\n.log\n' > .gitignore");
        sandbox.commit_all("files");
        sandbox.pipe("at-work");
        sandbox.pipe("done");
        spawn(
            &sandbox,
            "busy",
            &format!(
                "echo mine >> edited; echo mine > new; echo secret > .env; {writes} echo > $ROOT/at-work; read -r _ < $ROOT/done"
            ),
        );
        let _ = sandbox.read_pipe("at-work");
        let image = || {
            let mut image = WorktreeState::capture(&sandbox, &sandbox.lane_path("busy"));
            // It depends on the moment of the copy whether the log is in it.
            image.files.remove(".log");
            image.status.retain(|line| line != "! .log");
            image
        };
        let lane = image();
        start_agent(&sandbox, removes);
        wait_for_snapshots(&sandbox, &[("lane 'busy'", 2)]);
        run_agent_script(&sandbox);
        assert!(!sandbox.lane_path("busy").exists(), "{removes}");
        let commands = restore_commands(&sandbox, 1);
        sandbox.sh("touch $ROOT/over");
        sandbox.write_pipe("done");
        let _ = sandbox.proq(&["wait", "busy"]);
        let _ = sandbox.proq(&commands[0].split(' ').collect::<Vec<_>>()).ok();
        assert_eq!(image(), lane, "{removes}");
        finish_agent(&sandbox);
    }
}

/// Promise: worktree/running-lane-copies
#[test]
fn committed_changes_are_not_lost_with_the_folder() {
    let sandbox = Sandbox::new();
    for pipe in ["at-work", "commit", "done"] {
        sandbox.pipe(pipe);
    }
    spawn(
        &sandbox,
        "busy",
        "echo mine > new; echo > $ROOT/at-work; read -r _ < $ROOT/commit; git add new; git commit -qm new; echo > $ROOT/at-work; read -r _ < $ROOT/done",
    );
    let _ = sandbox.read_pipe("at-work");
    start_agent(&sandbox, "git worktree remove --force ../busy");
    wait_for_snapshots(&sandbox, &[("lane 'busy'", 1)]);
    sandbox.write_pipe("commit");
    let _ = sandbox.read_pipe("at-work");
    run_agent_script(&sandbox);
    wait_until("the event", || sandbox.events("repository.changed").len() == 1);
    sandbox.write_pipe("done");
    finish_agent(&sandbox);
    assert_eq!(sandbox.events("changes.lost"), [""; 0]);
}

/// Promise: agent-git/changed-settings-named
#[test]
fn repository_changes_emit_events_during_run() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("idle", "echo work > work");
    start_agent(
        &sandbox,
        "git config core.fsmonitor nowhere; mkdir -p ../../.git/hooks; echo > ../../.git/hooks/pre-commit; git worktree remove --force ../idle",
    );
    wait_until("the first snapshots", || {
        sandbox.repo.join(".git/proq/locks/supervisor/snapshots.lock").exists()
    });
    run_agent_script(&sandbox);
    let changed = || -> Vec<String> {
        let events = json(&sandbox, &["events", "--json"]);
        let all = events["events"].as_array().unwrap().iter();
        let all = all.filter(|event| event["event"] == "repository.changed");
        all.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    };
    wait_until("two events", || changed().len() >= 2);
    let (worktree_events, settings): (Vec<_>, Vec<_>) =
        changed().into_iter().partition(|text| text.contains("lane 'idle'"));
    let settings = settings.join("; ");
    assert!(
        settings.contains("setting core.fsmonitor") && settings.contains("hook pre-commit"),
        "{settings}"
    );
    sandbox.sh("git config --unset core.fsmonitor; rm .git/hooks/pre-commit");
    sandbox.sh(worktree_events[0].split_once("restore it: ").unwrap().1);
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("idle").join("work")).unwrap(), "work\n");
    finish_agent(&sandbox);
}

/// Promise: worktree/auto-snapshots
#[test]
fn reports_deletion_despite_other_operation() {
    let sandbox = with_changes();
    sandbox.lane_with_commit("ready", "echo ready > ready");
    let main = WorktreeState::capture(&sandbox, &sandbox.repo);
    start_agent(&sandbox, "cd ../..; rm new d/e/deep; git checkout -q edited");
    wait_for_snapshots(&sandbox, &[("main checkout", 5)]);
    // An operation of git-proq between two snapshots, and a stash in another lane.
    let _ = sandbox.proq(&["spawn", "-q", "--empty", "-n", "other"]).ok();
    sandbox.sh_in(&sandbox.lane_path("ready"), "echo more >> ready; git stash -q");
    run_agent_script(&sandbox);
    let commands = restore_commands(&sandbox, 1);
    let _ = sandbox.proq(&commands[0].split(' ').collect::<Vec<_>>()).ok();
    assert_eq!(WorktreeState::capture(&sandbox, &sandbox.repo), main);
    finish_agent(&sandbox);
}

/// Promise: worktree/auto-snapshots
#[test]
fn committed_stashed_or_parked_changes_not_lost() {
    let sandbox = with_changes();
    start_agent(&sandbox, "true");
    wait_for_snapshots(&sandbox, &[("main checkout", 5)]);
    let _ = sandbox.proq(&["preview", "idle"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("echo more >> edited; git add -A; git commit -qm mine; echo 2 >> edited; echo 2 > other");
    wait_for_snapshots(&sandbox, &[("main checkout", 2)]);
    sandbox.sh("echo more >> edited; echo more >> other; git add -A; git commit -qm more; echo 3 >> edited; echo 3 > next");
    wait_for_snapshots(&sandbox, &[("main checkout", 2)]);
    sandbox.git(&["stash", "-u"]);
    sandbox.sh("echo 3 > third");
    wait_for_snapshots(&sandbox, &[("main checkout", 1)]);
    run_agent_script(&sandbox);
    finish_agent(&sandbox);
    assert_eq!(sandbox.events("changes.lost"), [Value::Null; 0]);
}

/// Promise: worktree/auto-snapshots
#[test]
fn names_large_ignored_files_and_can_be_disabled() {
    let sandbox = with_changes();
    sandbox.sh("head -c 2000000 /dev/zero > large");
    sandbox.git(&["config", "proq.snapshot.ignored", "1"]);
    start_agent(&sandbox, "true");
    wait_for_snapshots(&sandbox, &[("main checkout", 5)]);
    let list = json(&sandbox, &["snap", "list", "--json"]);
    let rows = list["snapshots"].as_array().unwrap();
    let id = rows.iter().find(|row| row["why"].as_str().unwrap().contains("main")).unwrap()["id"].clone();
    let shown = sandbox.proq(&["snap", "show", id.as_str().unwrap()]);
    assert!(shown.stdout.contains("left out   large (ignored, and too large)"), "{}", shown.stdout);
    assert!(shown.stdout.contains("ignored    .env") && !shown.stdout.contains("ignored    large"));
    run_agent_script(&sandbox);
    finish_agent(&sandbox);

    let other = with_changes();
    other.run_lane("x", "true");
    assert!(!other.repo.join(".git/proq/locks/supervisor/snapshots.lock").exists());
}

/// Promise: worktree/auto-snapshots
#[test]
fn restored_snapshot_is_kept_for_undo() {
    let sandbox = with_changes();
    start_agent(&sandbox, "true");
    wait_for_snapshots(&sandbox, &[("main checkout", 5)]);
    let list = json(&sandbox, &["snap", "list", "--json"]);
    let rows = list["snapshots"].as_array().unwrap();
    let row = rows.iter().find(|row| row["why"].as_str().unwrap().contains("main")).unwrap();
    let id = row["id"].as_str().unwrap();
    sandbox.git(&["stash", "-u", "-q"]);
    let _ = sandbox.proq(&["snap", "restore", id]).ok();
    for n in 1..7 {
        sandbox.write(&format!("more-{n}"), "more\n");
        wait_for_snapshots(&sandbox, &[("main checkout", 5 + n)]);
    }
    let _ = sandbox.proq(&["snap", "show", id]).ok();
    run_agent_script(&sandbox);
    finish_agent(&sandbox);
}

#[test]
fn list_and_doctor_name_restore_command() {
    let sandbox = with_changes();
    start_agent(&sandbox, "cd ../..; git worktree remove --force .proq-worktrees/idle");
    wait_for_snapshots(&sandbox, &[("lane 'idle'", 2)]);
    let lane = WorktreeState::capture(&sandbox, &sandbox.lane_path("idle"));
    run_agent_script(&sandbox);
    let command = restore_commands(&sandbox, 1).remove(0);
    finish_agent(&sandbox);
    let shown = sandbox.normalize(format!("git proq {command}").as_bytes());
    let list = sandbox.proq(&["list"]).stderr;
    assert!(list.contains(&format!("lane 'idle' no longer has a worktree: {shown}\n")), "{list}");
    let doctor = sandbox.proq(&["doctor"]).to_text();
    assert!(
        doctor.contains("the folder of lane 'idle' is missing; its uncommitted changes are in a snapshot"),
        "{doctor}"
    );
    assert!(doctor.contains(&format!("{shown}\n")), "{doctor}");
    // A user who discards the lane anyway loses nothing, and gets a hint how to restore the changes.
    let _ = sandbox.proq(&["discard", "--force", "idle"]).ok();
    let args: Vec<&str> = command.split(' ').collect();
    let output = sandbox.proq(&args).fails(1);
    assert!(output.contains("lane 'idle' no longer exists; nothing was changed"), "{output}");
    let hint = output
        .lines()
        .find_map(|line| line.strip_prefix("hint: apply it to the current checkout: "))
        .unwrap();
    sandbox.sh("git stash -qu; git switch -qc aside");
    let _ = sandbox.sh(hint);
    assert!(sandbox.read("edited").ends_with("mine\n") && sandbox.read("new") == "mine\n");
    sandbox.sh("git reset -q --hard; git clean -qfd; git switch -q main; git stash pop -q");
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&args).ok();
    assert_eq!(WorktreeState::capture(&sandbox, &sandbox.lane_path("idle")), lane);
}

/// Returns the paths that events of lost changes name, sorted.
fn lost_paths(sandbox: &Sandbox) -> Vec<String> {
    let _ = restore_commands(sandbox, 1);
    let paths = sandbox
        .events("changes.lost")
        .iter()
        .flat_map(|event| event["paths"].as_array().unwrap().clone())
        .collect::<Vec<_>>();
    let mut paths: Vec<String> = paths.iter().map(|path| path.as_str().unwrap().to_owned()).collect();
    paths.sort();
    paths
}

/// Promise: worktree/copies-continue
#[test]
fn restores_files_deleted_during_merge() {
    let sandbox = with_changes();
    sandbox.sh("git stash -qu; git switch -qc other; echo other > edited; rm staged; git commit -qam other
        git switch -q main; echo main > edited; echo main >> staged; git commit -qam main; ! git merge -q other");
    sandbox.sh("echo resolved > edited; echo kept > staged; echo mine > new");
    start_agent(&sandbox, "cd ../..; git reset -q --hard; git clean -qfd -e .proq-worktrees");
    wait_for_snapshots(&sandbox, &[("main checkout", 3)]);
    run_agent_script(&sandbox);
    let commands = restore_commands(&sandbox, 1);
    let _ = sandbox.proq(&commands[0].split(' ').collect::<Vec<_>>()).ok();
    assert_eq!(
        ["edited", "staged", "new"].map(|file| sandbox.read(file)),
        ["resolved\n", "kept\n", "mine\n"]
    );
    finish_agent(&sandbox);
    sandbox.assert_healthy();
}

/// Promise: worktree/copies-continue
#[test]
fn resolved_and_committed_conflicts_not_lost() {
    let sandbox = with_changes();
    sandbox.sh("git stash -qu; git switch -qc other; echo other > edited; git commit -qam other
        git switch -q main; echo main > edited; git commit -qam main; ! git merge -q other");
    start_agent(&sandbox, "true");
    wait_for_snapshots(&sandbox, &[("main checkout", 1)]);
    sandbox.sh("echo both > edited; git commit -qam merged; echo next > next; echo next > after");
    wait_for_snapshots(&sandbox, &[("main checkout", 2)]);
    run_agent_script(&sandbox);
    finish_agent(&sandbox);
    assert_eq!(sandbox.events("changes.lost"), [Value::Null; 0]);
}

/// Promise: worktree/copies-continue
#[test]
fn snapshots_survive_stale_lock_and_kill() {
    let sandbox = with_changes();
    start_agent(&sandbox, "cd ../..; git clean -qfd -e .proq-worktrees");
    wait_for_snapshots(&sandbox, &[("main checkout", 5)]);
    sandbox.sh("touch -d '1 minute ago' .git/index.lock; for p in /proc/[0-9]*; do
        if [ \"$(readlink $p/cwd)\" = \"$PWD\" ] && grep -q '_snapshot[s]' $p/cmdline; then kill -9 ${p#/proc/}; fi; done
        echo more > more");
    wait_for_snapshots(&sandbox, &[("main checkout", 6)]);
    run_agent_script(&sandbox);
    assert!(lost_paths(&sandbox).contains(&"more".to_owned()));
    sandbox.sh("rm .git/index.lock");
    finish_agent(&sandbox);
}

/// Promise: worktree/auto-snapshots
#[test]
fn reports_lost_index_content_and_replaced_files() {
    let sandbox = with_changes();
    sandbox.sh("git stash -qu; echo 1 >> edited; git stash -q; echo 2 >> edited; git stash -q
        git switch -qc other; echo other > taken; git add taken; git commit -qm taken; git switch -q main
        cp staged both; git add both; git commit -qm both; echo mine >> both; git add both; git checkout -q HEAD -- gone; seq 9 > both
        echo new > added; git add added; rm added; echo mine >> edited; echo mine > folder; echo mine > taken");
    start_agent(
        &sandbox,
        "cd ../..; git stash drop -q; git reset -q --hard; rm folder; mkdir folder; git checkout -q -f other",
    );
    wait_for_snapshots(&sandbox, &[("main checkout", 5)]);
    run_agent_script(&sandbox);
    assert_eq!(lost_paths(&sandbox), ["added", "both", "edited", "folder", "taken"]);
    finish_agent(&sandbox);
}
