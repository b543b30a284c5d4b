//! `git proq spawn`: lane names, where a lane starts and lands, and the command's output.

use proq_test_kit::Sandbox;

#[test]
fn warns_where_git_can_commit_nothing() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "user.useConfigOnly", "true"]);
    let spawn_stderr = |name: &str| {
        let mut command =
            sandbox.proq_command(&sandbox.repo, &["spawn", "-n", name, "--wait", "--", "touch", "new"]);
        for variable in ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"] {
            command.env_remove(format!("GIT_{variable}"));
        }
        sandbox.output(command).stderr
    };
    let warning =
        "warning: git has no name and email for new commits, so nothing in the lane can be committed: ";
    let stderr = spawn_stderr("x");
    let warned = stderr.lines().find_map(|line| line.strip_prefix(warning)).unwrap();
    let detail = sandbox.row("x")["detail"].to_string();
    assert!(detail.contains("git has no name and email for it") && !detail.contains("--quiet"), "{detail}");
    sandbox.sh(warned);
    let stderr = spawn_stderr("y");
    assert!(!stderr.contains("warning"), "{stderr}");
}

#[test]
fn spawn_creates_lane_and_runs_agent() {
    let sandbox = Sandbox::new();
    let out = sandbox.proq(&["spawn", "--wait", "-n", "pay", "--", "sh", "-c", "echo pay > pay.txt"]);
    insta::assert_snapshot!(out.to_text(), @r"
    pay: done
    --- code 0
    ");
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("pay").join("pay.txt")).unwrap(), "pay\n");
    assert_eq!(sandbox.git(&["log", "--format=%s", "main..proq/pay"]), "pay: uncommitted changes");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

#[test]
fn spawn_prints_lane_and_next_commands() {
    let sandbox = Sandbox::new();
    let out = sandbox.proq(&["spawn", "-n", "pay", "--", "true"]);
    insta::assert_snapshot!(out.to_text(), @r"
    lane 'pay' on branch proq/pay, from main
      [ROOT]/repo/.proq-worktrees/pay
    --- stderr
    your command is running there
    hint: follow it: git proq logs -f pay
    hint: wait for it: git proq wait pay
    --- code 0
    ");
    let out = sandbox.proq(&["spawn", "--empty", "-n", "try"]);
    insta::assert_snapshot!(out.to_text(), @r"
    lane 'try' on branch proq/try, from main
      [ROOT]/repo/.proq-worktrees/try
    --- stderr
    hint: enter it: cd [ROOT]/repo/.proq-worktrees/try
    --- code 0
    ");
    let out = sandbox.proq(&["spawn", "-q", "--empty", "-n", "quiet"]);
    insta::assert_snapshot!(out.to_text(), @r"
    lane 'quiet' on branch proq/quiet, from main
      [ROOT]/repo/.proq-worktrees/quiet
    --- code 0
    ");
}

#[test]
fn derives_lane_name_from_prompt_and_numbers_it() {
    let sandbox = Sandbox::new();
    sandbox.program("robot", "true");
    for name in ["implement-payments", "implement-payments-2", "implement-payments-3"] {
        let out = sandbox.proq(&["spawn", "--json", "robot", "Implement: payments!\nin full"]).json();
        assert_eq!(out["lane"], name);
        assert_eq!(sandbox.row(name)["title"], "Implement: payments!");
    }
    for name in ["lane-1", "lane-2"] {
        assert_eq!(sandbox.proq(&["spawn", "--json", "robot", "🚀 →"]).json()["lane"], name);
    }
    assert_eq!(sandbox.proq(&["spawn", "--json", "--", "true", "now"]).json()["lane"], "true-now");
}

#[test]
fn derived_name_skips_existing_branch_and_folder() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "proq/lane-1"]);
    sandbox.write(".proq-worktrees/lane-2/mine", "");
    assert_eq!(sandbox.proq(&["spawn", "--json", "--empty"]).json()["lane"], "lane-3");
}

#[test]
fn lane_starts_from_and_lands_on_named_branch() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "dev"]);
    sandbox.write("a.txt", "main\n");
    sandbox.commit_all("second");
    let out = sandbox.proq(&["spawn", "--json", "--empty", "-n", "x", "--base", "dev"]).json();
    assert_eq!(out["base"], "dev");
    assert_eq!(out["start"], sandbox.git(&["rev-parse", "dev"]));
    let out = sandbox.proq(&["spawn", "--json", "--empty", "-n", "y", "--base", "refs/heads/dev"]).json();
    assert_eq!(out["base"], "dev");
    let out =
        sandbox.proq(&["spawn", "--json", "--empty", "-n", "z", "--base", "main", "--onto", "dev"]).json();
    assert_eq!(
        (&out["base"], out["start"].as_str()),
        (&"dev".into(), Some(&*sandbox.git(&["rev-parse", "main"])))
    );
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("z").join("a.txt")).unwrap(), "main\n");
}

#[test]
fn tag_or_commit_base_needs_onto() {
    let sandbox = Sandbox::new();
    sandbox.git(&["tag", "v1"]);
    sandbox.write("a.txt", "later\n");
    sandbox.commit_all("second");
    let out = sandbox.proq(&["spawn", "--empty", "-n", "x", "--base", "v1"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: 'v1' is not a branch, so the branch to merge into is unknown; nothing was created
    hint: name the branch with --onto; list branches: git branch
    --- code 1
    ");
    let first = sandbox.git(&["rev-parse", "v1"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x", "--base", &first]).fails(1);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    for (name, base) in [("t", "v1"), ("c", first.as_str()), ("h", "HEAD~1")] {
        let out = sandbox
            .proq(&["spawn", "--json", "--empty", "-n", name, "--base", base, "--onto", "main"])
            .json();
        assert_eq!((&out["base"], &out["start"]), (&"main".into(), &first.clone().into()));
    }
}

#[test]
fn detached_head_needs_base_or_onto() {
    let sandbox = Sandbox::new();
    sandbox.git(&["switch", "-q", "--detach"]);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "x"]).to_text(), @r"
    --- stderr
    error: HEAD is detached, so the branch to merge into is unknown; nothing was created
    hint: name the branch with --onto; list branches: git branch
    --- code 1
    ");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x", "--onto", "main"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y", "--base", "main"]).ok();
    assert_eq!(sandbox.row("y")["base"], "main");
}

#[test]
fn spawn_in_lane_uses_its_base() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "dev"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "outer", "--base", "dev"]).ok();
    sandbox.write_in(&sandbox.lane_path("outer"), "deep/er/x", "");
    let lane_path = |name| format!("[ROOT]/repo/.proq-worktrees/{name}");
    for (name, dir) in
        [("top", sandbox.lane_path("outer")), ("deep", sandbox.lane_path("outer").join("deep/er"))]
    {
        let _ = sandbox.proq_in(&dir, &["spawn", "--empty", "-n", name]).ok();
        let row = sandbox.row(name);
        assert_eq!((&row["base"], &row["path"]), (&"dev".into(), &lane_path(name).into()));
    }
    let out = sandbox.proq(&["spawn", "--empty", "-n", "z", "--base", "proq/outer"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot use 'proq/outer' as a base: it is a branch of git-proq
    hint: list branches: git branch
    --- code 1
    ");
}

#[test]
fn spawn_in_preview_uses_original_branch() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("one", "echo 1 > one");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let out = sandbox.proq(&["spawn", "--json", "--empty", "-n", "two"]).json();
    assert_eq!(
        (&out["base"], out["start"].as_str()),
        (&"main".into(), Some(&*sandbox.git(&["rev-parse", "main"])))
    );
}

#[test]
fn dry_run_shows_allowed_tools() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "make all"]);
    sandbox.agent(
        "claude",
        "for word; do echo \"$word\"; done > ../../../args; git commit -q --allow-empty -m x",
    );
    let args = ["spawn", "-n", "x", "claude", "do it", "--check", "make test", "--check", "grep '*'"];
    let dry = sandbox.proq(&[&args[..], &["--dry-run"]].concat()).ok();
    let _ = sandbox.proq(&[&args[..], &["--wait"]].concat());
    let real = std::fs::read_to_string(sandbox.root().join("args")).unwrap();
    let tools: Vec<&str> = real.lines().filter(|word| word.starts_with("Bash(")).collect();
    assert_eq!(tools, ["Bash(git *)", "Bash(make all)", "Bash(make test)"]);
    for tool in tools {
        assert!(dry.contains(&format!("'{tool}'")), "{dry}");
    }
    assert!(!dry.contains("Bash(grep"), "{dry}");
}

#[test]
fn dry_run_shows_plan_and_creates_nothing() {
    let sandbox = Sandbox::new();
    sandbox.program("robot", "true");
    let before = sandbox.git(&["for-each-ref"]);
    let out = sandbox.proq(&["spawn", "--dry-run", "robot", "it's time"]);
    insta::assert_snapshot!(out.to_text(), @r"
    would create lane 'time'
      branch    proq/time
      worktree  [ROOT]/repo/.proq-worktrees/time
      from      7f85e07d (main)
      runs      [ROOT]/bin/robot {prompt}
    --- code 0
    ");
    let out = sandbox.proq(&["spawn", "--dry-run", "--json", "--empty"]).json();
    assert_eq!((&out["dry_run"], &out["lane"]), (&true.into(), &"lane-1".into()));
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    assert!(!sandbox.repo.join(".git/proq").exists());
    assert!(!sandbox.repo.join(".proq-worktrees").exists());
}

#[test]
fn json_output_has_every_field() {
    let sandbox = Sandbox::new();
    sandbox.program("robot", "echo 1 > new");
    let out = sandbox.proq(&["spawn", "--json", "--wait", "-n", "x", "--", "robot", "a b"]);
    insta::assert_snapshot!(out.to_text(), @r#"
    {
      "agent": "command",
      "base": "main",
      "branch": "proq/x",
      "command": "[ROOT]/bin/robot 'a b'",
      "dry_run": false,
      "lane": "x",
      "path": "[ROOT]/repo/.proq-worktrees/x",
      "schema": 1,
      "start": "7f85e07d4d69da1e41b721a39f72c20b0d2a2e1b",
      "state": "done"
    }
    --- code 0
    "#);
}

#[test]
fn wait_prints_outcome_of_run() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--wait", "-n", "a", "--", "true"]).to_text(), @r"
    a: no-change
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--wait", "-n", "b", "--", "sh", "-c", "exit 7"]).to_text(), @r"
    b: failed (exit code 7)
    --- code 4
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--wait", "-n", "c", "--", "sh", "-c", "kill -9 $$"]).to_text(), @r"
    c: failed (killed by signal 9)
    --- code 4
    ");
}

#[test]
fn lanes_folder_is_excluded_from_git() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "!*/\n");
    sandbox.commit_all("look into every folder");
    sandbox.run_lane("x", "echo new > new; echo more >> a.txt");
    assert_eq!(sandbox.read(".git/info/exclude").lines().filter(|l| *l == "/.proq-worktrees/").count(), 1);
    assert_eq!(sandbox.read(".proq-worktrees/.gitignore"), "*\n");
    assert_eq!(sandbox.git(&["status", "--short", "--untracked-files=all"]), "");
    sandbox.git(&["add", "-A"]);
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    sandbox.run_lane("y", "true");
    assert_eq!(sandbox.read(".git/info/exclude").lines().filter(|l| *l == "/.proq-worktrees/").count(), 1);
}

#[test]
fn emptied_ignore_file_of_lanes_folder_is_rewritten() {
    let sandbox = Sandbox::new();
    // As a command leaves it that was killed before it wrote the file; nothing of the folder is visible.
    sandbox.sh(
        "mkdir .proq-worktrees; : > .proq-worktrees/.gitignore; echo /.proq-worktrees/ > .git/info/exclude",
    );
    sandbox.assert_healthy();
    sandbox.run_lane("x", "true");
    assert_eq!(sandbox.read(".proq-worktrees/.gitignore"), "*\n");
    sandbox.assert_healthy();
}

#[test]
fn post_checkout_hook_runs_in_lane_and_may_fail() {
    let sandbox = Sandbox::new();
    sandbox.program("hook", "pwd > \"$ROOT/ran\"; echo \"$1 $3\" >> \"$ROOT/ran\"; exit 1");
    std::fs::rename(sandbox.root().join("bin/hook"), sandbox.repo.join(".git/hooks/post-checkout")).unwrap();
    let out = sandbox.proq(&["spawn", "--empty", "-n", "x"]);
    insta::assert_snapshot!(out.to_text(), @r"
    lane 'x' on branch proq/x, from main
      [ROOT]/repo/.proq-worktrees/x
    --- stderr
    warning: the repository's post-checkout hook failed: `git hook run --ignore-missing post-checkout -- 0000000000000000000000000000000000000000 7f85e07d4d69da1e41b721a39f72c20b0d2a2e1b 1` failed: exit status 1
    hint: enter it: cd [ROOT]/repo/.proq-worktrees/x
    --- code 0
    ");
    let ran = std::fs::read_to_string(sandbox.root().join("ran")).unwrap();
    assert_eq!(ran, format!("{}\n{} 1\n", sandbox.lane_path("x").display(), "0".repeat(40)));
}

#[test]
fn verbose_shows_where_files_come_from() {
    let sandbox = Sandbox::new();
    let old =
        "find . -path ./.git -prune -o -exec touch -h -d 2020-01-01 {} +; git update-index -q --refresh";
    sandbox.sh(old);
    let out = sandbox.proq(&["spawn", "--empty", "-v", "--count", "2", "-n", "two"]);
    let files = sandbox.git(&["ls-files"]).lines().count();
    let note = format!("files: {files} files copied from another checkout, 0 written from git's objects\n");
    assert_eq!(out.stderr.matches(&note).count(), 1, "once for both: {}", out.stderr);
    sandbox.write(".gitattributes", "* text eol=crlf\n");
    sandbox.git(&["add", ".gitattributes"]);
    sandbox.git(&["commit", "-qm", "line ends"]);
    let out = sandbox.proq(&["spawn", "--empty", "--verbose", "-n", "other"]);
    assert!(out.stderr.contains("by git: some of them, for filters, other line ends"), "{}", out.stderr);
    let out = sandbox.proq(&["spawn", "--empty", "-n", "plain"]);
    assert!(!out.stderr.contains("files"), "{}", out.stderr);
    assert_eq!(sandbox.proq(&["list", "-q", "-v"]).code, 2);
}
