//! Tests of landings whose base is checked out, dirty, in use by another git operation, or moving.

use std::path::{Path, PathBuf};

use proq_test_kit::{Output, Sandbox, WorktreeState};

fn sandbox_with(lane: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 1 20 > long.txt; echo k > keep.txt; echo '*.log' > .gitignore");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", lane);
    sandbox
}

/// Adds a worktree named `name` beside the repository; `PATH` in `args` stands for its path.
fn add_worktree(sandbox: &Sandbox, name: &str, args: &str) -> PathBuf {
    sandbox.sh(&format!("git worktree add -q {args}").replace("PATH", &format!("../{name}")));
    sandbox.root().join(name)
}

/// Asserts that merging lane `one` fails with `code` and changes no ref and no file. Returns the output.
#[track_caller]
fn assert_refused_unchanged(sandbox: &Sandbox, code: i32) -> String {
    let before = (sandbox.git(&["for-each-ref"]), WorktreeState::capture(sandbox, &sandbox.repo));
    let text = sandbox.proq(&["merge", "one"]).fails(code);
    assert_eq!(before, (sandbox.git(&["for-each-ref"]), WorktreeState::capture(sandbox, &sandbox.repo)));
    assert!(sandbox.lane_path("one").exists());
    text
}

#[test]
fn keeps_local_changes_the_landing_does_not_touch() {
    let sandbox = sandbox_with("echo lane > a.txt; echo lane > lane.txt; mkdir d; echo lane > d/f");
    sandbox.sh("echo s > keep.txt; git add keep.txt; echo u > keep.txt; sed -i s/^9$/nine/ long.txt; echo u > untracked; mkdir -p d; echo u > d/own; git add -N untracked; echo i > x.log; echo n > new; git add new; git rm -q --cached .gitignore");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let mut after = WorktreeState::capture(&sandbox, &sandbox.repo);
    assert_eq!(before.status, after.status);
    for (path, text) in [("a.txt", "644 lane\\n"), ("lane.txt", "644 lane\\n"), ("d/f", "644 lane\\n")] {
        assert_eq!(after.files.remove(path).as_deref(), Some(text));
    }
    let mut files = before.files;
    files.remove("a.txt");
    assert_eq!(files, after.files);
    assert_eq!(sandbox.git(&["show", ":keep.txt"]), "s");
}

/// Promise: worktree/overlapping-changes
#[test]
fn refuses_overlapping_local_changes_by_name() {
    for (dirty, name) in [
        ("echo mine > a.txt", "a.txt"),
        ("echo mine > a.txt; git add a.txt", "a.txt"),
        ("rm a.txt", "a.txt"),
        ("chmod +x a.txt", "a.txt"),
        ("git update-index --assume-unchanged a.txt; echo mine > a.txt", "a.txt"),
        ("git update-index --skip-worktree a.txt; echo mine > a.txt", "a.txt"),
        ("echo mine > lane.txt", "lane.txt"),
        ("echo mine > lane.txt; git add lane.txt", "lane.txt"),
        ("echo mine > x.log", "x.log"),
        ("echo file > d", "d"),
        ("mkdir lane.txt; echo mine > lane.txt/in", "lane.txt/in"),
        ("mkdir d; ln -s ../a.txt d/f", "d/f"),
    ] {
        let lane = "echo lane > a.txt; echo lane > lane.txt; mkdir d; echo lane > d/f; echo l > x.log; git add -f x.log";
        let sandbox = sandbox_with(lane);
        sandbox.sh(dirty);
        let text = assert_refused_unchanged(&sandbox, 1);
        assert!(text.contains(&format!("in the way: {name}; nothing was changed")), "{dirty}: {text}");
    }
}

#[test]
fn updates_unedited_flagged_files_and_keeps_flags() {
    let sandbox = sandbox_with("echo lane > a.txt; echo lane > keep.txt");
    sandbox.sh("git update-index --skip-worktree a.txt; git update-index --assume-unchanged keep.txt; touch -d 2001-01-01 a.txt keep.txt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!((sandbox.read("a.txt"), sandbox.read("keep.txt")), ("lane\n".into(), "lane\n".into()));
    let flags = sandbox.git(&["ls-files", "-v", "a.txt", "keep.txt"]);
    assert_eq!(flags, "S a.txt\nh keep.txt");
}

#[test]
fn moves_base_that_is_not_checked_out() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("git switch -qc topic; echo mine > a.txt; echo u > untracked");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(before, WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_eq!(sandbox.git(&["show", "main:a.txt"]), "lane");
}

#[test]
fn updates_linked_worktree_that_has_the_base() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("git switch -qc topic");
    let linked = add_worktree(&sandbox, "linked", "PATH main");
    sandbox.write_in(&linked, "keep.txt", "mine\n");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(std::fs::read_to_string(linked.join("a.txt")).unwrap(), "lane\n");
    assert_eq!(sandbox.git_in(&linked, &["status", "--short"]), " M keep.txt");
    assert_eq!(sandbox.read("a.txt"), "a\n");
}

/// Promise: worktree/follower-hint
#[test]
fn updates_both_worktrees_on_the_base() {
    let sandbox = sandbox_with("echo lane > a.txt; echo lane > lane.txt");
    let second = add_worktree(&sandbox, "second", "-f PATH main");
    sandbox.sh_in(
        &second,
        "echo s > keep.txt; git add keep.txt; sed -i s/^9$/nine/ long.txt; echo u > untracked",
    );
    let out = sandbox.proq(&["merge", "one"]);
    assert_eq!((out.code, out.stderr.as_str()), (0, "hint: undo it: git proq undo\n"), "{}", out.to_text());
    for dir in [&sandbox.repo, &second] {
        assert_eq!(std::fs::read_to_string(dir.join("a.txt")).unwrap(), "lane\n");
        assert!(dir.join("lane.txt").exists());
    }
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.git_in(&second, &["status", "--short"]), "M  keep.txt\n M long.txt\n?? untracked");
    // The next commit in the second worktree contains the landing.
    sandbox.git_in(&second, &["commit", "-qm", "next"]);
    assert_eq!(sandbox.git(&["show", "main:a.txt"]), "lane");
}

/// Promise: worktree/base-worktrees-follow
#[test]
fn refuses_when_second_worktree_cannot_follow() {
    for (dirty, reason) in [
        ("echo mine > a.txt", "in the way: a.txt"),
        ("echo mine > lane.txt", "in the way: lane.txt"),
        ("git merge -q --no-commit --no-ff side", "a merge is in progress"),
    ] {
        let sandbox = sandbox_with("echo lane > a.txt; echo lane > lane.txt");
        sandbox.sh(
            "git switch -qc side; echo side > side.txt; git add .; git commit -qm side; git switch -q main",
        );
        let second = add_worktree(&sandbox, "second", "-f PATH main");
        sandbox.sh_in(&second, dirty);
        let before = WorktreeState::capture(&sandbox, &second);
        let text = assert_refused_unchanged(&sandbox, 1);
        assert!(text.contains(reason) && text.contains("second"), "{text}");
        assert_eq!(before, WorktreeState::capture(&sandbox, &second));
    }
}

/// Lands lane `one` while `hook_commands` run in a hook, right after the base moved, so that a second
/// worktree on the base cannot follow. Runs the command of the warning. Returns the sandbox, the second
/// worktree and the reason in the warning.
#[track_caller]
fn land_with_second_worktree_left_behind(hook_commands: &str) -> (Sandbox, PathBuf, String) {
    let sandbox = sandbox_with("sed -i s/^1$/one/ long.txt; echo lane > lane.txt");
    let second = add_worktree(&sandbox, "second", "-f PATH main");
    sandbox.sh_in(&second, "echo s > keep.txt; git add keep.txt");
    let hook = sandbox.repo.join(".git/hooks/reference-transaction");
    let script =
        format!("#!/bin/sh\n[ $1 = committed ] && grep -q refs/heads/main || exit 0\n{hook_commands}\n");
    std::fs::write(&hook, script).unwrap();
    sandbox.sh("chmod +x .git/hooks/reference-transaction");
    let out = sandbox.proq(&["merge", "one"]);
    std::fs::remove_file(hook).unwrap();
    let (warning, hint) = out.stderr.trim_end().split_once('\n').unwrap();
    assert_eq!((out.code, hint), (0, "hint: undo it: git proq undo"), "{}", out.to_text());
    let (reason, command) = warning.split_once("; before you commit there: ").unwrap();
    assert!(reason.contains("second is on 'main' too and was not updated: "), "{reason}");
    sandbox.sh(&command.replace("[ROOT]", sandbox.root().to_str().unwrap()));
    assert_eq!(sandbox.git_in(&second, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(std::fs::read_to_string(second.join("lane.txt")).unwrap(), "lane\n");
    assert_eq!(std::fs::read_to_string(second.join("keep.txt")).unwrap(), "s\n");
    (sandbox, second, reason.to_owned())
}

/// Promise: worktree/follower-hint
#[test]
fn hint_updates_worktree_whose_index_was_locked() {
    let (sandbox, second, reason) =
        land_with_second_worktree_left_behind(": > $ROOT/repo/.git/worktrees/second/index.lock");
    assert!(reason.contains("another git command is running in [ROOT]/second"), "{reason}");
    assert_eq!(sandbox.git_in(&second, &["status", "--short"]), "M  keep.txt");
}

/// Promise: worktree/follower-hint
#[test]
fn hint_updates_worktree_edited_during_landing() {
    let (sandbox, second, reason) =
        land_with_second_worktree_left_behind("echo mine >> $ROOT/second/long.txt");
    assert!(reason.contains("are in the way: long.txt"), "{reason}");
    let long = std::fs::read_to_string(second.join("long.txt")).unwrap();
    assert!(long.starts_with("one\n2\n") && long.ends_with("20\nmine\n"), "{long}");
    assert_eq!(sandbox.git_in(&second, &["diff", "--name-only", "HEAD"]), "keep.txt\nlong.txt");
}

/// Promise: worktree/base-mid-rebase
#[test]
fn refuses_base_in_rebase_or_bisect_elsewhere() {
    for (command, operation) in [("git rebase -q side", "rebase"), ("git bisect start main main~2", "bisect")]
    {
        let sandbox = sandbox_with("echo lane > lane.txt");
        sandbox.sh("git switch -qc side; echo side > a.txt; git commit -qam side; git switch -q main; echo main > a.txt; git commit -qam main; git switch -qc topic");
        let linked = add_worktree(&sandbox, "linked", "PATH main");
        sandbox.sh_in(&linked, &format!("{command} > /dev/null 2>&1 || true"));
        assert_eq!(sandbox.git_in(&linked, &["rev-parse", "--abbrev-ref", "HEAD"]), "HEAD");
        let text = assert_refused_unchanged(&sandbox, 1);
        assert!(text.contains(&format!("a {operation} of 'main' is in progress in [ROOT]/linked")), "{text}");
    }
}

/// Promise: worktree/open-operation
#[test]
fn refuses_open_operation_or_held_lock_on_base() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("git switch -qc side; echo side > side; git add .; git commit -qm side; git switch -q main; git merge -q --no-commit --no-ff side");
    let text = assert_refused_unchanged(&sandbox, 1);
    assert!(text.contains("a merge is in progress in [ROOT]/repo"), "{text}");
    sandbox.sh("git merge --abort; : > .git/index.lock");
    let text = assert_refused_unchanged(&sandbox, 5);
    assert!(text.contains("another git command is running"), "{text}");
    for lock in ["HEAD.lock", "refs/heads/main.lock"] {
        // The lock counts as younger than the landing, as if another git had just taken it.
        sandbox.sh(&format!("rm -f .git/*.lock; : > .git/{lock}; touch -t 203501010000 .git/{lock}"));
        let text = assert_refused_unchanged(&sandbox, 1);
        let atomic_text = sandbox.proq(&["merge", "one", "--atomic"]).fails(1);
        for expected in ["cannot merge into 'main': ", lock, "nothing was changed"] {
            assert!(text.contains(expected) && atomic_text.contains(expected), "{lock}: {text}{atomic_text}");
        }
        sandbox.sh(&format!("rm .git/{lock}"));
    }
    let _ = sandbox.proq(&["merge", "one"]).ok();
}

#[test]
fn unrelated_history_is_refused_and_others_land() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.lane_with_commit(
        "alien",
        "git checkout -q --orphan x; git commit -qm alien; git branch -qM x proq/alien",
    );
    let out = sandbox.proq(&["merge", "alien", "one"]);
    assert!(out.stdout.contains("refused alien"), "{}", out.stdout);
    assert!(out.stdout.contains("no common history with main"), "{}", out.stdout);
    let _ = out.fails(1);
    assert!(sandbox.repo.join("lane.txt").exists());
}

#[test]
fn signs_merge_commits_or_refuses() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    let program = sandbox.root().join("gpg");
    sandbox.sh(r#"printf '#!/bin/sh\ncat > /dev/null\necho "[GNUPG:] SIG_CREATED " >&2\necho "-----BEGIN PGP SIGNATURE-----"\necho fake\necho "-----END PGP SIGNATURE-----"\n' > ../gpg; chmod +x ../gpg; git config commit.gpgSign true"#);
    sandbox.git(&["config", "gpg.program", program.to_str().unwrap()]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let commit = sandbox.git(&["cat-file", "commit", "main"]);
    assert!(commit.contains("gpgsig -----BEGIN PGP SIGNATURE-----\n fake\n"), "{commit}");
    // A signing program that fails refuses the landing.
    sandbox.sh("printf '#!/bin/sh\\nexit 1\\n' > ../gpg");
    sandbox.git(&["config", "commit.gpgSign", "false"]);
    sandbox.lane_with_commit("two", "echo two > two.txt");
    sandbox.git(&["config", "commit.gpgSign", "true"]);
    let tip = sandbox.git(&["rev-parse", "main"]);
    let text = sandbox.proq(&["merge", "two"]).fails(1);
    assert!(text.contains("gpg failed to sign the data"), "{text}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
}

#[test]
fn reads_attributes_from_base_not_checkout() {
    let merge_both_sides = |union: &str, dirty: &str| -> (Sandbox, Output) {
        let sandbox = Sandbox::new();
        sandbox.sh(&format!("mkdir sub; echo top > sub/log.txt; {union}"));
        sandbox.commit_all("base");
        sandbox.lane_with_commit("one", "echo lane >> sub/log.txt");
        sandbox.sh("echo main >> sub/log.txt; git commit -qam main");
        sandbox.sh(dirty);
        let out = sandbox.proq(&["merge", "one"]);
        (sandbox, out)
    };
    let rule = "echo 'log.txt merge=union' > sub/.gitattributes";
    let (sandbox, out) = merge_both_sides(rule, "");
    let _ = out.ok();
    assert_eq!(sandbox.read("sub/log.txt"), "top\nmain\nlane\n");
    let (_, out) = merge_both_sides("true", rule);
    let _ = out.fails(3);
    let (sandbox, out) = merge_both_sides(rule, "echo '# none' > sub/.gitattributes");
    let _ = out.ok();
    assert_eq!(sandbox.git(&["show", "main:sub/log.txt"]), "top\nmain\nlane");
}

#[test]
fn post_merge_hook_runs_in_the_base_checkout() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("mkdir -p .git/hooks; printf '#!/bin/sh\\necho \"$1 $(git rev-parse HEAD) $(test -e .git/index.lock; echo $?)\" >> ../hooked\\n' > .git/hooks/post-merge; chmod +x .git/hooks/post-merge");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let hook_output = std::fs::read_to_string(sandbox.root().join("hooked")).unwrap();
    assert_eq!(hook_output, format!("0 {} 1\n", sandbox.git(&["rev-parse", "main"])));
}

#[test]
fn writes_landed_files_through_filters() {
    let sandbox = Sandbox::new();
    sandbox.sh("git config filter.big.clean 'sed s/^.*$/pointer/'; git config filter.big.smudge 'sed s/^.*$/content/'; git config filter.big.required true");
    sandbox.sh("echo '*.big filter=big' > .gitattributes; echo '*.txt text' >> .gitattributes; printf 'x\\n' > f.txt; echo content > f.big");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "printf 'x\\ny\\n' > f.txt; printf 'content\\ncontent\\n' > f.big");
    sandbox.sh("git config core.autocrlf true; rm f.txt; git checkout -q f.txt; echo content > own.big; git add own.big");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.read("f.txt"), "x\r\ny\r\n");
    assert_eq!(sandbox.read("f.big"), "content\ncontent\n");
    assert_eq!(sandbox.git(&["show", "main:f.big"]), "pointer\npointer");
    assert_eq!(sandbox.git(&["status", "--short"]), "A  own.big");
}

/// Promise: concurrency/queue-order
#[test]
fn concurrent_landings_all_land() {
    let sandbox = sandbox_with("echo one > one.txt");
    let names: Vec<String> = (0..4).map(|n| format!("lane{n}")).collect();
    for name in &names {
        sandbox.lane_with_commit(name, &format!("echo {name} > {name}.txt"));
    }
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| sandbox.proq(&["merge", name]).ok());
        }
    });
    for name in &names {
        assert_eq!(sandbox.read(&format!("{name}.txt")), format!("{name}\n"));
    }
    assert_eq!(sandbox.git(&["rev-list", "--count", "--merges", "main"]), "4");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

/// Starts a git command and waits until it is paused in its pre-commit hook, which reads the pipe `go`.
fn spawn_commit_paused_in_hook(sandbox: &Sandbox, args: &[&str]) -> std::process::Child {
    sandbox.sh("mkfifo ../begun ../go; mkdir -p .git/hooks; printf '#!/bin/sh\\necho > ../begun\\nread x < ../go\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let child = sandbox.command("git", &sandbox.repo).args(args).spawn().unwrap();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("begun")).unwrap(), "\n");
    child
}

fn release_hook(dir: &Path) {
    std::fs::write(dir.join("go"), "go\n").unwrap();
}

/// Promise: worktree/no-commit-slips-in
#[test]
fn landing_survives_a_commit_paused_in_its_hook() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("echo mine > keep.txt; git add keep.txt");
    let mut child = spawn_commit_paused_in_hook(&sandbox, &["commit", "-qm", "racing"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    release_hook(&sandbox.root());
    assert!(!child.wait().unwrap().success(), "git must see that the branch has moved");
    assert_eq!(sandbox.git(&["show", "main:a.txt"]), "lane");
    assert_eq!(sandbox.git(&["status", "--short"]), "M  keep.txt");
    assert_eq!(sandbox.read("a.txt"), "lane\n");
}

/// Promise: worktree/no-commit-slips-in
#[test]
fn commit_holding_the_index_refuses_landing() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("echo mine > keep.txt");
    let mut child = spawn_commit_paused_in_hook(&sandbox, &["commit", "-qam", "racing"]);
    let text = sandbox.proq(&["merge", "one"]).fails(5);
    assert!(text.contains("another git command is running"), "{text}");
    release_hook(&sandbox.root());
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "racing");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!((sandbox.read("a.txt"), sandbox.read("keep.txt")), ("lane\n".into(), "mine\n".into()));
}

/// Landed history stays on the base, so all its objects must exist, including those that only older commits
/// refer to.
#[test]
fn refuses_lane_whose_history_lacks_an_object() {
    for missing in ["HEAD~1:d/passing", "HEAD~1:d", "HEAD:stays", "HEAD~1"] {
        let sandbox = sandbox_with("mkdir d; echo once > d/passing");
        sandbox.sh_in(
            &sandbox.lane_path("one"),
            "git rm -q d/passing; echo 1 > stays; git add -A; git commit -qm two",
        );
        let id = sandbox.git_in(&sandbox.lane_path("one"), &["rev-parse", missing]);
        let object = sandbox.repo.join(".git/objects").join(&id[..2]).join(&id[2..]);
        std::fs::rename(&object, sandbox.root().join("away")).unwrap();
        let _ = assert_refused_unchanged(&sandbox, 1);
        std::fs::rename(sandbox.root().join("away"), &object).unwrap();
        let _ = sandbox.proq(&["merge", "one"]).ok();
    }
}

/// git considers such a file changed until it has read it again.
#[test]
fn touched_but_unchanged_files_do_not_block() {
    let sandbox = sandbox_with("echo lane >> a.txt; git rm -q keep.txt");
    sandbox.sh("touch -d 2001-01-01 a.txt keep.txt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert!(sandbox.read("a.txt").ends_with("lane\n"));
}

#[test]
fn reports_landed_lane_that_could_not_be_removed() {
    let sandbox = Sandbox::new();
    for lane in ["one", "two", "three"] {
        sandbox.lane_with_commit(lane, &format!("echo {lane} > {lane}"));
    }
    sandbox.sh(r#"cat > .git/hooks/reference-transaction <<'END'
#!/bin/sh
[ "$1" = prepared ] || exit 0
while read -r old new ref; do
    case "$ref $new" in "refs/heads/proq/three 000"*) echo 'three stays' >&2; exit 1;; esac
done
END
chmod +x .git/hooks/reference-transaction"#);
    let text = sandbox.proq(&["merge", "--all"]).ok();
    let line = text.lines().find(|line| line.starts_with("landed three")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("three stays") && !line.contains("nothing was"), "{line}");
    assert!(line.contains("; the lane was kept: "), "{line}");
    assert_eq!(sandbox.git(&["show", "main:three"]), "three");
}
