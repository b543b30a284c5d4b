//! Owns the tests of automatic snapshots: what an agent deletes elsewhere than in its lane comes back.

use serde_json::Value;

use super::support::patience::{wait_for, wait_until, wait_until_free};
use super::support::{Image, Sandbox};

/// A repository with uncommitted changes of every kind in the main checkout and in a lane in which nothing runs.
fn with_changes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "for f in staged edited gone; do seq 9 > $f; done; printf '.env\\ncache/\\nlarge\\n' > .gitignore",
    );
    sandbox.commit_all("files");
    sandbox.lane_of("idle", "echo work > work");
    sandbox.sh_in(&sandbox.lane("idle"), "echo mine >> edited; echo mine > new; echo secret > .env");
    sandbox.sh("echo mine >> edited; echo mine >> staged; git add staged; rm gone; echo mine > new; mkdir -p d/e cache/in");
    sandbox
        .sh("echo mine > d/e/deep; echo secret > .env; echo made > cache/in/made; ln -s made cache/in/link");
    sandbox
}

/// Starts an agent in a lane, with automatic snapshots each second.
fn spawn(sandbox: &Sandbox, lane: &str, script: &str) {
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "-q", "-n", lane, "--", "sh", "-c", script]);
    command.env("PROQ_SNAPSHOT_INTERVAL", "1");
    let _ = sandbox.output(command).ok();
}

/// Starts an agent that runs `script` once it is told to.
fn start(sandbox: &Sandbox, script: &str) {
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox.pipe("end");
    let script = format!(
        "echo > \"$ROOT/up\"; read -r _ < \"$ROOT/go\"; {script}; echo > \"$ROOT/up\"; read -r _ < \"$ROOT/end\""
    );
    spawn(sandbox, "agent", &script);
    let _ = sandbox.hear("up");
}

/// Tells the agent to run its script, and waits for its end.
fn go(sandbox: &Sandbox) {
    sandbox.tell("go");
    let _ = sandbox.hear("up");
}

/// Tells the agent to end, and waits until nobody takes snapshots any more.
fn end(sandbox: &Sandbox) {
    sandbox.tell("end");
    let _ = sandbox.proq(&["wait", "agent"]);
    wait_until_free(&sandbox.repo.join(".git/proq/locks/supervisor/snapshots.lock"));
}

/// Waits until an automatic snapshot of each worktree is there that holds `files` of that worktree.
fn wait_for_snapshots(sandbox: &Sandbox, of: &[(&str, u64)]) {
    for (what, files) in of {
        wait_until(&format!("a snapshot of {what}"), || {
            let list = sandbox.proq(&["snap", "list", "--json"]).json();
            let rows = list["snapshots"].as_array().unwrap();
            rows.iter().any(|row| {
                row["state"] == "automatic"
                    && row["files"] == *files
                    && row["why"].as_str().unwrap().contains(what)
            })
        });
    }
}

/// What a command answers in JSON, with the ids in it.
fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let out = sandbox.proq_command(&sandbox.repo, args).output().unwrap();
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The commands that events of lost changes name.
fn commands(sandbox: &Sandbox, times: usize) -> Vec<String> {
    let all = wait_for("events of lost changes", || {
        let events = json(sandbox, &["events", "--json"]);
        let lost =
            events["events"].as_array().unwrap().iter().filter(|event| event["event"] == "changes.lost");
        Some(lost.cloned().collect::<Vec<_>>()).filter(|all| all.len() >= times)
    });
    let command = |event: &Value| {
        let message = event["message"].as_str().unwrap().to_owned();
        message.split_once("bring them back: git proq ").unwrap().1.to_owned()
    };
    all.iter().map(command).collect()
}

#[test]
fn what_an_agent_deletes_elsewhere_comes_back_by_the_command_that_the_event_names() {
    let sandbox = with_changes();
    let (main, lane) = (Image::of(&sandbox, &sandbox.repo), Image::of(&sandbox, &sandbox.lane("idle")));
    let (env, made) = (sandbox.read(".env"), sandbox.read("cache/in/made"));
    start(
        &sandbox,
        "cd ../..; git reset -q --hard; git clean -qfdx -e .proq-worktrees; git worktree remove --force .proq-worktrees/idle",
    );
    wait_for_snapshots(&sandbox, &[("main checkout", 5), ("lane 'idle'", 2)]);
    go(&sandbox);
    assert!(!sandbox.repo.join("new").exists() && !sandbox.lane("idle").exists());
    let commands = commands(&sandbox, 2);
    for command in &commands {
        let _ = sandbox.proq(&command.split(' ').collect::<Vec<_>>()).ok();
    }
    assert_eq!(Image::of(&sandbox, &sandbox.repo), main);
    assert_eq!(Image::of(&sandbox, &sandbox.lane("idle")), lane);
    assert_eq!((sandbox.read(".env"), sandbox.read("cache/in/made")), (env, made));
    assert_eq!(std::fs::read_link(sandbox.repo.join("cache/in/link")).unwrap().to_str(), Some("made"));
    assert_eq!(std::fs::read_to_string(sandbox.lane("idle").join(".env")).unwrap(), "secret\n");
    end(&sandbox);
    assert_eq!(sandbox.events("changes.lost").len(), 2, "what git-proq brought back is not lost");
}

#[test]
fn what_an_agent_deletes_as_soon_as_it_starts_comes_back_too() {
    let sandbox = with_changes();
    let (main, lane) = (Image::of(&sandbox, &sandbox.repo), Image::of(&sandbox, &sandbox.lane("idle")));
    let script = "cd ../..; git worktree remove --force .proq-worktrees/idle; git reset -q --hard; git clean -qfdx -e .proq-worktrees";
    spawn(&sandbox, "agent", script);
    let _ = sandbox.proq(&["wait", "agent"]);
    assert!(!sandbox.repo.join("new").exists() && !sandbox.lane("idle").exists());
    for command in &commands(&sandbox, 2) {
        let _ = sandbox.proq(&command.split(' ').collect::<Vec<_>>()).ok();
    }
    assert_eq!(Image::of(&sandbox, &sandbox.repo), main);
    assert_eq!(Image::of(&sandbox, &sandbox.lane("idle")), lane);
    wait_until_free(&sandbox.repo.join(".git/proq/locks/supervisor/snapshots.lock"));
}

#[test]
fn what_an_agent_resets_or_cleans_away_in_one_place_comes_back() {
    for (script, what, files) in [
        ("git -C ../idle clean -qfdx", "lane 'idle'", 2),
        ("git -C ../idle reset -q --hard; git -C ../idle clean -qfdx", "lane 'idle'", 2),
        ("git -C ../.. checkout -qf", "main checkout", 5),
        ("git -C ../.. checkout -qf HEAD -- .", "main checkout", 5),
    ] {
        let sandbox = with_changes();
        let dir = if what.starts_with("lane") { sandbox.lane("idle") } else { sandbox.repo.clone() };
        let secret = |dir: &std::path::Path| std::fs::read_to_string(dir.join(".env")).ok();
        let before = (Image::of(&sandbox, &dir), secret(&dir));
        start(&sandbox, script);
        wait_for_snapshots(&sandbox, &[(what, files)]);
        go(&sandbox);
        assert_ne!(Image::of(&sandbox, &dir), before.0, "{script}");
        let commands = commands(&sandbox, 1);
        let _ = sandbox.proq(&commands[0].split(' ').collect::<Vec<_>>()).ok();
        assert_eq!((Image::of(&sandbox, &dir), secret(&dir)), before, "{script}");
        end(&sandbox);
    }
}

#[test]
fn what_an_agent_deletes_of_a_lane_whose_own_agent_is_at_work_comes_back() {
    for (writes, removes) in [
        (":", "git worktree remove --force ../busy"),
        // It never leaves its files alone.
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
        let _ = sandbox.hear("at-work");
        let image = || {
            let mut image = Image::of(&sandbox, &sandbox.lane("busy"));
            image.files.remove(".log");
            image
        };
        let lane = image();
        start(&sandbox, removes);
        wait_for_snapshots(&sandbox, &[("lane 'busy'", 2)]);
        go(&sandbox);
        assert!(!sandbox.lane("busy").exists(), "{removes}");
        let commands = commands(&sandbox, 1);
        sandbox.sh("touch $ROOT/over");
        sandbox.tell("done");
        let _ = sandbox.proq(&["wait", "busy"]);
        let _ = sandbox.proq(&commands[0].split(' ').collect::<Vec<_>>()).ok();
        assert_eq!(image(), lane, "{removes}");
        end(&sandbox);
    }
}

#[test]
fn what_was_committed_since_is_not_lost_with_the_folder() {
    let sandbox = Sandbox::new();
    for pipe in ["at-work", "commit", "done"] {
        sandbox.pipe(pipe);
    }
    spawn(
        &sandbox,
        "busy",
        "echo mine > new; echo > $ROOT/at-work; read -r _ < $ROOT/commit; git add new; git commit -qm new; echo > $ROOT/at-work; read -r _ < $ROOT/done",
    );
    let _ = sandbox.hear("at-work");
    start(&sandbox, "git worktree remove --force ../busy");
    wait_for_snapshots(&sandbox, &[("lane 'busy'", 1)]);
    sandbox.tell("commit");
    let _ = sandbox.hear("at-work");
    go(&sandbox);
    wait_until("the event", || sandbox.events("repository.changed").len() == 1);
    sandbox.tell("done");
    end(&sandbox);
    assert_eq!(sandbox.events("changes.lost"), [""; 0]);
}

#[test]
fn what_an_agent_changes_for_all_worktrees_is_an_event_while_it_runs() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("idle", "echo work > work");
    start(
        &sandbox,
        "git config core.fsmonitor nowhere; mkdir -p ../../.git/hooks; echo > ../../.git/hooks/pre-commit; git worktree remove --force ../idle",
    );
    wait_until("the first snapshots", || {
        sandbox.repo.join(".git/proq/locks/supervisor/snapshots.lock").exists()
    });
    go(&sandbox);
    let changed = || -> Vec<String> {
        let events = json(&sandbox, &["events", "--json"]);
        let all = events["events"].as_array().unwrap().iter();
        let all = all.filter(|event| event["event"] == "repository.changed");
        all.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    };
    wait_until("two events", || changed().len() >= 2);
    let (gone, settings): (Vec<_>, Vec<_>) =
        changed().into_iter().partition(|text| text.contains("lane 'idle'"));
    let settings = settings.join("; ");
    assert!(
        settings.contains("setting core.fsmonitor") && settings.contains("hook pre-commit"),
        "{settings}"
    );
    sandbox.sh("git config --unset core.fsmonitor; rm .git/hooks/pre-commit");
    sandbox.sh(gone[0].split_once("bring it back: ").unwrap().1);
    assert_eq!(std::fs::read_to_string(sandbox.lane("idle").join("work")).unwrap(), "work\n");
    end(&sandbox);
}

#[test]
fn what_an_agent_deletes_is_named_though_something_else_landed_meanwhile() {
    let sandbox = with_changes();
    sandbox.lane_of("ready", "echo ready > ready");
    let main = Image::of(&sandbox, &sandbox.repo);
    start(&sandbox, "cd ../..; rm new d/e/deep; git checkout -q edited");
    wait_for_snapshots(&sandbox, &[("main checkout", 5)]);
    // An operation of git-proq between two passes, and a stash elsewhere.
    let _ = sandbox.proq(&["spawn", "-q", "--empty", "-n", "other"]).ok();
    sandbox.sh_in(&sandbox.lane("ready"), "echo more >> ready; git stash -q");
    go(&sandbox);
    let commands = commands(&sandbox, 1);
    let _ = sandbox.proq(&commands[0].split(' ').collect::<Vec<_>>()).ok();
    assert_eq!(Image::of(&sandbox, &sandbox.repo), main);
    end(&sandbox);
}

#[test]
fn changes_that_are_committed_or_stashed_or_shown_by_a_preview_are_not_lost() {
    let sandbox = with_changes();
    start(&sandbox, "true");
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
    go(&sandbox);
    end(&sandbox);
    assert_eq!(sandbox.events("changes.lost"), [Value::Null; 0]);
}

#[test]
fn nothing_is_copied_where_the_setting_says_so_and_large_ignored_files_are_named() {
    let sandbox = with_changes();
    sandbox.sh("head -c 2000000 /dev/zero > large");
    sandbox.git(&["config", "proq.snapshot.ignored", "1"]);
    start(&sandbox, "true");
    wait_for_snapshots(&sandbox, &[("main checkout", 5)]);
    let list = json(&sandbox, &["snap", "list", "--json"]);
    let rows = list["snapshots"].as_array().unwrap();
    let id = rows.iter().find(|row| row["why"].as_str().unwrap().contains("main")).unwrap()["id"].clone();
    let shown = sandbox.proq(&["snap", "show", id.as_str().unwrap()]);
    assert!(shown.stdout.contains("left out   large (ignored, and too large)"), "{}", shown.stdout);
    assert!(shown.stdout.contains("ignored    .env") && !shown.stdout.contains("ignored    large"));
    go(&sandbox);
    end(&sandbox);

    let other = with_changes();
    other.lane_with("x", "true");
    assert!(!other.repo.join(".git/proq/locks/supervisor/snapshots.lock").exists());
}

#[test]
fn one_that_was_brought_back_stays_for_an_undo_whatever_comes_after_it() {
    let sandbox = with_changes();
    start(&sandbox, "true");
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
    go(&sandbox);
    end(&sandbox);
}

#[test]
fn the_way_back_of_what_an_agent_deleted_elsewhere_is_named_by_everything_that_misses_it() {
    let sandbox = with_changes();
    start(&sandbox, "cd ../..; git worktree remove --force .proq-worktrees/idle");
    wait_for_snapshots(&sandbox, &[("lane 'idle'", 2)]);
    let lane = Image::of(&sandbox, &sandbox.lane("idle"));
    go(&sandbox);
    let command = commands(&sandbox, 1).remove(0);
    end(&sandbox);
    let shown = sandbox.plain(format!("git proq {command}").as_bytes());
    let list = sandbox.proq(&["list"]).stderr;
    assert!(list.contains(&format!("lane 'idle' has no worktree any more: {shown}\n")), "{list}");
    let doctor = sandbox.proq(&["doctor"]).shown();
    assert!(
        doctor.contains("the folder of lane 'idle' is gone; what was uncommitted in it is in a snapshot"),
        "{doctor}"
    );
    assert!(doctor.contains(&format!("{shown}\n")), "{doctor}");
    // Somebody who removes the lane all the same has lost nothing, and is told how it comes back then.
    let _ = sandbox.proq(&["discard", "--force", "idle"]).ok();
    let words: Vec<&str> = command.split(' ').collect();
    let said = sandbox.proq(&words).fails(1);
    assert!(said.contains("there is no lane 'idle' any more; nothing was changed"), "{said}");
    let hint = said
        .lines()
        .find_map(|line| line.strip_prefix("hint: put it on what is checked out here: "))
        .unwrap();
    sandbox.sh("git stash -qu; git switch -qc aside");
    let _ = sandbox.sh(hint);
    assert!(sandbox.read("edited").ends_with("mine\n") && sandbox.read("new") == "mine\n");
    sandbox.sh("git reset -q --hard; git clean -qfd; git switch -q main; git stash pop -q");
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&words).ok();
    assert_eq!(Image::of(&sandbox, &sandbox.lane("idle")), lane);
}

/// The paths that events of lost changes name.
fn lost(sandbox: &Sandbox) -> Vec<String> {
    let _ = commands(sandbox, 1);
    let paths = sandbox
        .events("changes.lost")
        .iter()
        .flat_map(|event| event["paths"].as_array().unwrap().clone())
        .collect::<Vec<_>>();
    let mut paths: Vec<String> = paths.iter().map(|path| path.as_str().unwrap().to_owned()).collect();
    paths.sort();
    paths
}

#[test]
fn in_the_middle_of_a_merge_what_an_agent_deletes_comes_back_too() {
    let sandbox = with_changes();
    sandbox.sh("git stash -qu; git switch -qc other; echo other > edited; rm staged; git commit -qam other
        git switch -q main; echo main > edited; echo main >> staged; git commit -qam main; ! git merge -q other");
    sandbox.sh("echo resolved > edited; echo kept > staged; echo mine > new");
    start(&sandbox, "cd ../..; git reset -q --hard; git clean -qfd -e .proq-worktrees");
    wait_for_snapshots(&sandbox, &[("main checkout", 3)]);
    go(&sandbox);
    let commands = commands(&sandbox, 1);
    let _ = sandbox.proq(&commands[0].split(' ').collect::<Vec<_>>()).ok();
    assert_eq!(
        ["edited", "staged", "new"].map(|file| sandbox.read(file)),
        ["resolved\n", "kept\n", "mine\n"]
    );
    end(&sandbox);
    sandbox.assert_healthy();
}

#[test]
fn conflicts_that_are_resolved_and_committed_are_not_lost() {
    let sandbox = with_changes();
    sandbox.sh("git stash -qu; git switch -qc other; echo other > edited; git commit -qam other
        git switch -q main; echo main > edited; git commit -qam main; ! git merge -q other");
    start(&sandbox, "true");
    wait_for_snapshots(&sandbox, &[("main checkout", 1)]);
    sandbox.sh("echo both > edited; git commit -qam merged; echo next > next; echo next > after");
    wait_for_snapshots(&sandbox, &[("main checkout", 2)]);
    go(&sandbox);
    end(&sandbox);
    assert_eq!(sandbox.events("changes.lost"), [Value::Null; 0]);
}

#[test]
fn an_old_lock_and_a_killed_process_do_not_end_the_copying() {
    let sandbox = with_changes();
    start(&sandbox, "cd ../..; git clean -qfd -e .proq-worktrees");
    wait_for_snapshots(&sandbox, &[("main checkout", 5)]);
    sandbox.sh("touch -d '1 minute ago' .git/index.lock; for p in /proc/[0-9]*; do
        if [ \"$(readlink $p/cwd)\" = \"$PWD\" ] && grep -q '_snapshot[s]' $p/cmdline; then kill -9 ${p#/proc/}; fi; done
        echo more > more");
    wait_for_snapshots(&sandbox, &[("main checkout", 6)]);
    go(&sandbox);
    assert!(lost(&sandbox).contains(&"more".to_owned()));
    sandbox.sh("rm .git/index.lock");
    end(&sandbox);
}

#[test]
fn what_only_the_index_had_and_what_something_else_takes_the_place_of_is_named() {
    let sandbox = with_changes();
    sandbox.sh("git stash -qu; echo 1 >> edited; git stash -q; echo 2 >> edited; git stash -q
        git switch -qc other; echo other > taken; git add taken; git commit -qm taken; git switch -q main
        cp staged both; git add both; git commit -qm both; echo mine >> both; git add both; git checkout -q HEAD -- gone; seq 9 > both
        echo new > added; git add added; rm added; echo mine >> edited; echo mine > folder; echo mine > taken");
    start(
        &sandbox,
        "cd ../..; git stash drop -q; git reset -q --hard; rm folder; mkdir folder; git checkout -q -f other",
    );
    wait_for_snapshots(&sandbox, &[("main checkout", 5)]);
    go(&sandbox);
    assert_eq!(lost(&sandbox), ["added", "both", "edited", "folder", "taken"]);
    end(&sandbox);
}
