//! Owns the tests of commands that meet a repository in which git has been used in between: worktrees on disks that are not there,
//! branches that are gone, an index with open conflicts, folders that stand for their files.

use super::preview_identity::same;
use super::snap::ids;
use super::support::{Image, Sandbox};

#[test]
fn a_folder_that_stands_for_its_files_in_the_index_stays_left_out() {
    let stray = "mkdir b; git show main:b/f >b/f; echo stray >>b/f";
    for (lane, stray) in
        [("echo new >c/g", "true"), ("echo new >c/g", stray), ("true", "true"), ("true", stray)]
    {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir a b c; for d in a b c; do seq 9 >$d/f; done");
        sandbox.commit_all("base");
        sandbox.lane_of("one", &format!("echo lane >>b/f; {lane}"));
        sandbox.lane_of("two", "echo two >>c/f");
        sandbox.sh(&format!("git sparse-checkout set --cone --sparse-index a; echo own >>a/f; {stray}"));
        let before = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        assert!(!sandbox.repo.join("c").exists(), "{stray}");
        assert_eq!(sandbox.git(&["show", ":b/f"]).lines().last(), Some("lane"));
        let _ = sandbox.proq(&["preview", "two"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["merge", "two"]).ok();
        assert!(!sandbox.repo.join("c").exists(), "{stray}");
        let _ = sandbox.proq(&["undo"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
}

#[test]
fn a_base_whose_worktree_is_on_a_disk_that_is_not_there_blocks_its_own_landings_alone() {
    let sandbox = Sandbox::new();
    sandbox
        .sh("git branch other; git switch -q other; git worktree add -q ../wt main; git worktree lock ../wt");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one", "--base", "main"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two", "--base", "other"]).ok();
    for lane in ["one", "two"] {
        sandbox.sh_in(&sandbox.lane(lane), &format!("echo {lane} >{lane}; git add .; git commit -qm {lane}"));
    }
    sandbox.sh("mv ../wt ../gone");
    let main = sandbox.git(&["rev-parse", "main"]);
    let refused = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(refused.contains("wt is not there any more"), "{refused}");
    assert!(refused.contains("hint: see which worktrees there are: git worktree list"), "{refused}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    let _ = sandbox.proq(&["merge", "two"]).ok();
    sandbox.sh("mv ../gone ../wt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("mv ../wt ../gone");
    let refused = sandbox.proq(&["undo"]).fails(1);
    assert!(refused.contains("wt is not there any more; nothing was changed"), "{refused}");
    let _ = sandbox.proq(&["list"]).ok();
    sandbox.sh("mv ../gone ../wt");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
}

#[test]
fn open_conflicts_refuse_a_landing_and_its_undo_by_name() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("zero", "echo zero >zero");
    sandbox.lane_of("one", "echo l >new");
    let _ = sandbox.proq(&["merge", "zero"]).ok();
    sandbox.sh("echo mine >a.txt; git stash -q; echo theirs >a.txt; git commit -qam theirs");
    let conflict = "git stash pop >/dev/null 2>&1 || true";
    sandbox.sh(conflict);
    let before = Image::of(&sandbox, &sandbox.repo);
    for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
        let refused = sandbox.proq(args).fails(1);
        assert!(refused.contains("has unmerged paths: a.txt"), "{refused}");
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
    sandbox.sh("git checkout -q HEAD a.txt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh(conflict);
    let refused = sandbox.proq(&["undo"]).fails(1);
    assert!(refused.contains("has unmerged paths: a.txt"), "{refused}");
}

#[test]
fn an_undo_names_the_branch_that_is_gone_and_how_to_make_it_again() {
    let sandbox = Sandbox::new();
    let make_again = |refused: &str| {
        let hint = refused.lines().find_map(|line| line.strip_prefix("hint: make it again: "));
        sandbox.sh(hint.unwrap_or_else(|| panic!("{refused}")));
    };
    sandbox.sh("git switch -qc feat");
    sandbox.lane_of("one", "echo l >new");
    let before = sandbox.git(&["rev-parse", "feat"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("git switch -q main; git branch -qD feat");
    for args in [&["undo", "--dry-run"][..], &["undo"]] {
        let refused = sandbox.output(sandbox.proq_command(&sandbox.repo, args));
        assert!(
            refused.code != 0 && refused.stderr.contains("no branch 'feat' any more"),
            "{}",
            refused.shown()
        );
        if args.len() == 1 {
            make_again(&refused.stderr);
        }
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "feat"]), before);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("git branch -m main trunk");
    for args in [&["undo", "--dry-run"][..], &["undo"]] {
        let refused = sandbox.output(sandbox.proq_command(&sandbox.repo, args));
        assert!(
            refused.code != 0 && refused.stderr.contains("no branch 'main' any more"),
            "{}",
            refused.shown()
        );
        if args.len() == 1 {
            make_again(&refused.stderr);
        }
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["status", "--branch", "--porcelain"]), "## main");
}

#[test]
fn an_undo_of_a_preview_that_was_left_for_another_branch_says_where_to_go() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo l >new");
    sandbox.sh("git branch other");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("git switch -q other");
    let out = sandbox.output(sandbox.proq_command(&sandbox.repo, &["undo"]));
    assert!(out.code != 0 && out.stderr.contains("any more; nothing was changed"), "{}", out.shown());
    let hint = out.stderr.lines().find_map(|line| line.strip_prefix("hint: go back there first: "));
    sandbox.sh(&hint.unwrap().replace("[ROOT]/repo", "."));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["status", "--branch", "--porcelain"]), "## main");
}

#[test]
fn an_undo_on_a_branch_that_was_renamed_says_how_to_make_it_again_and_go_there() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo l >new");
    sandbox.sh("echo mine >>a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git branch -m main trunk");
    for args in [&["undo", "--dry-run"][..], &["undo"]] {
        let out = sandbox.output(sandbox.proq_command(&sandbox.repo, args));
        assert!(out.code != 0 && out.stderr.contains("is not on 'main' any more"), "{}", out.shown());
        let hint =
            out.stderr.lines().find_map(|line| line.strip_prefix("hint: make it again and go there first: "));
        if args.len() == 1 {
            sandbox.sh(&hint.unwrap().replace("[ROOT]/repo", "."));
        }
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read("new"), "l\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--branch", "--porcelain"]), "## main\n M a.txt");
}

#[test]
fn a_snapshot_that_came_back_in_a_worktree_which_is_gone_stays_there() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one >one");
    sandbox.sh("echo mine >>a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git worktree add -q -b other ../w");
    let ids = ids(&sandbox);
    let there = sandbox.root().join("w");
    let _ = sandbox.proq_in(&there, &["snap", "restore", ids.last().unwrap()]).ok();
    sandbox.sh("mv ../w ../gone");
    for command in [&["undo"][..], &["undo", "--dry-run"]] {
        let refused = sandbox.proq(command).fails(1);
        assert!(refused.contains("/w is not there any more; nothing was changed"), "{refused}");
        assert!(refused.contains("hint: see what of it is still there: git proq op show"), "{refused}");
    }
    sandbox.sh("mv ../gone ../w");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git_in(&there, &["status", "--short"]), "");
}

#[test]
fn commands_in_hints_name_a_folder_with_an_apostrophe_as_a_shell_reads_it() {
    let mut sandbox = Sandbox::new();
    let odd = sandbox.root().join("it's (here)");
    std::fs::rename(&sandbox.repo, &odd).unwrap();
    sandbox.repo = odd;
    let run = |command: &str| {
        let command = command.replace("[ROOT]", sandbox.root().to_str().unwrap());
        sandbox.sh(&format!("export GIT_EDITOR='echo by hand >'; {command}"));
    };
    sandbox.lane_of("one", "echo one > one.txt");
    sandbox.sh_in(&sandbox.lane("one"), "echo n > new.txt");
    let json = sandbox.proq(&["merge", "one", "--json"]).json();
    run(json["lanes"][0]["hints"][0].as_str().unwrap().split_once(": ").unwrap().1);
    assert_eq!(sandbox.git_in(&sandbox.lane("one"), &["status", "--short"]), "");
    // What a list and the doctor propose, too.
    sandbox.sh("rm -r .proq-worktrees/one");
    let listed = sandbox.proq(&["list"]).stderr;
    run(listed.lines().find_map(|line| line.split_once("no worktree any more: ")).unwrap().1);
    assert!(sandbox.lane("one").join("new.txt").exists());
    sandbox.sh("echo broken > .git/worktrees/one/index");
    let listed = sandbox.proq(&["list"]).stderr;
    run(listed.lines().find_map(|line| line.split_once("no index that git can read: ")).unwrap().1);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.read("new.txt"), "n\n");
    let spawned = sandbox.proq(&["spawn", "--empty", "-n", "two"]).stderr;
    run(spawned.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap());
}
