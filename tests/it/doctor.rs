//! Owns the tests of `git proq doctor`: what it says of a healthy repository, and of lanes that lost something.

use serde_json::Value;

use super::support::Sandbox;

/// No process has this number: it is above what any system gives out.
pub const NOBODY: u32 = 4_999_999;

/// The findings of a kind.
fn of_kind(answer: &Value, check: &str) -> Vec<Value> {
    let findings = answer["findings"].as_array().unwrap();
    findings.iter().filter(|f| f["check"] == check).cloned().collect()
}

/// Insists on exactly one finding of a kind, with this severity and the exit code that goes with it, and returns it.
#[track_caller]
pub fn finds(sandbox: &Sandbox, check: &str, severity: &str) -> Value {
    let out = sandbox.proq(&["doctor", "--json"]);
    let found = of_kind(&out.json(), check);
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

/// The same, and a repair that must not touch it but say why.
#[track_caller]
pub fn finds_and_leaves(sandbox: &Sandbox, check: &str, severity: &str) -> Value {
    let found = finds(sandbox, check, severity);
    assert_eq!(found["fixable"], false, "{found:#?}");
    let out = sandbox.proq(&["doctor", "--fix", "--json"]);
    assert_eq!(out.code, i32::from(severity == "error"), "{}", out.stdout);
    assert_eq!(of_kind(&out.json(), check), std::slice::from_ref(&found), "{}", out.stdout);
    assert!(severity != "error" || found["left"].is_string(), "{found:#?}");
    found
}

/// The same with a repair that works, is announced by a dry run, and is done once.
#[track_caller]
pub fn finds_and_repairs(sandbox: &Sandbox, check: &str, severity: &str) -> Value {
    let found = finds(sandbox, check, severity);
    assert_eq!(found["fixable"], true, "{found:#?}");
    let planned = sandbox.proq(&["doctor", "--fix", "--dry-run"]);
    assert!(planned.stdout.contains("would be repaired"), "{planned:?}");
    let _ = finds(sandbox, check, severity);
    let answer = sandbox.proq(&["doctor", "--fix", "--json"]).json();
    let fixed = of_kind(&answer, check);
    assert!(fixed.iter().all(|f| f["fixed"] == true) && fixed.len() == 1, "{answer:#}");
    let again = sandbox.proq(&["doctor", "--fix", "--json"]);
    assert_eq!(of_kind(&again.json(), check), [Value::Null; 0], "{}", again.stdout);
    assert!(!again.stdout.contains("\"fixed\": true"), "{}", again.stdout);
    found
}

/// Runs the command that a finding recommends.
#[track_caller]
pub fn follow(sandbox: &Sandbox, found: &Value) {
    let help = found["help"].as_str().unwrap().replace("[ROOT]", &sandbox.root().display().to_string());
    let _ = sandbox.sh(&help);
}

/// A line of a lane's record is replaced.
fn edit_record(sandbox: &Sandbox, lane: &str, from: &str, to: &str) {
    let path = format!(".git/proq/lanes/{lane}/lane.toml");
    let text = sandbox.read(&path);
    assert!(text.contains(from), "{text}");
    sandbox.write(&path, &text.replace(from, to));
}

fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo 1 > one");
    sandbox
}

/// Lanes of every kind, a conflict, trash, and a preview with the user's changes waiting.
fn busy_repository() -> Sandbox {
    let sandbox = Sandbox::new();
    for (name, script) in [("good", "echo 1 > one"), ("clash", "echo c > a.txt"), ("other", "echo o > a.txt")]
    {
        sandbox.lane_of(name, script);
    }
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "gone"]).ok();
    sandbox.write_in(&sandbox.lane("gone"), "draft", "d");
    let _ = sandbox.proq(&["discard", "--force", "gone"]).ok();
    let _ = sandbox.proq(&["merge", "clash", "other"]).fails(3);
    sandbox.lane_with("ran", "echo r > ran");
    sandbox.write("mine", "m");
    let _ = sandbox.proq(&["preview", "good"]).ok();
    sandbox
}

#[test]
fn a_healthy_repository_is_one_line() {
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

    let before = sandbox.traces();
    let _ = sandbox.proq(&["doctor", "--fix"]).ok();
    assert_eq!(sandbox.traces(), before, "a repair of nothing changed something");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("mine"), "m");
    sandbox.assert_healthy();
}

#[test]
fn what_is_broken_is_told_line_by_line() {
    let sandbox = with_lane();
    sandbox.lane_of("y", "echo 2 > two");
    sandbox.git(&["update-ref", "-d", "refs/heads/proq/x"]);
    edit_record(&sandbox, "y", "state = \"idle\"", "state = \"running\"");
    sandbox.sh("chmod 755 .git/proq; git branch proq/z");
    let out = sandbox.proq(&["doctor"]);
    insta::assert_snapshot!(out.stdout.split(", git ").next().unwrap(), @r"
    error: lane 'x' has no branch any more; its last commit 81ffb73f is still there: git branch proq/x 81ffb73f
    error: lane 'y' claims to be running, but its supervisor ended without a word: git proq logs y
    error: others may look into [ROOT]/repo/.git/proq: prompts, logs, files that were set aside: chmod 700 '[ROOT]/repo/.git/proq'
    warning: branch 'proq/z' belongs to no lane and takes the name 'z': git branch -m proq/z z
    3 wrong, 1 warning; checked 2 lanes, 2 operations, locks and disk
    ");
    assert!(out.stderr.contains("hint: repair 2 of them: git proq doctor --fix"), "{}", out.stderr);
    let out = sandbox.proq(&["doctor", "--fix"]);
    assert_eq!(out.code, 1);
    insta::assert_snapshot!(out.stdout.split(", git ").next().unwrap(), @r"
    error: lane 'x' has no branch any more; its last commit 81ffb73f is still there: git branch proq/x 81ffb73f
      left as it is: somebody may have deleted it on purpose
    warning: branch 'proq/z' belongs to no lane and takes the name 'z': git branch -m proq/z z
      left as it is: there may be work on it
    fixed: lane 'y' claims to be running, but its supervisor ended without a word
    fixed: others may look into [ROOT]/repo/.git/proq: prompts, logs, files that were set aside
    1 wrong, 2 repaired, 1 warning; checked 2 lanes, 2 operations, locks and disk
    ");
}

#[test]
fn records_that_cannot_be_read_are_named_and_left() {
    let sandbox = with_lane();
    let record = ".git/proq/lanes/x/lane.toml";
    let good = sandbox.read(record);
    for (text, words) in [("format = ", "cannot be read"), ("format = 99\n", "has format 99")] {
        sandbox.write(record, text);
        let found = finds_and_leaves(&sandbox, "lane-record", "error");
        assert!(found["message"].as_str().unwrap().contains(words), "{found:#?}");
        assert_eq!(sandbox.read(record), text);
    }
    sandbox.write(record, &good);
    sandbox.sh("mkdir .git/proq/lanes/half; echo ask > .git/proq/lanes/half/task.md");
    let _ = finds_and_leaves(&sandbox, "lane-record", "warning");
    sandbox.sh("rm -r .git/proq/lanes/half; mv .git/proq/lanes/x .git/proq/lanes/w");
    let found = finds_and_leaves(&sandbox, "lane-record", "error");
    assert!(found["message"].as_str().unwrap().contains("another name"), "{found:#?}");
    sandbox.sh("cp -r .git/proq/lanes/w .git/proq/lanes/x; sed -i 's/^name = .*/name = \"w\"/' .git/proq/lanes/w/lane.toml");
    let found = finds_and_leaves(&sandbox, "lane-record", "error");
    assert!(found["message"].as_str().unwrap().contains("claim the same"), "{found:#?}");
}

#[test]
fn a_lane_without_a_branch_gets_it_back_by_the_command_that_is_named() {
    let sandbox = with_lane();
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.git(&["update-ref", "-d", "refs/heads/proq/x"]);
    let found = finds_and_leaves(&sandbox, "lane-branch", "error");
    follow(&sandbox, &found);
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
    sandbox.assert_healthy();
}

#[test]
fn a_lane_without_a_folder_gets_a_new_one_by_the_command_that_is_named() {
    let sandbox = with_lane();
    sandbox.sh("rm -rf .proq-worktrees/x");
    let found = finds_and_leaves(&sandbox, "lane-folder", "error");
    follow(&sandbox, &found);
    assert_eq!(sandbox.read(".proq-worktrees/x/one"), "1\n");
    sandbox.assert_healthy();
}

#[test]
fn a_folder_and_a_registration_that_disagree_are_an_error() {
    let sandbox = with_lane();
    sandbox.sh("echo /nowhere/.git > .git/worktrees/x/gitdir");
    let found = finds_and_leaves(&sandbox, "lane-worktree", "error");
    follow(&sandbox, &found);
    sandbox.assert_healthy();
    sandbox.sh("mv .proq-worktrees/x/.git .proq-worktrees/x/.git-was");
    let _ = finds_and_leaves(&sandbox, "lane-worktree", "error");
    sandbox.sh("mv .proq-worktrees/x/.git-was .proq-worktrees/x/.git");
    edit_record(&sandbox, "x", "worktree_id = \"x\"", "worktree_id = \"w\"");
    let found = finds_and_leaves(&sandbox, "lane-worktree", "error");
    assert!(found["message"].as_str().unwrap().contains("as 'x', the lane says 'w'"), "{found:#?}");
}

#[test]
fn a_lane_on_another_branch_and_one_without_a_base_are_warnings() {
    let sandbox = with_lane();
    sandbox.git_in(&sandbox.lane("x"), &["switch", "-q", "-c", "side"]);
    let found = finds_and_leaves(&sandbox, "lane-head", "warning");
    follow(&sandbox, &found);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y", "--base", "side"]).ok();
    sandbox.git(&["branch", "-D", "side"]);
    let _ = finds_and_leaves(&sandbox, "lane-base", "warning");
}

#[test]
fn a_run_that_nobody_watches_is_noted_as_failed() {
    let sandbox = with_lane();
    for claimed in ["running", "starting"] {
        edit_record(&sandbox, "x", "state = \"idle\"", &format!("state = \"{claimed}\""));
        let _ = finds_and_repairs(&sandbox, "lane-state", "error");
        assert_eq!(sandbox.row("x")["state"], "failed");
        assert!(sandbox.read(".git/proq/lanes/x/lane.toml").contains("state = \"failed\""));
        edit_record(&sandbox, "x", "state = \"failed\"", "state = \"idle\"");
    }
}

#[test]
fn an_agent_that_lives_on_is_a_warning_and_is_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.pipe("end");
    sandbox.start_lane("x", "read line < \"$ROOT/end\"");
    sandbox.assert_healthy();
    let holder = std::fs::read_to_string(sandbox.lock("x", "run.holder")).unwrap();
    let pid = holder.lines().find_map(|l| l.strip_prefix("pid = ")).unwrap();
    sandbox.sh(&format!("kill -9 {pid}; while kill -0 {pid} 2>/dev/null && ! grep -q '^State:.Z' /proc/{pid}/status; do :; done"));
    let found = finds_and_leaves(&sandbox, "lane-orphan", "warning");
    assert_eq!(found["help"], "git proq stop x");
    sandbox.tell("end");
}

#[test]
fn records_of_runs_and_of_removed_lanes_are_read() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("x", "echo 1 > one");
    sandbox.write(".git/proq/lanes/x/runs/1.toml", "broken");
    let _ = finds_and_leaves(&sandbox, "run-record", "error");
    sandbox.sh("rm .git/proq/lanes/x/runs/1.toml");
    let _ = finds_and_leaves(&sandbox, "run-record", "warning");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    sandbox.assert_healthy();
    sandbox.write(".git/proq/history/x@1/lane.toml", "broken");
    let _ = finds_and_leaves(&sandbox, "history-record", "error");
    sandbox.sh("rm .git/proq/history/x@1/lane.toml");
    let _ = finds_and_leaves(&sandbox, "history-record", "warning");
}

#[test]
fn a_landing_that_is_not_on_the_base_any_more_is_an_error() {
    let sandbox = with_lane();
    let _ = sandbox.proq(&["merge", "--no-cleanup", "x"]).ok();
    sandbox.assert_healthy();
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let found = finds_and_leaves(&sandbox, "lane-landed", "error");
    assert_eq!(found["help"], "git proq merge x");
}

#[test]
fn what_looks_like_a_lanes_and_is_none_is_named() {
    let sandbox = with_lane();
    sandbox.git(&["branch", "proq/stray"]);
    let found = finds_and_leaves(&sandbox, "branch-without-lane", "warning");
    follow(&sandbox, &found);
    sandbox.assert_healthy();

    sandbox.sh("mkdir .proq-worktrees/plain; echo 1 > .proq-worktrees/plain/one");
    let _ = finds_and_leaves(&sandbox, "folder-without-lane", "warning");
    sandbox.sh("rm -r .proq-worktrees/plain; git worktree add -q -b proq/w .proq-worktrees/w");
    let found = sandbox.proq(&["doctor", "--json"]).json();
    assert_eq!(of_kind(&found, "worktree-without-lane").len(), 1, "{found:#}");
    let _ = sandbox.proq(&["cleanup"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn a_registration_without_folder_and_lane_goes_to_the_trash_and_its_commits_are_kept() {
    let sandbox = with_lane();
    sandbox.sh("git worktree add -q --detach .proq-worktrees/w; cd .proq-worktrees/w; git commit -q --allow-empty -m lone");
    let lone = sandbox.git_in(&sandbox.lane("w"), &["rev-parse", "HEAD"]);
    sandbox.sh("rm -rf .proq-worktrees/w");
    sandbox.git(&["worktree", "lock", ".proq-worktrees/w"]);
    let _ = finds_and_leaves(&sandbox, "registration", "warning");
    sandbox.git(&["worktree", "unlock", ".proq-worktrees/w"]);
    let _ = finds_and_repairs(&sandbox, "registration", "warning");
    assert!(!sandbox.repo.join(".git/worktrees/w").exists());
    assert_eq!(sandbox.sh("ls .git/proq/trash/*/admin/HEAD | wc -l").trim(), "1");
    let kept = sandbox.git(&["for-each-ref", "--contains", &lone, "refs/proq/saved/"]);
    assert!(kept.contains("refs/proq/saved/w-"), "{kept}");
    sandbox.assert_healthy();
}

#[test]
fn a_notice_or_a_sound_that_no_program_can_make_is_said() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo riff >ping.wav");
    let file = sandbox.repo.join("ping.wav");
    sandbox.git(&["config", "proq.notify.sound", file.to_str().unwrap()]);
    let found = finds(&sandbox, "setting", "warning");
    assert_eq!(found["subject"], "notify.sound");
    sandbox.program("aplay", "exit 0");
    assert_eq!(of_kind(&sandbox.proq(&["doctor", "--json"]).json(), "setting"), [] as [Value; 0]);
    sandbox.git(&["config", "proq.notify.desktop", "notify-send"]);
    assert_eq!(finds(&sandbox, "setting", "warning")["subject"], "notify.desktop");
}
