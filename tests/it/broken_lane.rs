//! Owns the tests of lanes whose worktree lacks what git needs: nothing is run, committed or landed there, and each can be made whole
//! or be removed.

use super::support::{Output, Sandbox};

/// A sandbox with a base of three files and a lane `x` that has a commit of its own.
fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("b.txt", "b\n");
    sandbox.write("d/c.txt", "c\n");
    sandbox.commit_all("more");
    sandbox.lane_of("x", "echo own > own.txt");
    sandbox.program("claude", "echo agent >> agent.txt");
    sandbox
}

fn admin(sandbox: &Sandbox, file: &str) -> std::path::PathBuf {
    sandbox.repo.join(".git/worktrees/x").join(file)
}

/// The command that an answer offers to make the lane whole, run.
#[track_caller]
fn make_whole(sandbox: &Sandbox, refused: &Output) {
    let line = refused.stderr.lines().find_map(|l| l.strip_prefix("hint: make it whole: "));
    let command = line.unwrap_or_else(|| panic!("no command helps: {}", refused.stderr));
    sandbox.sh(&command.replace("[ROOT]", sandbox.root().to_str().unwrap()));
}

/// Everything that would take the files that are missing for deleted refuses by name.
#[track_caller]
fn is_left_alone(sandbox: &Sandbox, why: &str) {
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
        let said = format!("{}{}", out.stdout, out.stderr);
        assert_eq!(out.code, 1, "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    }
    let list = sandbox.proq(&["list"]);
    assert!(list.stderr.contains(why), "{}", list.stderr);
    assert!(sandbox.row("x")["broken"].as_str().unwrap().contains(why));
    let doctor = sandbox.proq(&["doctor"]);
    assert!(format!("{}{}", doctor.stdout, doctor.stderr).contains(why), "{}", doctor.shown());
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
}

/// It is removed with everything in it, and an undo brings it back as it was.
#[track_caller]
fn goes_and_comes_back(sandbox: &Sandbox) {
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    let files = || sandbox.sh("cd .proq-worktrees/x && find . -type f | sort | xargs cksum");
    let before = files();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!sandbox.lane("x").exists());
    assert_ne!(sandbox.git(&["for-each-ref", "--contains", &tip, "refs/proq/saved"]), "");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!((files(), sandbox.git(&["rev-parse", "proq/x"])), (before, tip));
}

#[test]
fn a_lane_without_an_index_is_left_alone_and_can_be_made_whole() {
    let sandbox = with_lane();
    sandbox.write_in(&sandbox.lane("x"), "b.txt", "edited\n");
    for bytes in [None, Some(&b""[..]), Some(b"DIRC")] {
        std::fs::remove_file(admin(&sandbox, "index")).unwrap();
        if let Some(bytes) = bytes {
            std::fs::write(admin(&sandbox, "index"), bytes).unwrap();
        }
        is_left_alone(&sandbox, "it has no index that git can read");
        goes_and_comes_back(&sandbox);
        let refused = sandbox.proq(&["merge", "x"]);
        make_whole(&sandbox, &refused);
        assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--porcelain"]), " M b.txt");
    }
    assert!(!sandbox.lane("x").join("agent.txt").exists());
    sandbox.commit_all_in(&sandbox.lane("x"), "edited");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nb.txt\nd/c.txt\nown.txt");
}

#[test]
fn a_lane_whose_index_is_empty_or_whose_files_are_gone_is_left_alone() {
    let sandbox = with_lane();
    let lane = sandbox.lane("x");
    sandbox.git_in(&lane, &["rm", "-rq", "--cached", "."]);
    is_left_alone(&sandbox, "its index is empty and its commit is not");
    goes_and_comes_back(&sandbox);
    make_whole(&sandbox, &sandbox.proq(&["merge", "x"]));
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    sandbox.sh_in(&lane, "rm -r a.txt b.txt d own.txt");
    is_left_alone(&sandbox, "none of its files is there");
    goes_and_comes_back(&sandbox);
    make_whole(&sandbox, &sandbox.proq(&["merge", "x"]));
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    let _ = sandbox.proq(&["merge", "x"]).ok();
}

#[test]
fn a_lane_whose_head_is_empty_is_left_alone() {
    let sandbox = with_lane();
    std::fs::write(admin(&sandbox, "HEAD"), "").unwrap();
    is_left_alone(&sandbox, "HEAD names neither a branch nor a commit");
    goes_and_comes_back(&sandbox);
    make_whole(&sandbox, &sandbox.proq(&["merge", "x"]));
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--porcelain"]), "");
}

#[test]
fn what_an_agent_leaves_in_a_lane_that_broke_meanwhile_is_not_committed() {
    let sandbox = Sandbox::new();
    let script = "echo new > new.txt; rm \"$(git rev-parse --git-dir)/index\" a.txt";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "--", "sh", "-c", script]).fails(4);
    let row = sandbox.row("x");
    assert_eq!(row["state"], "failed");
    assert!(row["detail"].as_str().unwrap().contains("it has no index that git can read"), "{row:#}");
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), sandbox.git(&["rev-parse", "main"]));
    assert!(sandbox.lane("x").join("new.txt").exists());
}

#[test]
fn few_files_may_go_and_others_come() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("moved", "mv a.txt z.txt");
    let _ = sandbox.proq(&["merge", "moved"]).ok();
    assert_eq!(sandbox.git(&["ls-files"]), "z.txt");
}

#[test]
fn a_half_made_worktree_that_no_lane_has_on_record_goes_with_all_that_is_in_it() {
    let sandbox = with_lane();
    std::fs::remove_dir_all(sandbox.repo.join(".git/proq/lanes/x")).unwrap();
    std::fs::remove_file(admin(&sandbox, "index")).unwrap();
    std::fs::remove_file(sandbox.lane("x").join("a.txt")).unwrap();
    let doctor = sandbox.proq(&["doctor"]);
    let said = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(said.contains("is a worktree that no lane has on record"), "{said}");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    let out = sandbox.proq(&["cleanup"]);
    assert!(out.stderr.contains("cleaned up [ROOT]/repo/.proq-worktrees/x"), "{}", out.shown());
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"], serde_json::json!([]));
    assert!(!sandbox.lane("x").exists());
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    assert_ne!(sandbox.git(&["for-each-ref", "--contains", &tip, "refs/proq/saved"]), "");
    let kept = sandbox.sh("cat .git/proq/trash/x-*/worktree/own.txt");
    assert_eq!(kept, "own");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
}

#[test]
fn a_lane_that_git_has_forgotten_comes_back_as_the_doctor_says() {
    let sandbox = with_lane();
    sandbox.write_in(&sandbox.lane("x"), "loose", "loose\n");
    sandbox.sh("mv .proq-worktrees/x elsewhere; git worktree prune; mv elsewhere .proq-worktrees/x");
    let report = sandbox.proq(&["doctor", "--json"]).json();
    let found = report["findings"].as_array().unwrap().iter().find(|f| f["check"] == "lane-worktree");
    let help = found.unwrap()["help"].as_str().unwrap();
    sandbox.sh(&help.replace("[ROOT]", sandbox.root().to_str().unwrap()));
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.sh("cat .proq-worktrees/x.old/loose"), "loose");
}

#[test]
fn a_lane_with_commits_and_without_a_folder_comes_back_as_the_list_says() {
    let sandbox = with_lane();
    std::fs::remove_dir_all(sandbox.lane("x")).unwrap();
    let list = sandbox.proq(&["list"]).stderr.replace("[ROOT]", sandbox.root().to_str().unwrap());
    let help =
        list.lines().find_map(|line| line.strip_prefix("warning: lane 'x' has no worktree any more: "));
    sandbox.sh(help.unwrap());
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.read("own.txt"), "own\n");
}
