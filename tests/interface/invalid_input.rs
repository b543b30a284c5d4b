//! Tests of refused input: one clear error line, a hint, the right exit code, nothing partly created, no
//! backtrace.

use std::process::Stdio;

use proq_test_kit::conflict::hint_commands;
use proq_test_kit::{Output, Sandbox};

/// Asserts that there is one error line, at least one hint, and no sign of a crash.
#[track_caller]
fn assert_clear_error(out: &Output) {
    let heads = out.stderr.lines().filter(|l| l.starts_with("error: ")).count();
    assert_eq!(heads, 1, "{}", out.stderr);
    assert!(out.stderr.contains("\nhint: "), "{}", out.stderr);
    for bad in ["panicked", "RUST_BACKTRACE", "stack backtrace", "Error {", "Some(", "git::"] {
        assert!(!out.stderr.contains(bad), "{}", out.stderr);
    }
}

#[test]
fn every_command_reports_missing_repository() {
    let sandbox = Sandbox::new();
    let nowhere = sandbox.root().join("home");
    insta::assert_snapshot!(sandbox.proq_in(&nowhere, &["list"]).to_text(), @r"
    --- stderr
    error: not a git repository: [ROOT]/home
    hint: run it inside a repository, or create one: git init
    --- code 1
    ");
    for args in [
        &[][..],
        &["spawn", "--empty"],
        &["merge", "--all"],
        &["preview", "x"],
        &["wait"],
        &["cleanup"],
        &["config", "list"],
    ] {
        let out = sandbox.proq_in(&nowhere, args);
        assert_eq!(out.code, 1);
        assert_clear_error(&out);
    }
    assert_eq!(sandbox.proq_in(&nowhere, &["agents"]).code, 0);
}

#[test]
fn names_missing_folder() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["-C", "nowhere", "list"]).to_text(), @r"
    --- stderr
    error: [ROOT]/repo/nowhere is not a folder
    hint: -C takes a folder that exists
    --- code 2
    ");
    insta::assert_snapshot!(sandbox.proq(&["-C", "a.txt", "list"]).to_text(), @r"
    --- stderr
    error: [ROOT]/repo/a.txt is not a folder
    hint: -C takes a folder that exists
    --- code 2
    ");
    let removed_dir = sandbox.root().join("gone");
    std::fs::create_dir(&removed_dir).unwrap();
    let mut command = sandbox.command("sh", &removed_dir);
    command.args(["-c", "rmdir ../gone; git-proq list"]);
    insta::assert_snapshot!(sandbox.output(command).to_text(), @r"
    --- stderr
    error: the current folder no longer exists
    hint: change to your home folder: cd
    --- code 1
    ");
}

#[test]
fn unborn_branch_cannot_start_a_lane() {
    let sandbox = Sandbox::empty();
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "x"]).to_text(), @r"
    --- stderr
    error: cannot create a lane: branch 'main' has no commit yet
    hint: create a first commit: git commit --allow-empty -m 'Start'
    --- code 1
    ");
    assert_clear_error(&sandbox.proq(&["spawn", "--empty", "-n", "x", "--base", "main"]));
    insta::assert_snapshot!(sandbox.proq(&["preview", "x"]).to_text(), @r"
    --- stderr
    error: there is no lane 'x'
    hint: see all: git proq list
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["list"]).code, 0);
    assert_eq!(sandbox.proq(&["merge", "--all"]).code, 0);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

#[test]
fn spawn_refuses_invalid_names_with_reason() {
    let sandbox = Sandbox::new();
    let long = "x".repeat(300);
    let mut all = String::new();
    for name in [
        "-x",
        "--force",
        "../x",
        "x/y",
        "x.lock",
        "x..y",
        "@{",
        "🚀",
        "",
        ".x",
        "a b",
        "x\ny",
        "$(id)",
        "x-preview",
        "batch-1",
        long.as_str(),
    ] {
        let out = sandbox.proq(&["spawn", "--empty", "-n", name]);
        assert_eq!(out.code, 2, "{name}");
        assert_clear_error(&out);
        all.push_str(out.stderr.lines().next().unwrap());
        all.push('\n');
    }
    insta::assert_snapshot!(all, @r"
    error: cannot name a lane '-x': it looks like an option
    error: cannot name a lane '--force': it looks like an option
    error: cannot name a lane '../x': it looks like a path
    error: cannot name a lane 'x/y': it looks like a path
    error: cannot name a lane 'x.lock': git does not allow it in a branch name
    error: cannot name a lane 'x..y': git does not allow it in a branch name
    error: cannot name a lane '@{': only lower-case letters, digits, '.', '_' and '-' are allowed
    error: cannot name a lane '🚀': only lower-case letters, digits, '.', '_' and '-' are allowed
    error: cannot name a lane '': it is empty
    error: cannot name a lane '.x': it must start with a letter or digit
    error: cannot name a lane 'a b': only lower-case letters, digits, '.', '_' and '-' are allowed
    error: cannot name a lane 'x\ny': only lower-case letters, digits, '.', '_' and '-' are allowed
    error: cannot name a lane '$(id)': only lower-case letters, digits, '.', '_' and '-' are allowed
    error: cannot name a lane 'x-preview': git-proq uses such names itself
    error: cannot name a lane 'batch-1': git-proq uses such names itself
    error: cannot name a lane 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…': it is longer than 64 characters
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "--name", "-x"]).to_text(), @r"
    --- stderr
    error: cannot name a lane '-x': it looks like an option
    hint: use a valid name: -n x
    --- code 2
    ");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

#[test]
fn other_commands_refuse_invalid_names() {
    let sandbox = Sandbox::new();
    for name in ["../x", "@{", "x@1", "x@", "🚀", "", "x\n", "/etc", "proq/../x"] {
        for args in [
            &["show", name][..],
            &["discard", name],
            &["merge", name],
            &["logs", name],
            &["stop", name],
            &["preview", name],
        ] {
            let out = sandbox.proq(args);
            assert!([1, 2].contains(&out.code), "{args:?}");
            if !out.stdout.contains("refused") {
                assert_clear_error(&out);
            }
        }
    }
}

#[test]
fn taken_name_error_names_what_takes_it() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "lane"]).ok();
    sandbox.git(&["branch", "proq/branch"]);
    sandbox.write(".proq-worktrees/folder/mine", "mine\n");
    std::os::unix::fs::symlink("nowhere", sandbox.lane_path("link")).unwrap();
    let before = sandbox.lane_leftovers();
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "lane"]).to_text(), @r"
    --- stderr
    error: cannot create lane 'lane': a lane with this name exists
    hint: show that lane: git proq show lane
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "branch"]).to_text(), @r"
    --- stderr
    error: cannot create branch 'proq/branch': it exists and belongs to no lane
    hint: rename the branch: git branch -m proq/branch proq-branch-old
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "folder"]).to_text(), @r"
    --- stderr
    error: cannot create [ROOT]/repo/.proq-worktrees/folder: it exists and belongs to no lane
    hint: move it away: mv '[ROOT]/repo/.proq-worktrees/folder' '[ROOT]/repo/.proq-worktrees/folder.old'
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["spawn", "--empty", "-n", "link"]).code, 1);
    assert_eq!(sandbox.lane_leftovers(), before);
    assert_eq!(sandbox.read(".proq-worktrees/folder/mine"), "mine\n");
}

/// Promise: preview/blocking-branch
#[test]
fn names_branch_that_blocks_lane_prefix() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "proq"]);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "x"]).to_text(), @r"
    --- stderr
    error: cannot create a lane branch 'proq/…': a branch named 'proq' exists
    hint: use another prefix: git config proq.lane.prefix lanes
    hint: or rename the branch: git branch -m proq proq-old
    --- code 1
    ");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    sandbox.git(&["config", "proq.lane.prefix", "lanes"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    assert_eq!(sandbox.row("x")["branch"], "lanes/x");
}

#[test]
fn names_branch_below_lane_branch() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "proq/x/deeper"]);
    let out = sandbox.proq(&["spawn", "--empty", "-n", "x"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot create branch 'proq/x/deeper': it exists and belongs to no lane
    hint: rename the branch: git branch -m proq/x/deeper proq-x-deeper-old
    --- code 1
    ");
    assert!(!sandbox.lane_path("x").exists());
    assert!(!sandbox.repo.join(".git/proq/lanes/x").exists());
    sandbox.sh(&hint_commands(&sandbox, &out.stderr)[0]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
}

#[test]
fn names_missing_base() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "--base", "nowhere"]).to_text(), @r"
    --- stderr
    error: 'nowhere' is not a commit in this repository
    hint: list branches and tags: git branch --all; git tag
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "--onto", "nowhere"]).to_text(), @r"
    --- stderr
    error: cannot merge into 'nowhere': there is no such branch
    hint: list branches: git branch
    --- code 1
    ");
    for base in ["", "-x", "HEAD~9", "main^{tree}", "@{u}", "a b", "HEAD:a.txt"] {
        let out = sandbox.proq(&["spawn", "--empty", &format!("--base={base}")]);
        assert!([1, 2].contains(&out.code), "{base}: {}", out.stderr);
        assert_clear_error(&out);
        let out = sandbox.proq(&["spawn", "--empty", &format!("--onto={base}")]);
        assert!([1, 2].contains(&out.code), "{base}: {}", out.stderr);
        assert_clear_error(&out);
    }
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

#[test]
fn open_merge_blocks_preview_and_carry_only() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo lane > a.txt");
    sandbox.git(&["switch", "-q", "-c", "other"]);
    sandbox.write("a.txt", "other\n");
    sandbox.commit_all("other");
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("a.txt", "main\n");
    sandbox.commit_all("main");
    let mut merge = sandbox.command("git", &sandbox.repo);
    let _ = sandbox
        .output({
            merge.args(["merge", "-q", "other"]);
            merge
        })
        .fails(1);
    let before = sandbox.git(&["status", "--short"]);
    insta::assert_snapshot!(sandbox.proq(&["preview", "x"]).to_text(), @r"
    --- stderr
    error: [ROOT]/repo has unmerged paths: a.txt
    hint: see how to finish the merge: git -C '[ROOT]/repo' status
    --- code 1
    ");
    let out = sandbox.proq(&["spawn", "--empty", "--carry", "-n", "y"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: [ROOT]/repo has unmerged paths: a.txt
    hint: see how to finish the merge: git -C '[ROOT]/repo' status
    --- code 1
    ");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "z"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), before);
    sandbox.git(&["merge", "--abort"]);
}

/// Promise: worktree/base-mid-rebase
#[test]
fn refuses_to_land_during_rebase_of_base() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo 1 > one");
    sandbox.git(&["branch", "other"]);
    sandbox.write("a.txt", "main\n");
    sandbox.commit_all("main");
    let mut rebase = sandbox.command("git", &sandbox.repo);
    rebase.args(["rebase", "-q", "--exec", "false", "HEAD~"]);
    let _ = sandbox.output(rebase).fails(1);
    let tip = sandbox.git(&["rev-parse", "main"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).to_text(), @r"
    refused x: cannot merge into 'main': a rebase of 'main' is in progress in [ROOT]/repo; nothing was changed
    --- stderr
    hint: finish it, or abort it: git rebase --abort
    --- code 1
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "y"]).to_text(), @r"
    --- stderr
    error: HEAD is detached, so the branch to merge into is unknown; nothing was created
    hint: name the branch with --onto; list branches: git branch
    --- code 1
    ");
}

/// Promise: concurrency/unique-names
#[test]
fn one_of_concurrent_spawns_gets_the_name() {
    let sandbox = Sandbox::new();
    let start = || {
        let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "x"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let all: Vec<_> =
        [start(), start(), start(), start()].into_iter().map(|c| c.wait_with_output().unwrap()).collect();
    assert_eq!(all.iter().filter(|o| o.status.success()).count(), 1);
    for out in all.iter().filter(|o| !o.status.success()) {
        let message = String::from_utf8_lossy(&out.stderr);
        assert!(
            message.starts_with("error: ") && message.contains("'x'") && out.status.code() == Some(1),
            "{message}"
        );
    }
    assert_eq!(sandbox.lane_leftovers().len(), 5, "{:?}", sandbox.lane_leftovers());
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--short"]), "");
}

#[test]
fn invalid_command_line_is_usage_error() {
    let sandbox = Sandbox::new();
    for args in [
        &["no-such-command"][..],
        &["list", "--no-such-flag"],
        &["spawn", "--empty", "--wait"],
        &["spawn", "--empty", "--", "true"],
        &["merge"],
        &["merge", "x", "--all"],
        &["merge", "--all", "--force"],
        &["preview", "x", "--back"],
        &["cleanup", "--force"],
        &["logs", "x", "--run", "one"],
        &["completions", "tcsh"],
    ] {
        let out = sandbox.proq(args);
        assert_eq!(out.code, 2, "{args:?}: {}", out.stderr);
        assert_clear_error(&out);
    }
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

#[test]
fn invalid_date_error_names_its_variable() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    let with = |variable: &str, args: &[&str]| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env(variable, "never");
        sandbox.output(command)
    };
    insta::assert_snapshot!(with("GIT_COMMITTER_DATE", &["spawn", "--empty", "-n", "y"]).to_text(), @r"
    --- stderr
    error: cannot date a commit: 'never' is not a date that git can read; nothing was changed
    hint: let git use the current time: unset GIT_COMMITTER_DATE
    --- code 1
    ");
    let text = with("GIT_AUTHOR_DATE", &["merge", "x"]).fails(1);
    assert!(text.contains("'never' is not a date that git can read"), "{text}");
    assert_eq!(sandbox.git(&["log", "--format=%s", "main"]), "first");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    let _ = sandbox.proq(&["merge", "x"]).ok();
}
