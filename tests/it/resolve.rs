//! Owns the tests of `git proq resolve`: what is accepted, what is refused and why, and that nothing of it is ever lost.

use super::support::Sandbox;

/// A good agent: it keeps both sides.
pub const GOOD: &str = r"sed -i -e '/^<<<<<<<\|^=======\|^>>>>>>>/d' -e '/^lane 5/d' -e 's/^main 5/main and lane 5/' long.txt
git add long.txt; echo both kept";

/// A lane that changes lines 2 and 5, a base that changes 5 and 8, and the conflict on record.
pub fn conflicting() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("long.txt", "1 x\n2 x\n3 x\n4 x\n5 x\n6 x\n7 x\n8 x\n9 x\n");
    sandbox.commit_all("base");
    sandbox.program(
        "plain-agent",
        "sed -i -e 's/^2 x/lane 2/' -e 's/^5 x/lane 5/' long.txt; git commit -qam 'Say lane'",
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "clash", "plain-agent", "Say lane everywhere"]).ok();
    sandbox.sh("sed -i -e 's/^5 x/main 5/' -e 's/^8 x/main 8/' long.txt; git commit -qam 'main goes on'");
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    sandbox.program("good", GOOD);
    sandbox
}

pub const RESOLVED: &str = "1 x\nlane 2\n3 x\n4 x\nmain and lane 5\n6 x\n7 x\nmain 8\n9 x\n";

/// Where the conflict of lane `clash` is laid out.
pub fn desk(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.lane(".resolve/clash")
}

/// What an agent of this script is refused for, the rest of the sentence left out.
#[track_caller]
fn refused(sandbox: &Sandbox, script: &str) -> String {
    sandbox.program("bad", script);
    let tip = sandbox.git(&["rev-parse", "proq/clash"]);
    let said = sandbox.proq(&["resolve", "clash", "--agent", "bad"]).fails(3);
    assert_eq!(sandbox.git(&["rev-parse", "proq/clash"]), tip);
    assert_eq!(sandbox.row("clash")["state"], "conflict");
    let line = said.lines().find(|l| l.starts_with("error:")).unwrap();
    let why = line.split_once("in one try: ").unwrap().1;
    why.trim_end_matches("; the last try was left as it is").to_owned()
}

#[test]
fn an_agent_resolves_a_conflict_and_the_lane_lands() {
    let sandbox = conflicting();
    let out = sandbox.proq(&["resolve", "clash", "--agent", "good"]);
    let tip = sandbox.git(&["rev-parse", "--short=8", "proq/clash"]);
    insta::assert_snapshot!(out.shown().replace(&tip, "[COMMIT]"), @r"
    resolved by good: lane 'clash' has main in it now ([COMMIT]), 1 file that conflicted
    --- stderr
    good resolves the conflict of clash with main in 1 file; follow it: git proq logs -f clash
    hint: look at it: git proq diff clash   land it: git proq merge clash
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.git(&["log", "-1", "--format=%an, %cn%n%B", "proq/clash"]), @r"
    Ann Author, Cal Committer
    Merge branch 'main' into proq/clash

    Conflicts:
    	long.txt

    Proq-Lane: clash
    Proq-Resolved-By: good
    ");
    assert_eq!(sandbox.git(&["rev-parse", "proq/clash^2"]), sandbox.git(&["rev-parse", "main"]));
    assert_eq!(std::fs::read_to_string(sandbox.lane("clash").join("long.txt")).unwrap(), RESOLVED);
    assert_eq!(sandbox.git_in(&sandbox.lane("clash"), &["status", "--short"]), "");
    assert_eq!(sandbox.row("clash")["state"], "done");
    assert_eq!(sandbox.row("clash")["agent"], "plain-agent", "who made the lane is not who resolved it");
    assert!(!desk(&sandbox).exists());
    assert_eq!(
        sandbox.git(&["for-each-ref", "refs/proq/resolve", "refs/proq/conflict", "refs/proq/saved"]),
        ""
    );
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "clash"]).ok();
    assert_eq!(sandbox.read("long.txt"), RESOLVED);
}

#[test]
fn the_run_has_a_log_a_record_and_a_prompt_of_its_own() {
    let sandbox = conflicting();
    sandbox.program("good", &format!("cat \"$PROQ_TASK_FILE\" > ../../../../prompt; pwd\n{GOOD}"));
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "good"]).ok();
    let log = sandbox.proq(&["logs", "clash"]).ok();
    assert_eq!(log, "[ROOT]/repo/.proq-worktrees/.resolve/clash\nboth kept\n");
    let shown = sandbox.proq(&["show", "clash"]).ok();
    assert!(shown.contains("run 2      good, on the conflict: done, exit code 0"), "{shown}");
    assert!(shown.contains("lanes/clash/runs/2.md"), "{shown}");
    let prompt = std::fs::read_to_string(sandbox.root().join("prompt")).unwrap();
    let ids = [
        sandbox.git(&["rev-parse", "--short", "proq/clash^1"]),
        sandbox.git(&["rev-parse", "--short", "main"]),
    ];
    let prompt = ids.iter().fold(prompt, |text, id| text.replace(id.as_str(), "[ID]"));
    let told = prompt.split("# What to do").next().unwrap();
    insta::assert_snapshot!(told, @r#"
    Resolve a merge conflict. You are in a git worktree in which `main` is being merged into the work of lane `clash`; git could not merge one file by itself.

    # What the lane was made for

    Say lane everywhere

    # What the lane did (`HEAD`, "ours")

    - [ID] Say lane

    # What happened on `main` ("theirs")

    - [ID] main goes on

    # The conflicts

    - CONFLICT (content): Merge conflict in long.txt

    ## long.txt

    Conflict 1:
    the lane has
    ~~~~~~~~
    lane 5
    ~~~~~~~~
    both come from
    ~~~~~~~~
    5 x
    ~~~~~~~~
    main has
    ~~~~~~~~
    main 5
    ~~~~~~~~
    "#);
}

#[test]
fn a_marker_that_is_left_is_refused() {
    let sandbox = conflicting();
    let why = refused(&sandbox, "sed -i '/^<<<<<<</d' long.txt; git add long.txt");
    assert_eq!(
        why,
        "long.txt:6: a conflict marker is left: '======='; if it is text, --allow long.txt gives leave"
    );
    let why = refused(&sandbox, "true");
    assert_eq!(why, "long.txt:5: a conflict marker is left: '<<<<<<< HEAD'");
    sandbox.assert_healthy();
}

#[test]
fn a_side_that_was_dropped_is_refused() {
    let sandbox = conflicting();
    let strip = "sed -i -e '/^<<<<<<<\\|^=======\\|^>>>>>>>/d'";
    let why = refused(&sandbox, &format!("{strip} -e '/^lane 5/d' long.txt"));
    assert_eq!(why, "long.txt:5: nothing is left of what the lane did there; --allow long.txt gives leave");
    let why = refused(&sandbox, &format!("{strip} -e '/^main 5/d' long.txt"));
    assert_eq!(why, "long.txt:5: nothing is left of what main did there; --allow long.txt gives leave");
    let why = refused(&sandbox, "git checkout -q --theirs long.txt");
    assert_eq!(
        why,
        "long.txt: outside of the conflict something was changed, at 'lane 2'; --allow long.txt gives leave"
    );
    let why = refused(&sandbox, "git rm -q long.txt");
    assert_eq!(why, "long.txt was deleted, and neither side did that; --allow long.txt gives leave");
}

#[test]
fn whatever_else_was_changed_is_refused_by_name() {
    let sandbox = conflicting();
    let why =
        refused(&sandbox, &format!("{GOOD}; echo more >> a.txt; echo new > new.txt; echo o > debug.log"));
    assert_eq!(
        why,
        "a.txt was changed and is not in conflict; --allow a.txt gives leave; debug.log is new and is not in conflict; --allow debug.log gives leave; new.txt is new and is not in conflict; --allow new.txt gives leave"
    );
    let why = refused(&sandbox, &format!("{GOOD}; sed -i 's/^9 x/nine/' long.txt"));
    assert_eq!(
        why,
        "long.txt: outside of the conflict something was changed, at '9 x'; --allow long.txt gives leave"
    );
    let why =
        refused(&sandbox, &format!("{GOOD}; git commit -qm mine; git rm -q a.txt; git commit -qm more"));
    assert_eq!(why, "a.txt was deleted and is not in conflict; --allow a.txt gives leave");
    let why = refused(&sandbox, &format!("{GOOD}; git init -q inner"));
    assert_eq!(why, "inner is a repository of its own; move it away");
    sandbox.assert_healthy();
}

#[test]
fn what_was_done_to_the_merge_itself_is_refused() {
    let sandbox = conflicting();
    let why = refused(&sandbox, "git merge --abort");
    assert_eq!(why, "the merge was given up there, so that nothing tells what was decided");
    let why = refused(&sandbox, "git reset -q --hard main");
    assert_eq!(why, "what is checked out there does not build on the lane any more");
    let why = refused(&sandbox, &format!("{GOOD}; exit 9"));
    assert_eq!(why, "it failed with exit code 9");
    let why = refused(&sandbox, "kill -9 $$");
    assert_eq!(why, "it was killed by signal 9");
}

#[test]
fn ignored_files_and_commits_of_the_agent_are_fine() {
    let sandbox = conflicting();
    sandbox.write(".git/info/exclude", "*.o\n/.proq-worktrees/\n");
    sandbox.program("good", &format!("{GOOD}; git commit -qm 'resolved it'; touch made.o"));
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "good"]).ok();
    assert_eq!(
        sandbox.git(&["log", "-1", "--format=%s", "proq/clash"]),
        "Merge branch 'main' into proq/clash"
    );
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", &saved]), "resolved it", "its own commit is kept");
}

#[test]
fn a_second_try_is_told_why_the_first_was_refused() {
    let sandbox = conflicting();
    sandbox.program(
        "learner",
        &format!("case \"$1\" in *'a conflict marker is left'*) {GOOD};; *) true;; esac"),
    );
    let out = sandbox.proq(&["resolve", "clash", "--agent", "learner", "--retries", "1"]);
    let said = out.stderr.clone();
    let _ = out.ok();
    assert!(said.contains("refused: long.txt:5: a conflict marker is left: '<<<<<<< HEAD'"), "{said}");
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
}

#[test]
fn after_the_last_try_everything_is_kept_and_a_person_goes_on() {
    let sandbox = conflicting();
    sandbox.program("bad", "echo \"try $(git hash-object \"$PROQ_TASK_FILE\")\" > note.txt");
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "bad", "--retries", "2"]).fails(3);
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    let kept: Vec<String> =
        saved.lines().map(|name| sandbox.git(&["log", "-1", "--format=%H", name])).collect();
    assert_eq!(kept.len(), 2, "the tries before the last: {saved}");
    assert!(desk(&sandbox).join("note.txt").exists(), "the last one");
    let said = sandbox.proq(&["resolve", "clash", "--continue"]).fails(1);
    assert!(said.contains("note.txt is new and is not in conflict"), "{said}");
    sandbox.sh_in(&desk(&sandbox), &format!("{GOOD}; rm note.txt"));
    let said = sandbox.proq(&["resolve", "clash", "--continue"]).ok();
    assert!(said.starts_with("resolved by hand, after bad: "), "{said}");
    let message = sandbox.git(&["log", "-1", "--format=%B", "proq/clash"]);
    assert!(message.contains("Proq-Resolved-By: hand, after bad"), "{message}");
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
    sandbox.assert_healthy();
}

#[test]
fn leave_is_given_by_name() {
    let sandbox = conflicting();
    sandbox.program("bad", &format!("{GOOD}; echo more >> a.txt; mkdir d; echo new > d/new.txt"));
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "bad", "--allow", "a.txt"]).fails(3);
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "bad", "--allow", "a.txt", "--allow", "d"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/clash:d/new.txt"]), "new");
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["resolve", "clash", "--continue"]).fails(1);
    let _ = sandbox.proq(&["resolve", "clash", "--continue", "--allow-other-changes"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/clash:a.txt"]), "a\nmore");
}

#[test]
fn giving_up_keeps_what_was_made_and_undo_brings_it_back() {
    let sandbox = conflicting();
    let _ = refused(&sandbox, "echo half > half.txt; git add half.txt; echo more > more.txt");
    let status = || sandbox.git_in(&desk(&sandbox), &["status", "--short"]);
    let before = (status(), std::fs::read(desk(&sandbox).join("long.txt")).unwrap());
    let said = sandbox.proq(&["resolve", "clash", "--abort"]).ok();
    assert_eq!(said, "given up: lane 'clash' is in conflict with main as before\n");
    assert!(!desk(&sandbox).exists());
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(
        sandbox
            .git(&["log", "--format=", "--name-only", "-m", "--first-parent", &saved])
            .contains("more.txt")
    );
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!((status(), std::fs::read(desk(&sandbox).join("long.txt")).unwrap()), before);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["resolve", "clash", "--abort"]).ok();
    let _ = sandbox.proq(&["resolve", "clash", "--abort"]).fails(1);
}

#[test]
fn a_resolution_is_undone_and_done_again() {
    let sandbox = conflicting();
    let refs = || sandbox.git(&["for-each-ref", "refs/heads", "refs/proq/conflict"]);
    let before = refs();
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "good"]).ok();
    let after = refs();
    let log = sandbox.proq(&["op", "log"]).ok();
    assert!(
        log.contains("conflict of clash resolved") && log.contains("conflict of clash laid out"),
        "{log}"
    );
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(refs(), before);
    assert_eq!(sandbox.row("clash")["state"], "conflict");
    assert!(sandbox.git_in(&sandbox.lane("clash"), &["show", "HEAD:long.txt"]).contains("lane 5"));
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(refs(), after);
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(!desk(&sandbox).exists());
    assert_eq!(refs(), before);
    sandbox.assert_healthy();
}

#[test]
fn it_is_no_lane_for_anybody() {
    let sandbox = conflicting();
    let _ = refused(&sandbox, "true");
    let names = sandbox.proq(&["list", "--json"]).json();
    assert_eq!(names["lanes"].as_array().unwrap().len(), 1);
    assert_eq!(names["unrecorded"].as_array().unwrap().len(), 0);
    let _ = sandbox.proq(&["cleanup", "--all"]);
    assert!(desk(&sandbox).exists());
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    let said = sandbox.proq(&["discard", "clash"]).fails(1);
    assert!(
        said.contains("its conflict is being resolved in [ROOT]/repo/.proq-worktrees/.resolve/clash"),
        "{said}"
    );
    let _ = sandbox.proq(&["discard", "--force", "clash"]).ok();
    assert!(!desk(&sandbox).exists());
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/resolve"]), "");
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(desk(&sandbox).join("long.txt").exists());
    sandbox.assert_healthy();
}

#[test]
fn a_lane_that_cannot_take_it_keeps_it_under_a_ref() {
    let sandbox = conflicting();
    let lane = sandbox.lane("clash");
    sandbox.write_in(&lane, "left.txt", "left\n");
    let said = sandbox.proq(&["resolve", "clash", "--agent", "good"]).fails(1);
    assert!(said.contains("it has uncommitted work: left.txt"), "{said}");
    std::fs::remove_file(lane.join("left.txt")).unwrap();
    sandbox.program("good", &format!("{GOOD}; echo left > ../../clash/left.txt"));
    let said = sandbox.proq(&["resolve", "clash", "--agent", "good"]).fails(1);
    assert!(
        said.contains("is resolved, but the lane could not take it: it has uncommitted work: left.txt"),
        "{said}"
    );
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert_eq!(sandbox.git(&["show", &format!("{saved}:long.txt")]), RESOLVED.trim_end());
    std::fs::remove_file(lane.join("left.txt")).unwrap();
    let _ = sandbox.proq(&["resolve", "clash", "--continue"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
}

#[test]
fn while_an_agent_resolves_nobody_else_does_and_stopping_leaves_the_conflict() {
    let sandbox = conflicting();
    sandbox.pipe("up");
    sandbox.program("slow", "echo up > \"$ROOT/up\"; exec sleep 600");
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--agent", "slow"]);
    let mut resolving =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    assert_eq!(sandbox.hear("up"), "up\n");
    assert_eq!(sandbox.started_row("clash")["state"], "running");
    for way in [&["--agent", "good"][..], &["--continue"], &["--abort"]] {
        let said = sandbox.proq(&[&["resolve", "clash"], way].concat()).fails(1);
        assert!(said.contains("the agent of lane 'clash' is running"), "{said}");
    }
    let _ = sandbox.proq(&["merge", "clash"]).fails(1);
    let _ = sandbox.proq(&["undo"]).fails(1);
    let _ = sandbox.proq(&["stop", "clash"]).ok();
    assert_eq!(resolving.wait().unwrap().code(), Some(4));
    assert_eq!(sandbox.row("clash")["state"], "conflict");
    sandbox.sh_in(&desk(&sandbox), GOOD);
    let _ = sandbox.proq(&["resolve", "clash", "--continue"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn ctrl_c_stops_the_agent_and_leaves_what_it_did() {
    let sandbox = conflicting();
    sandbox.pipe("up");
    sandbox.program("slow", &format!("{GOOD}; echo up > \"$ROOT/up\"; exec sleep 600"));
    let mut command = sandbox.proq_command(&sandbox.repo, &["resolve", "clash", "--agent", "slow"]);
    let mut resolving =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    assert_eq!(sandbox.hear("up"), "up\n");
    sandbox.sh(&format!("kill -INT {}", resolving.id()));
    assert_eq!(resolving.wait().unwrap().code(), Some(130));
    assert_eq!(sandbox.row("clash")["state"], "conflict");
    let _ = sandbox.proq(&["resolve", "clash", "--continue"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
}
