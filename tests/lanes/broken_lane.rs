//! Tests of lanes whose worktree lacks files that git needs: git-proq runs, commits and lands nothing there,
//! and each lane can be repaired or removed.

use proq_test_kit::{Output, Sandbox};

/// Creates a base of three files and a lane `x` with one commit.
fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("b.txt", "b\n");
    sandbox.write("d/c.txt", "c\n");
    sandbox.commit_all("more");
    sandbox.lane_with_commit("x", "echo own > own.txt");
    sandbox.program("claude", "echo agent >> agent.txt");
    sandbox
}

fn admin_file(sandbox: &Sandbox, file: &str) -> std::path::PathBuf {
    sandbox.repo.join(".git/worktrees/x").join(file)
}

/// Runs the repair command that a refusal suggests.
#[track_caller]
fn run_repair_hint(sandbox: &Sandbox, refused: &Output) {
    let line = refused.stderr.lines().find_map(|l| l.strip_prefix("hint: repair it: "));
    let command = line.unwrap_or_else(|| panic!("no command helps: {}", refused.stderr));
    sandbox.sh(&command.replace("[ROOT]", sandbox.root().to_str().unwrap()));
}

/// Asserts that every command that could take the missing files for deletions refuses with `reason`.
#[track_caller]
fn assert_commands_refuse(sandbox: &Sandbox, reason: &str) {
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    let main = sandbox.git(&["rev-parse", "main"]);
    for args in [
        &["merge", "x"][..],
        &["merge", "--all"],
        &["merge", "x", "--force", "--allow-deletions"],
        &["run", "x", "claude", "go on"],
        &["discard", "x"],
        &["cleanup", "x"],
    ] {
        let out = sandbox.proq(args);
        let output = format!("{}{}", out.stdout, out.stderr);
        assert_eq!(out.code, 1, "{args:?}: {output}");
        assert!(output.contains(reason), "{args:?}: {output}");
    }
    let list = sandbox.proq(&["list"]);
    assert!(list.stderr.contains(reason), "{}", list.stderr);
    assert!(sandbox.row("x")["broken"].as_str().unwrap().contains(reason));
    let doctor = sandbox.proq(&["doctor"]);
    assert!(format!("{}{}", doctor.stdout, doctor.stderr).contains(reason), "{}", doctor.to_text());
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
}

/// Asserts that the lane can be discarded with all its files and that an undo restores it unchanged.
#[track_caller]
fn assert_discard_and_undo(sandbox: &Sandbox) {
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    let files = || sandbox.sh("cd .proq-worktrees/x && find . -type f | sort | xargs cksum");
    let before = files();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!sandbox.lane_path("x").exists());
    assert_ne!(sandbox.git(&["for-each-ref", "--contains", &tip, "refs/proq/saved"]), "");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!((files(), sandbox.git(&["rev-parse", "proq/x"])), (before, tip));
}

/// Promise: new-lane/broken-lane
#[test]
fn refuses_lane_without_index_until_repaired() {
    let sandbox = with_lane();
    sandbox.write_in(&sandbox.lane_path("x"), "b.txt", "edited\n");
    for bytes in [None, Some(&b""[..]), Some(b"DIRC")] {
        std::fs::remove_file(admin_file(&sandbox, "index")).unwrap();
        if let Some(bytes) = bytes {
            std::fs::write(admin_file(&sandbox, "index"), bytes).unwrap();
        }
        assert_commands_refuse(&sandbox, "it has no index that git can read");
        assert_discard_and_undo(&sandbox);
        let refused = sandbox.proq(&["merge", "x"]);
        run_repair_hint(&sandbox, &refused);
        assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--porcelain"]), " M b.txt");
    }
    assert!(!sandbox.lane_path("x").join("agent.txt").exists());
    sandbox.commit_all_in(&sandbox.lane_path("x"), "edited");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nb.txt\nd/c.txt\nown.txt");
}

/// Promise: new-lane/broken-lane
#[test]
fn refuses_lane_with_empty_index_or_no_files() {
    let sandbox = with_lane();
    let lane = sandbox.lane_path("x");
    sandbox.git_in(&lane, &["rm", "-rq", "--cached", "."]);
    assert_commands_refuse(&sandbox, "its index is empty and its commit is not");
    assert_discard_and_undo(&sandbox);
    run_repair_hint(&sandbox, &sandbox.proq(&["merge", "x"]));
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    sandbox.sh_in(&lane, "rm -r a.txt b.txt d own.txt");
    assert_commands_refuse(&sandbox, "all of its files are missing");
    assert_discard_and_undo(&sandbox);
    run_repair_hint(&sandbox, &sandbox.proq(&["merge", "x"]));
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    let _ = sandbox.proq(&["merge", "x"]).ok();
}

/// Promise: new-lane/broken-lane
#[test]
fn refuses_lane_with_empty_head() {
    let sandbox = with_lane();
    std::fs::write(admin_file(&sandbox, "HEAD"), "").unwrap();
    assert_commands_refuse(&sandbox, "HEAD names neither a branch nor a commit");
    assert_discard_and_undo(&sandbox);
    run_repair_hint(&sandbox, &sandbox.proq(&["merge", "x"]));
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--porcelain"]), "");
}

/// Promise: new-lane/broken-lane
#[test]
fn leftover_work_in_broken_lane_not_committed() {
    let sandbox = Sandbox::new();
    let script = "echo new > new.txt; rm \"$(git rev-parse --git-dir)/index\" a.txt";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "--", "sh", "-c", script]).fails(4);
    let row = sandbox.row("x");
    assert_eq!(row["state"], "failed");
    assert!(row["detail"].as_str().unwrap().contains("it has no index that git can read"), "{row:#}");
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), sandbox.git(&["rev-parse", "main"]));
    assert!(sandbox.lane_path("x").join("new.txt").exists());
}

#[test]
fn lands_lane_that_renames_its_only_file() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("moved", "mv a.txt z.txt");
    let _ = sandbox.proq(&["merge", "moved"]).ok();
    assert_eq!(sandbox.git(&["ls-files"]), "z.txt");
}

/// Promise: new-lane/half-created-lane
#[test]
fn cleanup_saves_broken_unrecorded_worktree() {
    let sandbox = with_lane();
    std::fs::remove_dir_all(sandbox.repo.join(".git/proq/lanes/x")).unwrap();
    std::fs::remove_file(admin_file(&sandbox, "index")).unwrap();
    std::fs::remove_file(sandbox.lane_path("x").join("a.txt")).unwrap();
    let doctor = sandbox.proq(&["doctor"]);
    let output = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(output.contains("is a worktree that belongs to no lane"), "{output}");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    let out = sandbox.proq(&["cleanup"]);
    assert!(out.stderr.contains("cleaned up [ROOT]/repo/.proq-worktrees/x"), "{}", out.to_text());
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"], serde_json::json!([]));
    assert!(!sandbox.lane_path("x").exists());
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    assert_ne!(sandbox.git(&["for-each-ref", "--contains", &tip, "refs/proq/saved"]), "");
    let saved = sandbox.sh("cat .git/proq/trash/x-*/worktree/own.txt");
    assert_eq!(saved, "own");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
}

#[test]
fn doctor_hint_restores_pruned_lane() {
    let sandbox = with_lane();
    sandbox.write_in(&sandbox.lane_path("x"), "loose", "loose\n");
    sandbox.sh("mv .proq-worktrees/x elsewhere; git worktree prune; mv elsewhere .proq-worktrees/x");
    let report = sandbox.proq(&["doctor", "--json"]).json();
    let finding = report["findings"].as_array().unwrap().iter().find(|f| f["check"] == "lane-worktree");
    let help = finding.unwrap()["help"].as_str().unwrap();
    sandbox.sh(&help.replace("[ROOT]", sandbox.root().to_str().unwrap()));
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.sh("cat .proq-worktrees/x.old/loose"), "loose");
}

#[test]
fn list_hint_restores_lane_without_folder() {
    let sandbox = with_lane();
    std::fs::remove_dir_all(sandbox.lane_path("x")).unwrap();
    let list = sandbox.proq(&["list"]).stderr.replace("[ROOT]", sandbox.root().to_str().unwrap());
    let help =
        list.lines().find_map(|line| line.strip_prefix("warning: lane 'x' no longer has a worktree: "));
    sandbox.sh(help.unwrap());
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.read("own.txt"), "own\n");
}
