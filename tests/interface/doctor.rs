//! Tests of `git proq doctor` on healthy repositories and on lanes that lost files, branches or records.

use proq_test_kit::Sandbox;
use serde_json::Value;

/// Process id above the limit of every system, so that no process has it.
pub const UNUSED_PID: u32 = 4_999_999;

/// Returns the findings of the check `check`.
fn findings_of(answer: &Value, check: &str) -> Vec<Value> {
    let findings = answer["findings"].as_array().unwrap();
    findings.iter().filter(|f| f["check"] == check).cloned().collect()
}

/// Asserts that the doctor has exactly one finding of `check` with this severity and the matching exit code,
/// and returns it.
#[track_caller]
pub fn assert_finding(sandbox: &Sandbox, check: &str, severity: &str) -> Value {
    let out = sandbox.proq(&["doctor", "--json"]);
    let found = findings_of(&out.json(), check);
    assert_eq!(found.len(), 1, "{check}: {}", out.stdout);
    assert_eq!(found[0]["severity"], severity, "{found:#?}");
    if severity == "error" {
        assert_eq!((out.code, out.json()["ok"].as_bool()), (1, Some(false)), "{}", out.stdout);
    }
    let shown = sandbox.proq(&["doctor"]);
    let message = found[0]["message"].as_str().unwrap();
    assert!(format!("{}{}", shown.stdout, shown.stderr).contains(message), "{shown:?}");
    found[0].clone()
}

/// Asserts exactly one finding that `--fix` leaves unchanged, with a reason if it is an error, and returns
/// it.
#[track_caller]
pub fn assert_unfixable_finding(sandbox: &Sandbox, check: &str, severity: &str) -> Value {
    let found = assert_finding(sandbox, check, severity);
    assert_eq!(found["fixable"], false, "{found:#?}");
    let out = sandbox.proq(&["doctor", "--fix", "--json"]);
    assert_eq!(out.code, i32::from(severity == "error"), "{}", out.stdout);
    assert_eq!(findings_of(&out.json(), check), std::slice::from_ref(&found), "{}", out.stdout);
    assert!(severity != "error" || found["left"].is_string(), "{found:#?}");
    found
}

/// Asserts exactly one finding that a dry run announces and `--fix` repairs once, and returns it.
#[track_caller]
pub fn assert_fixable_finding(sandbox: &Sandbox, check: &str, severity: &str) -> Value {
    let found = assert_finding(sandbox, check, severity);
    assert_eq!(found["fixable"], true, "{found:#?}");
    let planned = sandbox.proq(&["doctor", "--fix", "--dry-run"]);
    assert!(planned.stdout.contains("would be repaired"), "{planned:?}");
    let _ = assert_finding(sandbox, check, severity);
    let answer = sandbox.proq(&["doctor", "--fix", "--json"]).json();
    let fixed = findings_of(&answer, check);
    assert!(fixed.iter().all(|f| f["fixed"] == true) && fixed.len() == 1, "{answer:#}");
    let again = sandbox.proq(&["doctor", "--fix", "--json"]);
    assert_eq!(findings_of(&again.json(), check), [Value::Null; 0], "{}", again.stdout);
    assert!(!again.stdout.contains("\"fixed\": true"), "{}", again.stdout);
    found
}

/// Runs the command that a finding suggests.
#[track_caller]
pub fn run_suggested_command(sandbox: &Sandbox, found: &Value) {
    let help = found["help"].as_str().unwrap().replace("[ROOT]", &sandbox.root().display().to_string());
    let _ = sandbox.sh(&help);
}

/// Replaces text in the record of a lane.
fn edit_record(sandbox: &Sandbox, lane: &str, from: &str, to: &str) {
    let path = format!(".git/proq/lanes/{lane}/lane.toml");
    let text = sandbox.read(&path);
    assert!(text.contains(from), "{text}");
    sandbox.write(&path, &text.replace(from, to));
}

fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    sandbox
}

/// Creates a repository with lanes of every kind, a conflict, trash, and a preview with parked changes.
fn busy_repository() -> Sandbox {
    let sandbox = Sandbox::new();
    for (name, script) in [("good", "echo 1 > one"), ("clash", "echo c > a.txt"), ("other", "echo o > a.txt")]
    {
        sandbox.lane_with_commit(name, script);
    }
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "gone"]).ok();
    sandbox.write_in(&sandbox.lane_path("gone"), "draft", "d");
    let _ = sandbox.proq(&["discard", "--force", "gone"]).ok();
    let _ = sandbox.proq(&["merge", "clash", "other"]).fails(3);
    sandbox.run_lane("ran", "echo r > ran");
    sandbox.write("mine", "m");
    let _ = sandbox.proq(&["preview", "good"]).ok();
    sandbox
}

#[test]
fn healthy_repository_is_one_line() {
    let sandbox = busy_repository();
    sandbox.assert_healthy();
    let out = sandbox.proq(&["doctor", "-q"]);
    let (first, rest) = out.stdout.split_once(", git ").unwrap();
    assert_eq!(
        first,
        "all well; checked 3 lanes, 2 snapshots, 1 conflict, 2 removed lanes, 2 saved refs, 8 operations, 2 in the trash, \
         the open preview, locks and disk"
    );
    assert_eq!((rest.lines().count(), out.stderr.as_str(), out.code), (1, "", 0));
    let answer = sandbox.proq(&["doctor", "--json"]).json();
    assert_eq!((&answer["ok"], &answer["checked"]["lanes"]), (&true.into(), &3.into()));

    let before = sandbox.lane_leftovers();
    let _ = sandbox.proq(&["doctor", "--fix"]).ok();
    assert_eq!(sandbox.lane_leftovers(), before, "a repair of nothing changed something");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("mine"), "m");
    sandbox.assert_healthy();
}

#[test]
fn prints_and_fixes_findings_line_by_line() {
    let sandbox = with_lane();
    sandbox.lane_with_commit("y", "echo 2 > two");
    sandbox.git(&["update-ref", "-d", "refs/heads/proq/x"]);
    edit_record(&sandbox, "y", "state = \"idle\"", "state = \"running\"");
    sandbox.sh("chmod 755 .git/proq; git branch proq/z");
    let out = sandbox.proq(&["doctor"]);
    insta::assert_snapshot!(out.stdout.split(", git ").next().unwrap(), @r"
    error: lane 'x' no longer has a branch; its last commit 81ffb73f still exists
    hint: restore the branch: git branch proq/x 81ffb73f
    error: lane 'y' claims to be running, but its supervisor crashed
    hint: show its output: git proq logs y
    error: other users can read [ROOT]/repo/.git/proq: prompts, logs, saved files
    hint: close it to other users: chmod 700 '[ROOT]/repo/.git/proq'
    warning: branch 'proq/z' belongs to no lane and blocks the name 'z'
    hint: rename it: git branch -m proq/z z
    3 errors, 1 warning; checked 2 lanes, 2 operations, locks and disk
    ");
    assert!(out.stderr.contains("hint: repair 2 of them: git proq doctor --fix"), "{}", out.stderr);
    let out = sandbox.proq(&["doctor", "--fix"]);
    assert_eq!(out.code, 1);
    insta::assert_snapshot!(out.stdout.split(", git ").next().unwrap(), @r"
    error: lane 'x' no longer has a branch; its last commit 81ffb73f still exists
      left as it is: you may have deleted it on purpose
    hint: restore the branch: git branch proq/x 81ffb73f
    warning: branch 'proq/z' belongs to no lane and blocks the name 'z'
      left as it is: it may have work
    hint: rename it: git branch -m proq/z z
    fixed: lane 'y' claims to be running, but its supervisor crashed
    fixed: other users can read [ROOT]/repo/.git/proq: prompts, logs, saved files
    1 error, 2 repaired, 1 warning; checked 2 lanes, 2 operations, locks and disk
    ");
}

#[test]
fn damaged_lane_records_are_left_unchanged() {
    let sandbox = with_lane();
    let record = ".git/proq/lanes/x/lane.toml";
    let good = sandbox.read(record);
    for (text, words) in [("format = ", "cannot read the record"), ("format = 99\n", "has format 99")] {
        sandbox.write(record, text);
        let found = assert_unfixable_finding(&sandbox, "lane-record", "error");
        assert!(found["message"].as_str().unwrap().contains(words), "{found:#?}");
        assert_eq!(sandbox.read(record), text);
    }
    sandbox.write(record, &good);
    sandbox.sh("mkdir .git/proq/lanes/half; echo ask > .git/proq/lanes/half/task.md");
    let _ = assert_unfixable_finding(&sandbox, "lane-record", "warning");
    sandbox.sh("rm -r .git/proq/lanes/half; mv .git/proq/lanes/x .git/proq/lanes/w");
    let found = assert_unfixable_finding(&sandbox, "lane-record", "error");
    assert!(found["message"].as_str().unwrap().contains("another name"), "{found:#?}");
    sandbox.sh("cp -r .git/proq/lanes/w .git/proq/lanes/x; sed -i 's/^name = .*/name = \"w\"/' .git/proq/lanes/w/lane.toml");
    let found = assert_unfixable_finding(&sandbox, "lane-record", "error");
    assert!(found["message"].as_str().unwrap().contains("claim the same"), "{found:#?}");
}

#[test]
fn suggested_command_restores_lane_branch() {
    let sandbox = with_lane();
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.git(&["update-ref", "-d", "refs/heads/proq/x"]);
    let found = assert_unfixable_finding(&sandbox, "lane-branch", "error");
    run_suggested_command(&sandbox, &found);
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
    sandbox.assert_healthy();
}

#[test]
fn suggested_command_restores_lane_folder() {
    let sandbox = with_lane();
    sandbox.sh("rm -rf .proq-worktrees/x");
    let found = assert_unfixable_finding(&sandbox, "lane-folder", "error");
    run_suggested_command(&sandbox, &found);
    assert_eq!(sandbox.read(".proq-worktrees/x/one"), "1\n");
    sandbox.assert_healthy();
}

#[test]
fn doctor_and_list_name_one_command_for_a_lost_folder() {
    let sandbox = with_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "bare"]).ok();
    sandbox.sh("rm -rf .proq-worktrees/x .proq-worktrees/bare");
    let (list, doctor) = (sandbox.proq(&["list"]).stderr, sandbox.proq(&["doctor"]).stdout);
    let add = "git worktree add -f '[ROOT]/repo/.proq-worktrees/x' proq/x";
    for command in [add, "git proq cleanup bare"] {
        for text in [&list, &doctor] {
            assert!(text.contains(&format!(": {command}\n")), "{text}");
        }
    }
}

#[test]
fn mismatched_worktree_registration_is_an_error() {
    let sandbox = with_lane();
    sandbox.sh("echo /nowhere/.git > .git/worktrees/x/gitdir");
    let found = assert_unfixable_finding(&sandbox, "lane-worktree", "error");
    run_suggested_command(&sandbox, &found);
    sandbox.assert_healthy();
    sandbox.sh("mv .proq-worktrees/x/.git .proq-worktrees/x/.git-was");
    let _ = assert_unfixable_finding(&sandbox, "lane-worktree", "error");
    sandbox.sh("mv .proq-worktrees/x/.git-was .proq-worktrees/x/.git");
    edit_record(&sandbox, "x", "worktree_id = \"x\"", "worktree_id = \"w\"");
    let found = assert_unfixable_finding(&sandbox, "lane-worktree", "error");
    assert!(found["message"].as_str().unwrap().contains("is 'x', but the lane's is 'w'"), "{found:#?}");
}

#[test]
fn wrong_branch_or_missing_base_is_a_warning() {
    let sandbox = with_lane();
    sandbox.git_in(&sandbox.lane_path("x"), &["switch", "-q", "-c", "side"]);
    let found = assert_unfixable_finding(&sandbox, "lane-head", "warning");
    run_suggested_command(&sandbox, &found);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y", "--base", "side"]).ok();
    sandbox.git(&["branch", "-D", "side"]);
    let _ = assert_unfixable_finding(&sandbox, "lane-base", "warning");
}

#[test]
fn marks_run_without_supervisor_as_failed() {
    let sandbox = with_lane();
    for claimed in ["running", "starting"] {
        edit_record(&sandbox, "x", "state = \"idle\"", &format!("state = \"{claimed}\""));
        let _ = assert_fixable_finding(&sandbox, "lane-state", "error");
        assert_eq!(sandbox.row("x")["state"], "failed");
        assert!(sandbox.read(".git/proq/lanes/x/lane.toml").contains("state = \"failed\""));
        edit_record(&sandbox, "x", "state = \"failed\"", "state = \"idle\"");
    }
}

#[test]
fn orphaned_agent_is_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.pipe("end");
    sandbox.start_lane("x", "read line < \"$ROOT/end\"");
    sandbox.assert_healthy();
    let holder = std::fs::read_to_string(sandbox.lane_lock("x", "run.holder")).unwrap();
    let pid = holder.lines().find_map(|l| l.strip_prefix("pid = ")).unwrap();
    sandbox.sh(&format!("kill -9 {pid}; while kill -0 {pid} 2>/dev/null && ! grep -q '^State:.Z' /proc/{pid}/status; do :; done"));
    let found = assert_unfixable_finding(&sandbox, "lane-orphan", "warning");
    assert_eq!(found["help"], "git proq stop x");
    sandbox.write_pipe("end");
}

#[test]
fn checks_run_and_history_records() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo 1 > one");
    sandbox.write(".git/proq/lanes/x/runs/1.toml", "broken");
    let _ = assert_unfixable_finding(&sandbox, "run-record", "error");
    sandbox.sh("rm .git/proq/lanes/x/runs/1.toml");
    let _ = assert_unfixable_finding(&sandbox, "run-record", "warning");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    sandbox.assert_healthy();
    sandbox.write(".git/proq/history/x@1/lane.toml", "broken");
    let _ = assert_unfixable_finding(&sandbox, "history-record", "error");
    sandbox.sh("rm .git/proq/history/x@1/lane.toml");
    let _ = assert_unfixable_finding(&sandbox, "history-record", "warning");
}

#[test]
fn landing_missing_from_base_is_an_error() {
    let sandbox = with_lane();
    let _ = sandbox.proq(&["merge", "--no-cleanup", "x"]).ok();
    sandbox.assert_healthy();
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let found = assert_unfixable_finding(&sandbox, "lane-landed", "error");
    assert_eq!(found["help"], "git proq merge x");
}

#[test]
fn names_branches_and_folders_without_lane() {
    let sandbox = with_lane();
    sandbox.git(&["branch", "proq/stray"]);
    let found = assert_unfixable_finding(&sandbox, "branch-without-lane", "warning");
    run_suggested_command(&sandbox, &found);
    sandbox.assert_healthy();

    sandbox.sh("mkdir .proq-worktrees/plain; echo 1 > .proq-worktrees/plain/one");
    let _ = assert_unfixable_finding(&sandbox, "folder-without-lane", "warning");
    sandbox.sh("rm -r .proq-worktrees/plain; git worktree add -q -b proq/w .proq-worktrees/w");
    let found = sandbox.proq(&["doctor", "--json"]).json();
    assert_eq!(findings_of(&found, "worktree-without-lane").len(), 1, "{found:#}");
    let _ = sandbox.proq(&["cleanup"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn moves_registration_without_folder_to_trash() {
    let sandbox = with_lane();
    sandbox.sh("git worktree add -q --detach .proq-worktrees/w; cd .proq-worktrees/w; git commit -q --allow-empty -m lone");
    let lone = sandbox.git_in(&sandbox.lane_path("w"), &["rev-parse", "HEAD"]);
    sandbox.sh("rm -rf .proq-worktrees/w");
    sandbox.git(&["worktree", "lock", ".proq-worktrees/w"]);
    let _ = assert_unfixable_finding(&sandbox, "registration", "warning");
    sandbox.git(&["worktree", "unlock", ".proq-worktrees/w"]);
    let _ = assert_fixable_finding(&sandbox, "registration", "warning");
    assert!(!sandbox.repo.join(".git/worktrees/w").exists());
    assert_eq!(sandbox.sh("ls .git/proq/trash/*/admin/HEAD | wc -l").trim(), "1");
    let saved_refs = sandbox.git(&["for-each-ref", "--contains", &lone, "refs/proq/saved/"]);
    assert!(saved_refs.contains("refs/proq/saved/w-"), "{saved_refs}");
    sandbox.assert_healthy();
}

#[test]
fn warns_about_notifiers_without_a_program() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo riff >ping.wav");
    let file = sandbox.repo.join("ping.wav");
    sandbox.git(&["config", "proq.notify.sound", file.to_str().unwrap()]);
    let found = assert_finding(&sandbox, "setting", "warning");
    assert_eq!(found["subject"], "notify.sound");
    sandbox.program("aplay", "exit 0");
    assert_eq!(findings_of(&sandbox.proq(&["doctor", "--json"]).json(), "setting"), [] as [Value; 0]);
    sandbox.git(&["config", "proq.notify.desktop", "notify-send"]);
    assert_eq!(assert_finding(&sandbox, "setting", "warning")["subject"], "notify.desktop");
}
