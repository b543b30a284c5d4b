//! Owns the tests of what a check leaves in the worktree that it runs in: nothing of it hides anything from the next one.

use std::path::PathBuf;

use super::support::Sandbox;

/// Notes all that a check can see of its worktree, but for when its files were written.
const LOOK: &str = "exec > $ROOT/seen 2>&1
    ls -Al . src | awk '$1 != \"total\" { print $1, $NF }'; for file in a.txt src/*; do echo $file; [ -p $file ] || cat $file; done
    git status --porcelain --ignored; git ls-files -sv; git config --worktree --list; git for-each-ref refs/bisect
    ls -A \"$(git rev-parse --git-dir)\" | grep -v logs; ls -A ..";

/// A repository with lane `x` and a folder of sources.
fn scene(format: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    if format == "reftable" {
        sandbox.sh("rm -rf .git; git init -q -b main --ref-format=reftable");
    }
    sandbox.sh("mkdir src; echo b > src/b; echo 'build/' > .gitignore; git add .; git commit -qm sources");
    sandbox.git(&["config", "extensions.worktreeConfig", "true"]);
    sandbox.lane_of("x", "echo x > x.txt");
    sandbox
}

/// The worktree that checks run in.
fn slot(sandbox: &Sandbox) -> PathBuf {
    let home = sandbox.root().join("home/.cache/git-proq/verify");
    std::fs::read_dir(home).unwrap().flatten().next().unwrap().path().join("slot-0")
}

/// What a check of lane `x` sees. Each `time` it is another check, and the lane lands once more.
fn look(sandbox: &Sandbox, time: usize) -> String {
    let _ = sandbox.proq(&["merge", "x", "--verify", &format!("{LOOK}; : {time}")]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    std::fs::read_to_string(sandbox.root().join("seen")).unwrap()
}

/// What was seen without the folder that git ignores.
fn but_for_build(seen: &str) -> String {
    seen.lines().filter(|line| !line.contains("build")).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_nothing_reaches_the_next(sandbox: &Sandbox, left: &[&str]) {
    let fresh = look(sandbox, 0);
    for (at, left) in left.iter().enumerate() {
        sandbox.sh_in(
            &slot(sandbox),
            &format!("mkdir -p build; echo warm > build/out; ({left}) > /dev/null 2>&1 || true"),
        );
        sandbox.sh("git config --unset core.checkStat || true; git config --unset core.trustctime || true");
        let seen = look(sandbox, at + 1);
        assert_eq!(but_for_build(&seen), but_for_build(&fresh), "after {left}");
        assert_eq!(
            std::fs::read_to_string(slot(sandbox).join("build/out")).unwrap(),
            "warm\n",
            "after {left}"
        );
    }
    sandbox.assert_healthy();
}

#[test]
fn whatever_a_check_leaves_the_next_sees_what_one_in_a_new_worktree_sees() {
    assert_nothing_reaches_the_next(
        &scene("files"),
        &[
            ":",
            "git sparse-checkout set --no-cone /a.txt",
            "git sparse-checkout set --cone --sparse-index build",
            "git config --worktree core.excludesFile \"$ROOT/all\"; echo '*' > $ROOT/all; echo left > left",
            "git config --worktree core.hooksPath /tmp; git config --worktree filter.x.clean cat",
            "echo other > a.txt; git update-index --skip-worktree a.txt",
            "echo other > src/b; git update-index --assume-unchanged src/b; rm a.txt; git update-index --skip-worktree a.txt",
            "git update-index --split-index; echo other > src/b; git update-index --assume-unchanged src/b",
            "git init -q src; echo left > src/left",
            "git init -q other; cp -r other/.git src/.git; echo left > other/left",
            "mkfifo pipe src/pipe; mkdir -p out; mkfifo out/pipe",
            "chmod 500 src; chmod 444 a.txt; chmod 755 src/b; chmod 700 .",
            "echo one > src/b; git commit -qam one; one=$(git rev-parse HEAD); git reset -q --hard HEAD~; echo two > src/b; git commit -qam two; git merge $one",
            "git bisect start; git bisect bad; git bisect good HEAD~",
            "touch \"$(git rev-parse --git-dir)/index.lock\"",
            "cp -p a.txt build/a; echo b > a.txt; touch -r build/a a.txt; git config core.trustctime false; git config core.checkStat minimal; git status",
            "rm a.txt; git -c core.autocrlf=true checkout a.txt",
            "rm -r src; mkdir build/src; echo b > build/src/b; ln -s build/src src",
        ],
    );
}

#[test]
fn where_refs_are_no_files_nothing_of_a_check_reaches_the_next_either() {
    if Sandbox::new().git_version() < (2, 45) {
        return;
    }
    let sandbox = scene("reftable");
    assert_nothing_reaches_the_next(
        &sandbox,
        &[":", "echo other > src/b; git update-index --skip-worktree src/b"],
    );
    // Refs of the worktree alone, in one file with HEAD: it is made anew.
    let fresh = look(&sandbox, 20);
    sandbox
        .sh_in(&slot(&sandbox), "git update-ref refs/bisect/bad HEAD; git update-ref CHERRY_PICK_HEAD HEAD");
    assert_eq!(but_for_build(&look(&sandbox, 21)), but_for_build(&fresh));
}

#[test]
fn a_check_that_narrows_its_worktree_hides_no_broken_file_from_the_next() {
    let sandbox = scene("files");
    let _ = sandbox.proq(&["merge", "x", "--verify", "git sparse-checkout set --no-cone /a.txt"]).ok();
    sandbox.lane_of("broken", "echo BROKEN > src/c");
    let before = sandbox.git(&["rev-parse", "main"]);
    let said = sandbox.proq(&["merge", "broken", "--verify", "! grep -r BROKEN ."]).fails(4);
    assert!(said.contains("check failed broken"), "{said}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
}

#[test]
fn a_submodule_that_one_check_has_filled_is_empty_for_the_next() {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "git config --global protocol.file.allow always
        git init -q ../lib; cd ../lib; echo good > lib.txt; git add .; git commit -qm 1
        cd ../repo; git submodule --quiet add \"$ROOT/lib\" sub; echo 'sub/*.log' > .gitignore; git add .; git commit -qm sub
        cd ../lib; echo bad > lib.txt; git commit -qam 2",
    );
    let check = "ls -A sub >> $ROOT/listed; ls \"$(git rev-parse --git-dir)\" | grep modules >> $ROOT/listed
        test -e sub/lib.txt || git submodule --quiet update --init; echo x > sub/left.log; ! grep bad sub/lib.txt";
    sandbox.lane_of("good", "echo good > good.txt");
    let _ = sandbox.proq(&["merge", "good", "--verify", check]).ok();
    sandbox.lane_of(
        "bad",
        "git submodule --quiet update --init; cd sub; git fetch -q; git checkout -q origin/HEAD",
    );
    let said = sandbox.proq(&["merge", "bad", "--verify", check]).fails(4);
    assert!(said.contains("check failed bad"), "{said}");
    assert_eq!(std::fs::read_to_string(sandbox.root().join("listed")).unwrap(), "");
    // One that is no submodule any more is gone.
    sandbox.lane_of("gone", "git rm -q sub");
    let _ = sandbox.proq(&["merge", "gone", "--verify", "test ! -e sub"]).ok();
}

#[test]
fn a_link_in_place_of_a_folder_above_a_submodule_leads_nowhere() {
    let sandbox = Sandbox::new();
    sandbox.sh("git config --global protocol.file.allow always
        git init -q ../lib; cd ../lib; echo lib > lib.txt; git add .; git commit -qm 1
        cd ../repo; mkdir libs; git submodule --quiet add \"$ROOT/lib\" libs/sub; git commit -qm sub
        mkdir -p ../mine/sub; echo mine > ../mine/sub/file");
    sandbox.lane_of("one", "echo one > one.txt");
    let _ = sandbox.proq(&["merge", "one", "--verify", "rm -r libs; ln -s $ROOT/mine libs"]).ok();
    sandbox.lane_of("two", "echo two > two.txt");
    let _ = sandbox
        .proq(&["merge", "two", "--verify", "test ! -L libs -a -d libs/sub -a ! -e libs/sub/file"])
        .ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("mine/sub/file")).unwrap(), "mine\n");
}

#[test]
fn a_lane_that_changes_how_files_are_written_is_checked_with_files_that_are_written_so() {
    let sandbox = scene("files");
    let check = "! grep -q $(printf '\\r') a.txt";
    let _ = sandbox.proq(&["merge", "x", "--verify", check]).ok();
    sandbox.lane_of("ends", "echo '*.txt eol=crlf' > .gitattributes");
    let said = sandbox.proq(&["merge", "ends", "--verify", check]).fails(4);
    assert!(said.contains("check failed ends"), "{said}");
    // So it is with a setting.
    sandbox.git(&["config", "core.autocrlf", "true"]);
    sandbox.lane_of("y", "echo y > y.txt");
    let _ = sandbox.proq(&["merge", "y", "--verify", "grep -q $(printf '\\r') a.txt"]).ok();
}

#[test]
fn files_that_no_check_wrote_to_stay_as_they_are_for_the_next() {
    let sandbox = scene("files");
    let check = "ls -i a.txt >> $ROOT/inodes; ls -l --time-style=+%s.%N a.txt >> $ROOT/inodes 2> /dev/null; git status; echo x > src/b";
    for (time, lane) in ["one", "two", "three"].into_iter().enumerate() {
        sandbox.lane_of(lane, &format!("echo {lane} > {lane}.txt"));
        let _ = sandbox.proq(&["merge", lane, "--verify", &format!("{check}; : {time}")]).ok();
    }
    let inodes = std::fs::read_to_string(sandbox.root().join("inodes")).unwrap();
    let mut lines: Vec<&str> = inodes.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert!(lines.len() <= 2, "{inodes}");
}

#[test]
fn a_pipe_in_place_of_a_file_that_git_reads_is_not_waited_for() {
    assert_nothing_reaches_the_next(
        &scene("files"),
        &[
            ":",
            "mkfifo src/.gitignore",
            "mkfifo .gitattributes .gitmodules src/.gitattributes",
            "rm .gitignore; mkfifo .gitignore",
            "mkdir -p n/n; mkfifo n/.gitattributes n/.gitignore n/n/.gitignore",
        ],
    );
    // A folder that is not ignored may hold some that are.
    let sandbox = scene("files");
    sandbox.lane_of("n", "mkdir n; echo n > n/n");
    let left =
        "mkdir -p n/build out/build; mkfifo n/.gitattributes out/.gitignore; echo warm > out/build/out";
    let _ = sandbox.proq(&["merge", "x", "--verify", left]).ok();
    let _ = sandbox.proq(&["merge", "n", "--verify", "test ! -e n/.gitattributes -a -e out/build/out"]).ok();
}

#[test]
fn rules_that_a_check_leaves_untracked_do_not_count_for_the_next() {
    let sandbox = scene("files");
    assert_nothing_reaches_the_next(
        &sandbox,
        &[
            ":",
            "echo '*' > src/.gitignore; echo left > src/left",
            "rm a.txt; echo '*.txt eol=crlf' > .gitattributes",
            "rm src/b; echo '* eol=crlf' > src/.gitattributes; git checkout src/b",
        ],
    );
    // What is ignored keeps its own, and so does a folder of caches that ignores itself.
    let left = "mkdir -p build/in .cache; echo '*.o' > build/in/.gitignore; echo '*' > .cache/.gitignore";
    let _ = sandbox.proq(&["merge", "x", "--verify", left]).ok();
    sandbox.lane_of("y", "echo y > y.txt");
    let _ =
        sandbox.proq(&["merge", "y", "--verify", "test -e build/in/.gitignore -a -e .cache/.gitignore"]).ok();
}

#[test]
fn permissions_that_a_check_gives_to_files_that_were_just_written_do_not_reach_the_next() {
    let sandbox = scene("files");
    let fresh = look(&sandbox, 0);
    for time in 1..4 {
        // Git compares times by the second.
        std::fs::remove_dir_all(slot(&sandbox)).unwrap();
        let left = format!("chmod 777 a.txt; chmod 400 src/b; chmod g+s,o+t src; : {time}");
        let _ = sandbox.proq(&["merge", "x", "--verify", &left]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(look(&sandbox, time), fresh);
    }
}

#[test]
fn what_a_check_leaves_beside_its_worktree_stops_no_later_one() {
    let sandbox = scene("files");
    for (name, left) in
        [("one", "echo x > ../slot-0.mode"), ("two", "mkdir -p ../slot-0.mode/x"), ("three", ":")]
    {
        sandbox.lane_of(name, &format!("echo {name} > {name}.txt"));
        let _ = sandbox.proq(&["merge", name, "--verify", left]).ok();
    }
    assert!(!slot(&sandbox).with_extension("mode").exists());
}

#[test]
fn a_check_whose_git_file_names_another_worktree_moves_no_head_there() {
    let sandbox = scene("files");
    sandbox.sh("echo mine > a.txt; git add a.txt");
    for other in [".git", ".git/worktrees/x"] {
        let left = format!("echo gitdir: $ROOT/repo/{other} > .git");
        let said = sandbox.proq(&["merge", "x", "--verify", &left]).fails(1);
        assert!(said.contains("was gone, or no worktree any more"), "{said}");
        assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["symbolic-ref", "HEAD"]), "refs/heads/proq/x");
        assert_eq!(sandbox.git(&["status", "--short"]), "M  a.txt");
    }
    let _ = sandbox.proq(&["merge", "x", "--verify", "test -e x.txt"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn settings_that_a_check_changes_lead_no_reset_out_of_its_worktree() {
    let sandbox = scene("files");
    sandbox.sh("echo mine > a.txt; echo mine > untracked.txt");
    // It is tried once more, in the same worktree.
    let check = "echo run >> $ROOT/runs; git config core.worktree $ROOT/repo; exit 1";
    let said = sandbox.proq(&["merge", "x", "--verify", check]).fails(1);
    assert!(said.contains("its core.worktree counts for every worktree"), "{said}");
    assert_eq!(std::fs::read_to_string(sandbox.root().join("runs")).unwrap(), "run\nrun\n");
    assert_eq!((sandbox.read("a.txt"), sandbox.read("untracked.txt")), ("mine\n".into(), "mine\n".into()));
    assert!(!sandbox.repo.join("x.txt").exists());
    // Nor does the landing write elsewhere after a check that is green.
    sandbox.sh("git config --unset core.worktree; git config --unset extensions.worktreeConfig; mkdir ../other; echo other > ../other/a.txt");
    let before = sandbox.git(&["rev-parse", "main"]);
    let said = sandbox.proq(&["merge", "x", "--verify", "git config core.worktree $ROOT/other"]).fails(1);
    assert!(said.contains("core.worktree is [ROOT]/other"), "{said}");
    sandbox.git(&["config", "--unset", "core.worktree"]);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.sh("ls ../other; cat ../other/a.txt"), "a.txt\nother");
}
