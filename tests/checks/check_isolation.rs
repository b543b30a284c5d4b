//! Tests that files, settings and refs that a check leaves in the check worktree do not affect the next
//! check.

use std::path::PathBuf;

use proq_test_kit::Sandbox;

/// Shell script that lists everything a check can see of its worktree, except file times.
const LIST_WORKTREE_SCRIPT: &str = "exec > $ROOT/seen 2>&1
    ls -Al . src | awk '$1 != \"total\" { print $1, $NF }'; for file in a.txt src/*; do echo $file; [ -p $file ] || cat $file; done
    git status --porcelain --ignored; git ls-files -sv; git config --worktree --list; git for-each-ref refs/bisect
    ls -A \"$(git rev-parse --git-dir)\" | grep -v logs; ls -A ..";

/// Creates a repository with lane `x` and a folder of sources.
fn repo_with_lane(format: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    if format == "reftable" {
        sandbox.sh("rm -rf .git; git init -q -b main --ref-format=reftable");
    }
    sandbox.sh("mkdir src; echo b > src/b; echo 'build/' > .gitignore; git add .; git commit -qm sources");
    sandbox.git(&["config", "extensions.worktreeConfig", "true"]);
    sandbox.lane_with_commit("x", "echo x > x.txt");
    sandbox
}

/// Returns the path of the check worktree.
fn check_worktree(sandbox: &Sandbox) -> PathBuf {
    let verify_dir = sandbox.root().join("home/.cache/git-proq/verify");
    std::fs::read_dir(verify_dir).unwrap().flatten().next().unwrap().path().join("git-proq-checks-1")
}

/// Returns the listing that a check of lane `x` makes. Another `time` makes it another check, so that it runs
/// again.
fn list_in_check(sandbox: &Sandbox, time: usize) -> String {
    let _ = sandbox.proq(&["merge", "x", "--verify", &format!("{LIST_WORKTREE_SCRIPT}; : {time}")]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    std::fs::read_to_string(sandbox.root().join("seen")).unwrap()
}

/// Returns the listing without lines about the ignored folder.
fn without_build_lines(listing: &str) -> String {
    listing.lines().filter(|line| !line.contains("build")).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_next_check_unaffected(sandbox: &Sandbox, left: &[&str]) {
    let fresh = list_in_check(sandbox, 0);
    for (at, left) in left.iter().enumerate() {
        sandbox.sh_in(
            &check_worktree(sandbox),
            &format!("mkdir -p build; echo warm > build/out; ({left}) > /dev/null 2>&1 || true"),
        );
        sandbox.sh("git config --unset core.checkStat || true; git config --unset core.trustctime || true");
        let listing = list_in_check(sandbox, at + 1);
        assert_eq!(without_build_lines(&listing), without_build_lines(&fresh), "after {left}");
        assert_eq!(
            std::fs::read_to_string(check_worktree(sandbox).join("build/out")).unwrap(),
            "warm\n",
            "after {left}"
        );
    }
    sandbox.assert_healthy();
}

/// Promise: checks/isolation
#[test]
fn next_check_gets_a_clean_worktree() {
    assert_next_check_unaffected(
        &repo_with_lane("files"),
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

/// Promise: checks/isolation
#[test]
fn next_check_gets_a_clean_worktree_with_reftable() {
    if Sandbox::new().git_version() < (2, 45) {
        return;
    }
    let sandbox = repo_with_lane("reftable");
    assert_next_check_unaffected(
        &sandbox,
        &[":", "echo other > src/b; git update-index --skip-worktree src/b"],
    );
    // Per-worktree refs share a file with HEAD here, which is created again.
    let fresh = list_in_check(&sandbox, 20);
    sandbox.sh_in(
        &check_worktree(&sandbox),
        "git update-ref refs/bisect/bad HEAD; git update-ref CHERRY_PICK_HEAD HEAD",
    );
    assert_eq!(without_build_lines(&list_in_check(&sandbox, 21)), without_build_lines(&fresh));
}

/// Promise: checks/isolation
#[test]
fn sparse_check_hides_no_file_from_next_check() {
    let sandbox = repo_with_lane("files");
    let _ = sandbox.proq(&["merge", "x", "--verify", "git sparse-checkout set --no-cone /a.txt"]).ok();
    sandbox.lane_with_commit("broken", "echo BROKEN > src/c");
    let before = sandbox.git(&["rev-parse", "main"]);
    let output = sandbox.proq(&["merge", "broken", "--verify", "! grep -r BROKEN ."]).fails(4);
    assert!(output.contains("check failed on broken"), "{output}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
}

/// Promise: checks/isolation
#[test]
fn submodule_of_one_check_is_empty_for_the_next() {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "git config --global protocol.file.allow always
        git init -q ../lib; cd ../lib; echo good > lib.txt; git add .; git commit -qm 1
        cd ../repo; git submodule --quiet add \"$ROOT/lib\" sub; echo 'sub/*.log' > .gitignore; git add .; git commit -qm sub
        cd ../lib; echo bad > lib.txt; git commit -qam 2",
    );
    let check = "ls -A sub >> $ROOT/listed; ls \"$(git rev-parse --git-dir)\" | grep modules >> $ROOT/listed
        test -e sub/lib.txt || git submodule --quiet update --init; echo x > sub/left.log; ! grep bad sub/lib.txt";
    sandbox.lane_with_commit("good", "echo good > good.txt");
    let _ = sandbox.proq(&["merge", "good", "--verify", check]).ok();
    sandbox.lane_with_commit(
        "bad",
        "git submodule --quiet update --init; cd sub; git fetch -q; git checkout -q origin/HEAD",
    );
    let output = sandbox.proq(&["merge", "bad", "--verify", check]).fails(4);
    assert!(output.contains("check failed on bad"), "{output}");
    assert_eq!(std::fs::read_to_string(sandbox.root().join("listed")).unwrap(), "");
    // The folder of a removed submodule is deleted.
    sandbox.lane_with_commit("gone", "git rm -q sub");
    let _ = sandbox.proq(&["merge", "gone", "--verify", "test ! -e sub"]).ok();
}

/// Promise: checks/isolation
#[test]
fn symlink_above_submodule_is_not_followed() {
    let sandbox = Sandbox::new();
    sandbox.sh("git config --global protocol.file.allow always
        git init -q ../lib; cd ../lib; echo lib > lib.txt; git add .; git commit -qm 1
        cd ../repo; mkdir libs; git submodule --quiet add \"$ROOT/lib\" libs/sub; git commit -qm sub
        mkdir -p ../mine/sub; echo mine > ../mine/sub/file");
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let _ = sandbox.proq(&["merge", "one", "--verify", "rm -r libs; ln -s $ROOT/mine libs"]).ok();
    sandbox.lane_with_commit("two", "echo two > two.txt");
    let _ = sandbox
        .proq(&["merge", "two", "--verify", "test ! -L libs -a -d libs/sub -a ! -e libs/sub/file"])
        .ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("mine/sub/file")).unwrap(), "mine\n");
}

/// Promise: checks/line-endings
#[test]
fn eol_changes_rewrite_files_before_the_check() {
    let sandbox = repo_with_lane("files");
    let check = "! grep -q $(printf '\\r') a.txt";
    let _ = sandbox.proq(&["merge", "x", "--verify", check]).ok();
    sandbox.lane_with_commit("ends", "echo '*.txt eol=crlf' > .gitattributes");
    let output = sandbox.proq(&["merge", "ends", "--verify", check]).fails(4);
    assert!(output.contains("check failed on ends"), "{output}");
    // A changed setting has the same effect.
    sandbox.git(&["config", "core.autocrlf", "true"]);
    sandbox.lane_with_commit("y", "echo y > y.txt");
    let _ = sandbox.proq(&["merge", "y", "--verify", "grep -q $(printf '\\r') a.txt"]).ok();
}

/// Promise: checks/line-endings
#[test]
fn unchanged_files_are_not_rewritten() {
    let sandbox = repo_with_lane("files");
    let check = "ls -i a.txt >> $ROOT/inodes; ls -l --time-style=+%s.%N a.txt >> $ROOT/inodes 2> /dev/null; git status; echo x > src/b";
    for (time, lane) in ["one", "two", "three"].into_iter().enumerate() {
        sandbox.lane_with_commit(lane, &format!("echo {lane} > {lane}.txt"));
        let _ = sandbox.proq(&["merge", lane, "--verify", &format!("{check}; : {time}")]).ok();
    }
    let inodes = std::fs::read_to_string(sandbox.root().join("inodes")).unwrap();
    let mut lines: Vec<&str> = inodes.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert!(lines.len() <= 2, "{inodes}");
}

/// Promise: checks/next-check-runs
#[test]
fn fifo_in_place_of_git_file_does_not_block() {
    assert_next_check_unaffected(
        &repo_with_lane("files"),
        &[
            ":",
            "mkfifo src/.gitignore",
            "mkfifo .gitattributes .gitmodules src/.gitattributes",
            "rm .gitignore; mkfifo .gitignore",
            "mkdir -p n/n; mkfifo n/.gitattributes n/.gitignore n/n/.gitignore",
        ],
    );
    // A folder that is not ignored may contain ignored folders.
    let sandbox = repo_with_lane("files");
    sandbox.lane_with_commit("n", "mkdir n; echo n > n/n");
    let left =
        "mkdir -p n/build out/build; mkfifo n/.gitattributes out/.gitignore; echo warm > out/build/out";
    let _ = sandbox.proq(&["merge", "x", "--verify", left]).ok();
    let _ = sandbox.proq(&["merge", "n", "--verify", "test ! -e n/.gitattributes -a -e out/build/out"]).ok();
}

/// Promise: checks/isolation
#[test]
fn untracked_rules_do_not_affect_next_check() {
    let sandbox = repo_with_lane("files");
    assert_next_check_unaffected(
        &sandbox,
        &[
            ":",
            "echo '*' > src/.gitignore; echo left > src/left",
            "rm a.txt; echo '*.txt eol=crlf' > .gitattributes",
            "rm src/b; echo '* eol=crlf' > src/.gitattributes; git checkout src/b",
        ],
    );
    // Ignored folders keep their own rules, and so does a cache folder that ignores itself.
    let left = "mkdir -p build/in .cache; echo '*.o' > build/in/.gitignore; echo '*' > .cache/.gitignore";
    let _ = sandbox.proq(&["merge", "x", "--verify", left]).ok();
    sandbox.lane_with_commit("y", "echo y > y.txt");
    let _ =
        sandbox.proq(&["merge", "y", "--verify", "test -e build/in/.gitignore -a -e .cache/.gitignore"]).ok();
}

/// Promise: checks/isolation
#[test]
fn file_modes_are_reset_for_next_check() {
    let sandbox = repo_with_lane("files");
    let fresh = list_in_check(&sandbox, 0);
    for time in 1..4 {
        // Git compares times by the second, so new files seem unchanged to it.
        std::fs::remove_dir_all(check_worktree(&sandbox)).unwrap();
        let left = format!("chmod 777 a.txt; chmod 400 src/b; chmod g+s,o+t src; : {time}");
        let _ = sandbox.proq(&["merge", "x", "--verify", &left]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(list_in_check(&sandbox, time), fresh);
    }
}

/// Promise: checks/next-check-runs
#[test]
fn files_beside_check_worktree_stop_no_check() {
    let sandbox = repo_with_lane("files");
    for (name, left) in [
        ("one", "echo x > ../git-proq-checks-1.mode"),
        ("two", "mkdir -p ../git-proq-checks-1.mode/x"),
        ("three", ":"),
    ] {
        sandbox.lane_with_commit(name, &format!("echo {name} > {name}.txt"));
        let _ = sandbox.proq(&["merge", name, "--verify", left]).ok();
    }
    assert!(!check_worktree(&sandbox).with_extension("mode").exists());
}

/// Promise: checks/redirected-worktree
#[test]
fn redirected_git_file_moves_no_other_head() {
    let sandbox = repo_with_lane("files");
    sandbox.sh("echo mine > a.txt; git add a.txt");
    for other in [".git", ".git/worktrees/x"] {
        let left = format!("echo gitdir: $ROOT/repo/{other} > .git");
        let output = sandbox.proq(&["merge", "x", "--verify", &left]).fails(1);
        assert!(output.contains("the checks removed their worktree"), "{output}");
        assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["symbolic-ref", "HEAD"]), "refs/heads/proq/x");
        assert_eq!(sandbox.git(&["status", "--short"]), "M  a.txt");
    }
    let _ = sandbox.proq(&["merge", "x", "--verify", "test -e x.txt"]).ok();
    sandbox.assert_healthy();
}

/// Promise: checks/redirected-worktree
#[test]
fn changed_core_worktree_redirects_no_reset() {
    let sandbox = repo_with_lane("files");
    sandbox.sh("echo mine > a.txt; echo mine > untracked.txt");
    // The failed check is repeated once, in the same worktree.
    let check = "echo run >> $ROOT/runs; git config core.worktree $ROOT/repo; exit 1";
    let output = sandbox.proq(&["merge", "x", "--verify", check]).fails(1);
    assert!(output.contains("its core.worktree counts for every worktree"), "{output}");
    assert_eq!(std::fs::read_to_string(sandbox.root().join("runs")).unwrap(), "run\nrun\n");
    assert_eq!((sandbox.read("a.txt"), sandbox.read("untracked.txt")), ("mine\n".into(), "mine\n".into()));
    assert!(!sandbox.repo.join("x.txt").exists());
    // After a successful check the landing must not write elsewhere either.
    sandbox.sh("git config --unset core.worktree; git config --unset extensions.worktreeConfig; mkdir ../other; echo other > ../other/a.txt");
    let before = sandbox.git(&["rev-parse", "main"]);
    let output = sandbox.proq(&["merge", "x", "--verify", "git config core.worktree $ROOT/other"]).fails(1);
    assert!(output.contains("core.worktree is [ROOT]/other"), "{output}");
    sandbox.git(&["config", "--unset", "core.worktree"]);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.sh("ls ../other; cat ../other/a.txt"), "a.txt\nother");
}
