//! Owns the tests of lanes whose folder is not where it was made: moved with git, moved or copied with its repository, or replaced.

use serde_json::json;

use super::support::{Output, Sandbox};

/// A sandbox with a lane `x` that has a commit and an uncommitted file of its own.
fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo own > own.txt");
    sandbox.write_in(&sandbox.lane("x"), "draft", "draft\n");
    sandbox.program("claude", "echo agent >> agent.txt");
    sandbox
}

/// The refs that keep what removed lanes had.
fn saved(sandbox: &Sandbox) -> String {
    sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/proq/saved"])
}

#[test]
fn a_lane_that_git_moved_is_found_in_its_new_folder() {
    let sandbox = with_lane();
    sandbox.git(&["worktree", "move", ".proq-worktrees/x", "../elsewhere"]);
    let away = sandbox.root().join("elsewhere");
    sandbox.assert_healthy();
    let row = sandbox.row("x");
    assert_eq!((&row["path"], &row["missing"]), (&json!("[ROOT]/elsewhere"), &json!([])), "{row:#}");

    let _ = sandbox.proq(&["discard", "--force", "--dry-run", "x"]).ok();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!away.exists());
    assert_eq!(saved(&sandbox).lines().count(), 1);
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(std::fs::read_to_string(away.join("draft")).unwrap(), "draft\n");
    sandbox.assert_healthy();

    sandbox.commit_all_in(&away, "draft");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert!(!away.exists());
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(away.join("draft").exists());
    sandbox.git(&["worktree", "move", "../elsewhere", ".proq-worktrees/x"]);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "x"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn a_lane_without_work_that_git_moved_is_cleaned_up() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.git(&["worktree", "move", ".proq-worktrees/x", "../elsewhere"]);
    // It has lost nothing, so it goes only when it is named.
    assert_eq!(sandbox.proq(&["cleanup"]).ok(), "");
    assert_eq!(sandbox.proq(&["cleanup", "x"]).ok(), "cleaned up x\n");
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(sandbox.root().join("elsewhere/a.txt").exists());
    sandbox.assert_healthy();
}

#[test]
fn a_lane_that_git_moved_goes_with_an_undo_of_its_making() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.git(&["worktree", "move", ".proq-worktrees/x", "../elsewhere"]);
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(!sandbox.root().join("elsewhere").exists());
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    sandbox.assert_healthy();
}

#[test]
fn a_worktree_of_the_users_own_is_not_taken_for_a_lane_of_its_name() {
    let sandbox = with_lane();
    sandbox.sh("rm -r .proq-worktrees/x; git worktree prune; git worktree add -q -b mine ../x; echo mine > ../x/mine");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert_eq!(sandbox.sh("cat ../x/mine; git -C ../x status --porcelain"), "mine\n?? mine");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.sh("cat ../x/mine; git -C ../x status --porcelain"), "mine\n?? mine");
}

#[test]
fn a_branch_that_another_worktree_is_on_keeps_its_lane_and_nothing_is_saved() {
    let sandbox = with_lane();
    sandbox.git(&["worktree", "add", "-q", "-f", "../other", "proq/x"]);
    for args in [&["discard", "--force", "--dry-run", "x"][..], &["discard", "--force", "x"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.proq(args).shown(), @r"
            --- stderr
            error: lane 'x' was kept: [ROOT]/other is on its branch; 1 uncommitted file (draft); 1 commit that is not on main
            hint: leave its branch: git -C '[ROOT]/other' switch --detach
            --- code 1
            ");
        }
    }
    assert_eq!(saved(&sandbox), "");
    let _ = typed(&sandbox, &hint(&sandbox.proq(&["discard", "x"]), "leave its branch: "));
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
}

/// The command of a hint that begins so.
#[track_caller]
fn hint(out: &Output, head: &str) -> String {
    let line = out.stderr.lines().find_map(|line| line.strip_prefix("hint: ")?.strip_prefix(head));
    line.unwrap_or_else(|| panic!("no '{head}' in\n{}", out.shown())).to_owned()
}

/// Runs a command line in the main checkout as a person would copy it.
#[track_caller]
fn typed(sandbox: &Sandbox, line: &str) -> String {
    sandbox.sh(&line.replace("[ROOT]", sandbox.root().to_str().unwrap()))
}

/// What helps, as the doctor says, with everything that is wrong with lanes, as run in the main checkout.
#[track_caller]
fn helps(sandbox: &Sandbox) -> Vec<String> {
    let answer = sandbox.proq(&["doctor", "--json"]).json();
    let wrong = answer["findings"].as_array().unwrap().iter();
    let wrong = wrong.filter(|found| found["check"].as_str().unwrap().starts_with("lane-"));
    wrong.map(|found| found["help"].as_str().unwrap().to_owned()).collect()
}

/// Runs all that the doctor says helps, after which it says nothing of lanes any more.
#[track_caller]
fn follow(sandbox: &Sandbox) {
    let all = helps(sandbox);
    assert!(!all.is_empty());
    for help in all {
        typed(sandbox, &help);
    }
    assert_eq!(helps(sandbox), Vec::<String>::new());
}

#[test]
fn a_repository_that_was_moved_keeps_its_lanes_and_gets_them_back_by_the_hints() {
    let mut sandbox = with_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    sandbox.sh_in(&sandbox.root(), "mv repo moved");
    sandbox.repo = sandbox.root().join("moved");
    insta::assert_snapshot!(sandbox.proq(&["list"]).shown(), @r"
    LANE  STATE  AGENT  COMMITS  CHANGES      AGE  TITLE
    x     idle   -      +1       no worktree  0s
    y     idle   -      -        no worktree  0s
    --- stderr
    warning: lane 'x': its folder was moved with the repository to [ROOT]/moved/.proq-worktrees/x: git worktree repair '[ROOT]/moved/.proq-worktrees/x'
    warning: lane 'y': its folder was moved with the repository to [ROOT]/moved/.proq-worktrees/y: git worktree repair '[ROOT]/moved/.proq-worktrees/y'
    --- code 0
    ");
    for args in [&["cleanup", "--dry-run"][..], &["cleanup"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.proq(args).shown(), @r"
            --- stderr
            lane 'x' was kept: its folder was moved with the repository to [ROOT]/moved/.proq-worktrees/x; 1 commit that is not on main
            lane 'y' was kept: its folder was moved with the repository to [ROOT]/moved/.proq-worktrees/y
            --- code 0
            ");
        }
    }
    for args in [&["discard", "--force", "--dry-run", "y"][..], &["discard", "--force", "y"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.proq(args).shown(), @r"
            --- stderr
            error: lane 'y' was kept: its folder was moved with the repository to [ROOT]/moved/.proq-worktrees/y
            hint: make it whole: git worktree repair '[ROOT]/moved/.proq-worktrees/y'
            --- code 1
            ");
        }
    }
    follow(&sandbox);
    sandbox.assert_healthy();
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--porcelain"]), "?? draft");
    assert_eq!(sandbox.row("x")["path"], "[ROOT]/moved/.proq-worktrees/x");
    assert_eq!(sandbox.proq(&["cleanup", "y"]).ok(), "cleaned up y\n");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read(".proq-worktrees/x/draft"), "draft\n");
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn a_repository_that_left_its_lanes_behind_gets_them_back_by_the_hints() {
    let mut sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.lane.location", "../lanes/{lane}"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.sh_in(&sandbox.root(), "mv repo moved");
    sandbox.repo = sandbox.root().join("moved");
    assert!(sandbox.proq(&["cleanup"]).ok().is_empty());
    let list = sandbox.proq(&["list"]);
    let why = "[ROOT]/lanes/x is no worktree any more: its .git is gone or another";
    let warning = format!("warning: lane 'x': {why}: git worktree repair\n");
    assert!(list.stderr.contains(&warning), "{}", list.shown());
    follow(&sandbox);
    sandbox.assert_healthy();
    assert_eq!(sandbox.proq(&["cleanup", "x"]).ok(), "cleaned up x\n");
}

#[test]
fn a_lane_whose_folder_may_have_been_moved_is_not_cleaned_up_unasked() {
    let mut sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.lane.location", "../lanes/{lane}"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.sh_in(&sandbox.root(), "echo mine > lanes/x/mine; mv lanes far; mv repo moved");
    sandbox.repo = sandbox.root().join("moved");
    for args in [&["cleanup", "--dry-run", "x"][..], &["cleanup", "x"], &["discard", "x"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.proq(args).shown(), @r"
            --- stderr
            error: lane 'x' was kept: its folder is not at [ROOT]/lanes/x; it may have been moved with the repository, or lie on a disk that is not there
            hint: remove it all the same, saving everything first: git proq discard --force x
            --- code 1
            ");
        }
    }
    assert!(sandbox.proq(&["cleanup"]).ok().is_empty());
    assert_eq!(sandbox.row("x")["missing"], json!(["worktree"]));
    let out = sandbox.proq(&["discard", "--force", "x"]);
    assert_eq!(out.shown(), "discarded x\n--- code 0\n");
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.sh_in(&sandbox.root(), "mv far lanes; git -C moved worktree repair ../lanes/x");
    assert_eq!(std::fs::read_to_string(sandbox.root().join("lanes/x/mine")).unwrap(), "mine\n");
    sandbox.assert_healthy();
}

#[test]
fn a_copy_of_a_repository_takes_none_of_the_lanes_over() {
    let mut sandbox = with_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    sandbox.sh_in(&sandbox.root(), "cp -a repo copy");
    let copy = sandbox.root().join("copy");
    let original = std::mem::replace(&mut sandbox.repo, copy.clone());
    let doctor = sandbox.proq(&["doctor"]);
    let why = "lane 'x': [ROOT]/repo/.proq-worktrees/x is a worktree of another repository, [ROOT]/repo: ";
    assert!(doctor.stdout.contains(why), "{}", doctor.shown());
    let all = helps(&sandbox);
    assert!(all.len() == 2 && all.iter().all(|help| !help.contains("worktree repair")), "{all:?}");
    for args in [&["merge", "x"][..], &["discard", "x"], &["cleanup", "x"], &["run", "x", "claude", "go on"]]
    {
        let told = sandbox.proq(args).fails(1);
        assert!(told.contains("is a worktree of another repository"), "{args:?}: {told}");
    }
    follow(&sandbox);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!copy.join(".proq-worktrees/x").exists());
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read(".proq-worktrees/x/draft"), "draft\n");
    sandbox.assert_healthy();

    sandbox.repo = original;
    sandbox.assert_healthy();
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--porcelain"]), "?? draft");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
}

#[test]
fn a_copy_without_the_lanes_folders_lets_go_of_its_records_alone() {
    let mut sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.lane.location", "../lanes/{lane}"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.write_in(&sandbox.root(), "lanes/x/draft", "draft\n");
    sandbox.sh_in(&sandbox.root(), "cp -a repo copy");
    let copy = sandbox.root().join("copy");
    let original = std::mem::replace(&mut sandbox.repo, copy);
    assert_eq!(helps(&sandbox), ["git proq discard --force x"]);
    let _ = sandbox.proq(&["discard", "--force", "--dry-run", "x"]).ok();
    follow(&sandbox);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(helps(&sandbox), ["git proq discard --force x"]);
    sandbox.repo = original;
    sandbox.assert_healthy();
    assert_eq!(sandbox.git_in(&sandbox.root().join("lanes/x"), &["status", "--porcelain"]), "?? draft");
}

/// A lane that force removes and an undo brings back as it was found, and that the doctor's command makes whole.
#[track_caller]
fn goes_comes_back_and_is_made_whole(sandbox: &Sandbox, why: &str) {
    let list = sandbox.proq(&["list"]);
    assert!(list.stderr.contains(&format!("warning: lane 'x': {why}: ")), "{}", list.shown());
    for args in [&["merge", "x"][..], &["run", "x", "claude", "go on"], &["discard", "x"]] {
        let told = sandbox.proq(args);
        assert!(told.code == 1 && told.shown().contains(why), "{args:?}: {}", told.shown());
        assert!(told.stderr.contains("make it whole: "), "{args:?}: {}", told.shown());
    }
    let _ = sandbox.proq(&["discard", "--force", "--dry-run", "x"]).ok();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert_eq!(sandbox.git(&["branch", "--list", "proq/x"]), "");
    let _ = sandbox.proq(&["undo"]).ok();
    follow(sandbox);
    assert_eq!(sandbox.read(".proq-worktrees/x/own.txt"), "own\n");
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["branch", "--show-current"]), "proq/x");
}

#[test]
fn a_lane_whose_folder_became_a_link_or_a_file_is_made_whole() {
    let sandbox = with_lane();
    sandbox.sh("mv .proq-worktrees/x ../real; ln -s ../../nowhere .proq-worktrees/x");
    let why = "[ROOT]/repo/.proq-worktrees/x is a symbolic link, not a folder";
    goes_comes_back_and_is_made_whole(&sandbox, why);
    assert_eq!(sandbox.sh("readlink .proq-worktrees/x.old"), "../../nowhere");

    let sandbox = with_lane();
    sandbox
        .sh("mv .proq-worktrees/x ../real; echo mine > .proq-worktrees/x; echo old > .proq-worktrees/x.old");
    let why = "[ROOT]/repo/.proq-worktrees/x is a file, not a folder";
    goes_comes_back_and_is_made_whole(&sandbox, why);
    assert_eq!(sandbox.sh("cat .proq-worktrees/x.old .proq-worktrees/x.old2"), "old\nmine");
}

#[test]
fn a_lane_whose_folder_is_reached_by_a_link_is_told_to_git() {
    let sandbox = with_lane();
    sandbox.sh("mv .proq-worktrees/x ../real; ln -s ../../real .proq-worktrees/x");
    let refused = sandbox.proq(&["discard", "--force", "x"]);
    let _ = sandbox.proq(&["discard", "--force", "--dry-run", "x"]).fails(1);
    assert_eq!(hint(&refused, "make it whole: "), "git worktree repair '[ROOT]/real'");
    follow(&sandbox);
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!sandbox.root().join("real").exists());
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read(".proq-worktrees/x/draft"), "draft\n");
    assert_eq!(helps(&sandbox), Vec::<String>::new());
}

#[test]
fn a_lane_that_git_has_no_record_of_is_made_whole_or_goes() {
    let sandbox = with_lane();
    sandbox.sh("rm -r .git/worktrees/x");
    let why = "git has no record of [ROOT]/repo/.proq-worktrees/x as a worktree any more";
    goes_comes_back_and_is_made_whole(&sandbox, why);
    assert_eq!(sandbox.read(".proq-worktrees/x.old/draft"), "draft\n");
}

#[test]
fn a_lane_whose_git_file_is_gone_or_a_repository_is_made_whole() {
    for deed in ["rm .git", "rm .git; git init -q; echo mine > .git/mine"] {
        let sandbox = with_lane();
        sandbox.sh_in(&sandbox.lane("x"), deed);
        let why = "[ROOT]/repo/.proq-worktrees/x is no worktree any more: its .git is gone or another";
        goes_comes_back_and_is_made_whole(&sandbox, why);
        assert_eq!(sandbox.read(".proq-worktrees/x/draft"), "draft\n");
        if deed.contains("mine") {
            assert_eq!(sandbox.read(".proq-worktrees/x/.git.old/mine"), "mine\n");
        }
    }
}

#[test]
fn the_last_commit_of_a_branch_that_is_gone_is_named_and_kept() {
    let sandbox = with_lane();
    let lane = sandbox.lane("x");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.sh_in(&lane, "rm draft; git switch -q --detach main; git branch -q -D proq/x");
    let short = &tip[..8];
    let doctor = sandbox.proq(&["doctor"]);
    let why = format!("its last commit {short} is still there: git branch proq/x {short}");
    assert!(doctor.stdout.contains(&why), "{}", doctor.shown());
    assert_eq!(
        sandbox.proq(&["cleanup"]).shown(),
        format!("cleaned up x\n--- stderr\nits commits are kept: git branch NEW-NAME {short}\n--- code 0\n")
    );
    sandbox.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
    sandbox.git(&["cat-file", "-e", &tip]);
    let _ = sandbox.proq(&["undo"]).ok();
    follow(&sandbox);
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
}

#[test]
fn commits_on_a_detached_head_are_told_apart_from_those_of_a_branch_that_is_gone() {
    let sandbox = with_lane();
    let lane = sandbox.lane("x");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.sh_in(
        &lane,
        "git switch -q --detach; git add draft; git commit -q -m detached; git branch -q -D proq/x",
    );
    let head = sandbox.git_in(&lane, &["rev-parse", "HEAD"]);
    let (tip, head) = (&tip[..8], &head[..8]);
    // What the list says helps does, without a refusal.
    let list = sandbox.proq(&["list"]);
    let help = format!("warning: lane 'x' has no branch any more: git branch proq/x {tip}\n");
    assert!(list.stderr.contains(&help), "{}", list.shown());
    let doctor = sandbox.proq(&["doctor"]);
    assert!(doctor.stdout.contains(&format!("its last commit {tip} is still there")), "{}", doctor.shown());
    let out = sandbox.proq(&["cleanup", "--force", "x"]).shown();
    assert!(out.contains(&format!("its commits are kept: git branch NEW-NAME {tip}\n")), "{out}");
    let apart = format!("its commits on a detached HEAD ({head}) are kept: git branch NEW-NAME {head}\n");
    assert!(out.contains(&apart), "{out}");
}

#[test]
fn a_lane_without_a_folder_does_not_leave_one_in_the_trash() {
    let sandbox = with_lane();
    let tip = sandbox.git(&["rev-parse", "--short=8", "proq/x"]);
    sandbox.sh("rm -r .proq-worktrees/x; git update-ref -d refs/heads/proq/x");
    let doctor = sandbox.proq(&["doctor"]);
    assert!(doctor.stdout.contains("git proq cleanup x"), "{}", doctor.shown());
    let kept = format!("its commits are kept: git branch NEW-NAME {tip}\n");
    let out = sandbox.proq(&["discard", "x"]).shown();
    assert_eq!(out, format!("discarded x\n--- stderr\n{kept}--- code 0\n"));
    let _ = sandbox.proq(&["undo"]).ok();
    let out = sandbox.proq(&["cleanup", "x"]).shown();
    assert_eq!(out, format!("cleaned up x\n--- stderr\n{kept}--- code 0\n"));
}

#[test]
fn a_branch_that_was_renamed_gets_its_name_back_by_the_hint() {
    for now in ["renamed", "proq/x/deeper", "a;touch${IFS}pwned"] {
        let sandbox = with_lane();
        let tip = sandbox.git(&["rev-parse", "proq/x"]);
        sandbox.sh_in(&sandbox.lane("x"), &format!("rm draft; git branch -m '{now}'"));
        let doctor = sandbox.proq(&["doctor"]).stdout;
        let why = format!(
            "lane 'x' has no branch any more; it was renamed to '{now}': git branch -m '{now}' proq/x"
        );
        assert!(doctor.contains(&why) && !doctor.contains("switch proq/x"), "{doctor}");
        follow(&sandbox);
        assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
        assert!(sandbox.proq(&["doctor"]).ok().contains("all well"));
        assert!(!sandbox.repo.join("pwned").exists());
    }
}

#[test]
fn a_branch_in_reftable_files_that_was_renamed_gets_its_name_back_by_the_hint() {
    let sandbox = Sandbox::empty();
    if sandbox.git_version() < (2, 46) {
        return;
    }
    sandbox.sh("rm -rf .git; git init -q -b main --ref-format=reftable");
    sandbox.write("a.txt", "a\n");
    sandbox.commit_all("base");
    sandbox.lane_of("x", "echo own > own.txt");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.git(&["branch", "-m", "proq/x", "proq/x/deeper"]);
    for command in ["list", "doctor"] {
        let out = sandbox.proq(&[command]).shown();
        assert!(out.contains("git branch -m 'proq/x/deeper' proq/x"), "{out}");
    }
    follow(&sandbox);
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
    sandbox.assert_healthy();
}

#[test]
fn branches_below_the_name_of_one_that_is_gone_make_way_by_the_hint() {
    let sandbox = with_lane();
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.sh_in(&sandbox.lane("x"), "rm draft");
    sandbox.sh("git update-ref -d refs/heads/proq/x; git branch 'proq/x/a;b'; git branch proq/x/deep/c");
    follow(&sandbox);
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
    sandbox.sh("git rev-parse -q --verify 'x/a;b' x/deep/c >/dev/null || git rev-parse x/deep/c");
    sandbox.assert_healthy();
}

#[test]
fn a_branch_that_is_gone_without_a_log_is_made_again_where_its_worktree_is() {
    let sandbox = with_lane();
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.sh_in(
        &sandbox.lane("x"),
        "rm draft; git switch -q --detach; git branch -q -D proq/x; git reflog expire --expire=now --all; git gc -q --prune=now",
    );
    let doctor = sandbox.proq(&["doctor"]).stdout;
    assert!(doctor.contains(&format!("git branch proq/x {}", &tip[..8])), "{doctor}");
    follow(&sandbox);
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
}
