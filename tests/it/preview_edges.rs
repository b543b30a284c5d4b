//! Owns the tests of a preview whose surroundings are against it: a base that moved, files in the way, locks, hands.

use std::fs::File;

use super::preview_identity::{nothing_is_left, same, waiting_snaps};
use super::support::{Image, Output, Sandbox, names};

fn sandbox_with(lane: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 1 20 > long.txt; echo k > keep.txt; echo '*.log' > .gitignore");
    sandbox.commit_all("base");
    sandbox.lane_of("one", lane);
    sandbox
}

/// A command is refused and everything is as it was, refs included. Of files that had moved aside and came back a
/// snapshot is left for a time.
#[track_caller]
fn refused(sandbox: &Sandbox, args: &[&str], code: i32) -> String {
    let refs = ["for-each-ref", "refs/heads", "refs/proq/saved", "refs/proq/conflict"];
    let state = || (Image::of(sandbox, &sandbox.repo), sandbox.git(&refs), waiting_snaps(sandbox));
    let before = state();
    let text = sandbox.proq(args).fails(code);
    let after = state();
    same(&before.0, &after.0);
    assert_eq!((before.1, before.2), (after.1, after.2), "refs, snapshots");
    text
}

/// The command that an answer gives after `what`.
#[track_caller]
fn told(out: &Output, what: &str) -> String {
    told_in(&out.stderr, what)
}

#[track_caller]
fn told_in(text: &str, what: &str) -> String {
    let at = text.find(what).unwrap_or_else(|| panic!("{text}"));
    text[at + what.len()..].lines().next().unwrap().trim().to_owned()
}

#[test]
fn an_ignored_file_where_the_lane_has_one_refuses_it() {
    let sandbox = sandbox_with("echo lane > x.log; git add -f x.log; echo lane > keep.txt");
    sandbox.sh("echo precious > x.log; echo s > a.txt; git add a.txt; echo u > a.txt; echo u > untracked");
    let text = refused(&sandbox, &["preview", "one"], 1);
    assert!(text.contains("do not track") || text.contains("does not track"), "{text}");
    assert!(text.contains("x.log"), "{text}");
    nothing_is_left(&sandbox);
}

#[test]
fn an_ignored_folder_where_the_lane_has_a_file_refuses_it() {
    let sandbox = sandbox_with("echo lane > x.log; git add -f x.log");
    sandbox.sh("mkdir x.log; echo precious > x.log/in");
    let text = refused(&sandbox, &["preview", "one"], 1);
    assert!(text.contains("x.log/in"), "{text}");
    nothing_is_left(&sandbox);
}

#[test]
fn ignored_files_stay_although_the_lane_does_not_ignore_them() {
    let sandbox = sandbox_with("echo '*.tmp' > .gitignore; echo lane > lane.txt");
    sandbox.lane_of("two", "git rm -q .gitignore");
    sandbox.sh("echo precious > x.log; mkdir d; echo l > d/y.log; echo mine > a.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    // Made here, ignored here, and untracked in the next lane: nobody's edit there.
    sandbox.sh("echo t > z.tmp");
    let _ = sandbox.proq(&["preview", "two"]).ok();
    assert_eq!(sandbox.read("z.tmp"), "t\n");
    assert_eq!(sandbox.read("x.log"), "precious\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("rm z.tmp");
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    nothing_is_left(&sandbox);
}

#[test]
fn open_operations_refuse_it() {
    for (what, begin) in [
        ("merge", "git merge -q side"),
        ("rebase", "git rebase -q side"),
        ("cherry-pick", "git cherry-pick side"),
        ("revert", "git revert --no-commit HEAD"),
        ("bisect", "git bisect start"),
    ] {
        let sandbox = sandbox_with("echo lane > lane.txt");
        sandbox.sh("git switch -qc side; echo side > a.txt; git commit -qam side; git switch -q main; echo main > a.txt; git commit -qam main");
        sandbox.sh(&format!("{begin} > /dev/null 2>&1 || true"));
        let text = refused(&sandbox, &["preview", "one"], 1);
        let unmerged = text.contains("has unmerged paths: a.txt");
        assert!(unmerged || text.contains(&format!("a {what} is under way")), "{what}: {text}");
        nothing_is_left(&sandbox);
        if !unmerged {
            sandbox.sh(&format!("{} > /dev/null 2>&1", told_in(&text, "or give it up: ")));
            let _ = sandbox.proq(&["preview", "one"]).ok();
        }
    }
}

#[test]
fn held_locks_of_git_refuse_it() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("echo mine > a.txt; echo u > untracked");
    let lock = sandbox.repo.join(".git/index.lock");
    drop(File::create(&lock).unwrap());
    let text = refused(&sandbox, &["preview", "one"], 5);
    assert!(text.contains("another git command is running"), "{text}");
    std::fs::remove_file(&lock).unwrap();
    nothing_is_left(&sandbox);
    let lock = sandbox.repo.join(".git/HEAD.lock");
    drop(File::create(&lock).unwrap());
    let _ = refused(&sandbox, &["preview", "one"], 5);
    std::fs::remove_file(&lock).unwrap();
    nothing_is_left(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
}

#[test]
fn the_way_back_is_refused_whole_while_head_is_locked() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("echo mine > a.txt");
    let home = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo edit > keep.txt; echo n > new.txt; git add new.txt");
    let lock = sandbox.repo.join(".git/HEAD.lock");
    drop(File::create(&lock).unwrap());
    let _ = refused(&sandbox, &["preview", "--back"], 5);
    std::fs::remove_file(&lock).unwrap();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&home, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn a_base_that_moved_takes_the_changes_on_top() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.lane_of("other", "sed -i s/^20$/twenty/ long.txt; echo o > other.txt; chmod +x keep.txt");
    sandbox.sh("sed -i s/^1$/one/ long.txt; git add long.txt; sed -i s/^3$/three/ long.txt; echo u > untracked; mkdir -p void; rm a.txt; echo n > ann; git add -N ann");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "other"]).ok();
    let back = sandbox.proq(&["preview", "--back"]);
    insta::assert_snapshot!(back.shown(), @r"
    the main checkout is on main again
    --- stderr
    your changes are back, on top of what main is now
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.git(&["status", "--short"]), @r"
     D a.txt
     A ann
    MM long.txt
    ?? untracked
    ");
    let staged = sandbox.git(&["show", ":long.txt"]);
    assert!(staged.starts_with("one\n2\n3\n") && staged.ends_with("\ntwenty"), "{staged}");
    let now = sandbox.read("long.txt");
    assert!(now.starts_with("one\n2\nthree\n") && now.ends_with("\ntwenty\n"), "{now}");
    assert_eq!((sandbox.read("untracked"), sandbox.read("other.txt")), ("u\n".into(), "o\n".into()));
    assert!(sandbox.repo.join("void").is_dir());
    assert_eq!(waiting_snaps(&sandbox), Vec::<String>::new());
}

#[test]
fn changes_that_conflict_with_the_moved_base_stay_in_a_snapshot_that_git_applies() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.lane_of("other", "echo other > a.txt; echo other > b.txt");
    sandbox
        .sh("echo mine > a.txt; echo u > untracked; echo s > staged; git add staged; echo later >> staged");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "other"]).ok();
    let out = sandbox.proq(&["preview", "--back"]);
    let command = told(&out, "bring them back and resolve: ");
    let _ = out.fails(3);
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
    assert_eq!(sandbox.git(&["for-each-ref", "--format=x", "refs/proq/snap"]), "x");
    assert!(command.starts_with("git stash apply "), "{command}");
    sandbox.sh(&format!("{command} > /dev/null 2>&1 || true"));
    assert_eq!(sandbox.read("untracked"), "u\n");
    assert_eq!(sandbox.read("staged"), "s\nlater\n");
    let text = sandbox.read("a.txt");
    assert!(text.contains("mine") && text.contains("other") && text.contains("<<<<<<<"), "{text}");
    // The preview is over: nothing tries to bring the changes back a second time.
    let _ = sandbox.proq(&["preview", "--back"]).fails(1);
}

#[test]
fn an_untracked_file_that_the_base_has_got_meanwhile_is_a_conflict() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.lane_of("other", "echo other > new.txt");
    sandbox.sh("echo mine > new.txt; echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "other"]).ok();
    let out = sandbox.proq(&["--json", "preview", "--back"]);
    let id = out.json()["snapshot"].as_str().unwrap().to_owned();
    assert_eq!(out.json()["conflicts"][0], "new.txt");
    let _ = out.fails(3);
    assert_eq!(sandbox.read("new.txt"), "other\n");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.git(&["show", &format!("{id}^3:new.txt")]), "mine");
}

#[test]
fn a_base_that_moved_in_a_clean_way_and_went_back_is_exact() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&[
        "update-ref",
        "refs/heads/main",
        &sandbox.git(&["commit-tree", "-p", "main", "-m", "same", "main^{tree}"]),
    ]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let after = Image::of(&sandbox, &sandbox.repo);
    assert_eq!((before.files, before.index, before.status), (after.files, after.index, after.status));
}

#[test]
fn switching_home_by_hand_brings_the_changes_back_with_the_next_command() {
    let sandbox = sandbox_with("echo lane > a.txt; echo lane > lane.txt");
    sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt; echo n > lane.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    nothing_is_left(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.lane_of("two", "echo two > two.txt");
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    nothing_is_left(&sandbox);
}

#[test]
fn changes_in_the_way_of_coming_home_by_hand_are_named_and_both_kept() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("echo mine > a.txt; echo u > u.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("git switch -q main; echo edit > a.txt");
    let text = sandbox.proq(&["preview", "--back"]).fails(1);
    assert!(text.contains("stand in their way: a.txt"), "{text}");
    assert_eq!(sandbox.read("a.txt"), "edit\n");
    sandbox.git(&["checkout", "-q", "a.txt"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!((sandbox.read("a.txt"), sandbox.read("u.txt")), ("mine\n".into(), "u\n".into()));
    nothing_is_left(&sandbox);
}

#[test]
fn a_third_branch_by_hand_is_refused_with_the_way_back() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("git branch other; echo mine > a.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    for detached in [false, true] {
        if detached {
            sandbox.sh("git stash -q; git checkout -q --detach; git stash pop -q");
        }
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.git(&["switch", "-q", "other"]);
        let _ = refused(&sandbox, &["preview", "one"], 1);
        let _ = refused(&sandbox, &["preview", "--refresh"], 1);
        let out = sandbox.proq(&["preview", "--back"]);
        let command = told(&out, "go back first: ");
        let _ = out.fails(1);
        let (switch, rest) = command.split_once(" && ").unwrap();
        assert_eq!(rest, "git proq preview --back");
        sandbox.sh(&format!("{switch} 2> /dev/null"));
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        let after = Image::of(&sandbox, &sandbox.repo);
        assert_eq!((&before.files, &before.index), (&after.files, &after.index));
        nothing_is_left(&sandbox);
    }
}

#[test]
fn an_origin_that_is_gone_is_named_and_nothing_changes() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("git switch -qc topic; echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let tip = sandbox.git(&["rev-parse", "topic"]);
    sandbox.git(&["branch", "-qD", "topic"]);
    let text = refused(&sandbox, &["preview", "--back"], 1);
    assert!(text.contains("branch 'topic', which the preview was entered from, is gone"), "{text}");
    sandbox.git(&["branch", "topic", &tip]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn there_is_no_preview_in_a_bare_repository() {
    let sandbox = Sandbox::new();
    sandbox.sh("git clone -q --bare . ../bare.git");
    let bare = sandbox.root().join("bare.git");
    let _ = sandbox.proq_in(&bare, &["spawn", "--empty", "-n", "one"]).ok();
    let text = sandbox.proq_in(&bare, &["preview", "one"]).fails(1);
    assert!(text.contains("this is a bare repository; it has no main checkout"), "{text}");
}

#[test]
fn a_lane_that_lands_or_goes_leaves_its_preview_first() {
    for (args, moved) in [
        (&["merge", "proq/one"][..], true),
        (&["merge", "--all"], true),
        (&["discard", "--force", "one"], false),
        (&["cleanup", "--force", "one"], false),
    ] {
        let sandbox = sandbox_with("echo lane > lane.txt");
        sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt; echo u > untracked");
        let before = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(args).ok();
        assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main", "{args:?}");
        assert_eq!(sandbox.repo.join("lane.txt").exists(), moved, "{args:?}");
        let after = Image::of(&sandbox, &sandbox.repo);
        assert_eq!(before.status, after.status, "{args:?}");
        assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/proq"]), "", "{args:?}");
        assert_eq!(waiting_snaps(&sandbox), Vec::<String>::new(), "{args:?}");
    }
}

#[test]
fn a_lane_that_may_not_land_or_go_keeps_its_preview() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let text = refused(&sandbox, &["discard", "one"], 1);
    assert!(text.contains("1 commit that is not on main"), "{text}");
    sandbox.write_in(&sandbox.lane("one"), "left.txt", "left\n");
    let text = refused(&sandbox, &["merge", "one"], 1);
    assert!(text.contains("uncommitted work: left.txt"), "{text}");
}

#[test]
fn commits_made_in_a_preview_land_with_their_lane() {
    for args in [["merge", "empty"], ["merge", "--all"]] {
        let sandbox = Sandbox::new();
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "empty"]).ok();
        let _ = sandbox.proq(&["preview", "empty"]).ok();
        sandbox.sh("echo made > made.txt; git add .; git commit -qm made");
        let _ = sandbox.proq(&args).ok();
        assert_eq!(sandbox.read("made.txt"), "made\n");
        assert_eq!(sandbox.git(&["log", "-1", "--format=%P", "main"]).split(' ').count(), 2);
    }
}

#[test]
fn hooks_run_when_the_locks_are_gone() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    let hook = "#!/bin/sh\nset -e\ntest ! -e .git/index.lock; test ! -e .git/HEAD.lock\n\
                git proq list -q > /dev/null; git commit -q --allow-empty -m \"by the $1 hook\" < /dev/null\n\
                echo ran >> \"$ROOT/ran\"\n";
    for name in ["post-checkout", "post-merge"] {
        let path = format!(".git/hooks/{name}");
        sandbox.write(&path, hook);
        sandbox.sh(&format!("chmod +x {path}"));
    }
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.read("../ran"), "ran\nran\nran\n");
}

#[test]
fn submodules_stay_where_they_are_also_where_git_is_told_to_take_them_along() {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "git init -q ../lib; cd ../lib; echo 1 > f; git add f; git commit -qm 1; echo 2 > f; git commit -qam 2
         cd \"$OLDPWD\"; git -c protocol.file.allow=always submodule add -q ../lib lib
         git -C lib checkout -q HEAD~1; git add lib; git config submodule.recurse true",
    );
    sandbox.commit_all("lib at 1");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    let lane = sandbox.lane("one");
    let second = sandbox.git_in(&sandbox.root().join("lib"), &["rev-parse", "HEAD"]);
    sandbox.git_in(&lane, &["update-index", "--cacheinfo", &format!("160000,{second},lib")]);
    sandbox.git_in(&lane, &["commit", "-qm", "lib at 2"]);
    let before = Image::of(&sandbox, &sandbox.repo);
    for (args, told) in [(&["preview", "one"][..], true), (&["preview", "--back"], false)] {
        let out = sandbox.proq(args);
        assert_eq!(out.stderr.contains("the folder of submodule lib stays as it is"), told, "{}", out.stderr);
        let _ = out.ok();
        assert_eq!(sandbox.read("lib/f"), "1\n");
        assert_eq!(sandbox.git_in(&sandbox.repo.join("lib"), &["log", "--format=%s", "HEAD"]), "1");
    }
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    assert!(sandbox.proq(&["snap", "list"]).ok().is_empty(), "no edits were made");
}

#[test]
fn edits_inside_a_submodule_keep_no_undo_from_being_made() {
    let sandbox = Sandbox::new();
    sandbox.sh("git init -q ../lib; cd ../lib; echo 1 > f; git add f; git commit -qm 1
         cd \"$OLDPWD\"; git -c protocol.file.allow=always submodule add -q ../lib lib");
    sandbox.commit_all("lib");
    sandbox.lane_of("one", "echo lane > lane.txt");
    for edit in ["true", "echo mine >> a.txt"] {
        sandbox.sh(&format!("echo mine >> lib/f; {edit}"));
        let before = Image::of(&sandbox, &sandbox.repo);
        for args in [&["preview", "one"][..], &["preview", "--back"], &["undo"]] {
            let _ = sandbox.proq(args).ok();
        }
        assert!(sandbox.repo.join("lane.txt").exists());
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
}

/// A tracked file in a folder that is ignored, and a lane that changes another file.
fn with_an_ignored_folder() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("l/f", "f\n");
    sandbox.write("k", "k\n");
    sandbox.write(".gitignore", "l\n");
    sandbox.sh("git add -A; git add -f l/f; git commit -qm first; mkdir ../outside");
    sandbox.lane_of("x", "echo lane >a.txt");
    sandbox.write("k", "mine\n");
    sandbox
}

#[test]
fn nothing_is_written_or_taken_behind_a_link_in_place_of_a_folder() {
    for (deed, outside) in [
        ("rm -r l; ln -s ../outside l", ""),
        ("mv l/f ../outside/f; rmdir l; ln -s ../outside l", "f"),
        ("mv l/f ../outside/f; rmdir l; ln -s ../outside l; echo mine >../outside/f", "f"),
    ] {
        let sandbox = with_an_ignored_folder();
        sandbox.sh(deed);
        let state = || {
            sandbox
                .sh("git status --porcelain; cat k; ls -l ../outside; cat ../outside/* || true; readlink l")
        };
        let before = state();
        let _ = sandbox.proq(&["preview", "x"]).ok();
        assert_eq!(sandbox.read("l/f"), "f\n", "{deed}");
        assert!(!sandbox.repo.join("l").is_symlink(), "{deed}");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(state(), before, "{deed}");
        assert_eq!(names(&sandbox.root().join("outside")).join(" "), outside, "{deed}");
        sandbox.assert_healthy();
    }
}

#[test]
fn an_untracked_file_that_meets_one_that_landed_comes_back_on_a_branch_of_its_own() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.lane_of("two", "echo landed > mine");
    sandbox.sh("echo mine > mine; echo edit > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).ok();
    let out = sandbox.proq(&["preview", "--back"]);
    let command = told(&out, "bring them back on a branch of its own: ");
    let _ = out.fails(3);
    sandbox.sh(&command.replace("NAME", "own"));
    assert_eq!((sandbox.read("mine").as_str(), sandbox.read("a.txt").as_str()), ("mine\n", "edit\n"));
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "own");
}

#[test]
fn an_untracked_file_that_meets_what_lands_in_a_preview_is_kept_with_a_command_that_works() {
    let sandbox = sandbox_with("echo landed > mine");
    sandbox.sh("echo mine > mine");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo more > more; git add more; git commit -qm more; git branch -f main HEAD; echo x > x; git add x; git commit -qm x");
    let out = sandbox.proq(&["merge", "one"]);
    let command = told(&out, "they are kept: ");
    let _ = out.ok();
    sandbox.sh(&command.replace("NAME", "own"));
    assert_eq!(sandbox.read("mine"), "mine\n");
}
