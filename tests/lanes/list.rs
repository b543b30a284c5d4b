//! `git proq list`, and `git proq` without a command.

use std::io::Read;
use std::process::Stdio;

use proq_test_kit::conflict::hint_commands;
use proq_test_kit::{PTY_SCRIPT, Sandbox};

/// Returns a repository with lanes in many states.
fn sandbox_with_many_states() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "fresh"]).ok();
    sandbox.run_lane("good", "echo 1 > one");
    let _ = sandbox
        .proq(&["spawn", "--wait", "-n", "bad", "--", "sh", "-c", "echo half > half; exit 1"])
        .fails(4);
    sandbox.run_lane("same", "true");
    sandbox.program("robot", "echo 2 > two");
    let _ = sandbox.proq(&["spawn", "--wait", "robot", "Implement payments"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "old"]).ok();
    let _ = sandbox.proq(&["discard", "old"]).ok();
    sandbox.write("a.txt", "later\n");
    sandbox.commit_all("main moved");
    sandbox
}

#[test]
fn empty_list_suggests_next_step() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r#"
    --- stderr
    no lanes yet
    hint: start an agent in a lane of its own: git proq spawn claude "implement payments"
    --- code 0
    "#);
    insta::assert_snapshot!(sandbox.proq(&[]).to_text(), @r#"
    No lanes yet. A lane is a branch and a worktree for one agent.

      git proq spawn claude "implement payments"   start an agent in a lane of its own
      git proq spawn -n try -- make test           or any command
      git proq demo                                take the tour
      git proq -h                                  see every command
    --- code 0
    "#);
    insta::assert_snapshot!(sandbox.proq(&["--json"]).to_text(), @r#"
    {
      "lanes": [],
      "schema": 1,
      "unrecorded": []
    }
    --- code 0
    "#);
}

#[test]
fn shows_every_lane_with_its_state() {
    let sandbox = sandbox_with_many_states();
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    LANE                STATE      LINES  COMMITS  CHANGES  CONFLICTS  AGENT    UPDATED  TITLE
    bad                 failed     -      ↓1       1 file   -          command  0s ago   sh -c 'echo half > half; exit 1'
    fresh               idle       -      ↓1       -        -          -        0s ago
    good                done       +1     ↑1 ↓1    -        -          command  0s ago   sh -ec 'echo 1 > one'
    implement-payments  done       +1     ↑1 ↓1    -        -          robot    0s ago
    same                no-change  -      ↓1       -        -          command  0s ago   sh -ec true
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["ls", "--all"]).to_text(), @r"
    LANE                STATE      LINES  COMMITS  CHANGES  CONFLICTS  AGENT    UPDATED  TITLE
    bad                 failed     -      ↓1       1 file   -          command  0s ago   sh -c 'echo half > half; exit 1'
    fresh               idle       -      ↓1       -        -          -        0s ago
    good                done       +1     ↑1 ↓1    -        -          command  0s ago   sh -ec 'echo 1 > one'
    implement-payments  done       +1     ↑1 ↓1    -        -          robot    0s ago
    same                no-change  -      ↓1       -        -          command  0s ago   sh -ec true
    old@1               discarded  -      -        -        -          -        0s ago
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&[]).to_text(), @"
    LANE                STATE      LINES  COMMITS  CHANGES  CONFLICTS  AGENT    UPDATED  TITLE
    bad                 failed     -      ↓1       1 file   -          command  0s ago   sh -c 'echo half > half; exit 1'
    fresh               idle       -      ↓1       -        -          -        0s ago
    good                done       +1     ↑1 ↓1    -        -          command  0s ago   sh -ec 'echo 1 > one'
    implement-payments  done       +1     ↑1 ↓1    -        -          robot    0s ago
    same                no-change  -      ↓1       -        -          command  0s ago   sh -ec true
    --- stderr
    hint: show what went wrong in 'bad': git proq show bad
    hint: land 2 lanes: git proq merge --all
    --- code 0
    ");
}

#[test]
fn overview_before_the_first_commit_and_after_landings() {
    let unborn = Sandbox::empty();
    let hint = "hint: make a commit to start lanes from: git commit --allow-empty -m 'Start'\n";
    assert_eq!(unborn.proq(&[]).stderr, hint);
    unborn.sh("git commit -q --allow-empty -m 'Start'");
    assert_eq!(unborn.proq(&[]).stderr, "");
    unborn.run_lane("x", "echo x > x");
    let _ = unborn.proq(&["merge", "x"]).ok();
    assert!(unborn.proq(&["list"]).stderr.starts_with("no lanes\n"));
    let out = unborn.proq(&[]);
    assert!(out.stdout.starts_with("No lanes. A lane is "), "{}", out.stdout);
    assert_eq!(out.stderr, "hint: see 1 lane that landed: git proq list --all\n");
}

#[test]
fn next_steps_put_first_what_needs_the_user() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "! test -e bad"]);
    for (name, script) in [("bad", "echo > bad"), ("a", "echo lane > a.txt"), ("z", "echo z > z")] {
        sandbox.run_lane(name, script);
    }
    sandbox.sh("echo main > a.txt; git commit -qam main");
    let steps = || hint_commands(&sandbox, &sandbox.proq(&[]).stderr);
    assert_eq!(steps(), ["git proq resolve a", "git proq merge --all --dry-run"]);
    let _ = sandbox.proq(&["merge", "--all"]).fails(4);
    assert_eq!(steps(), ["git proq resolve a", "git proq logs bad --checks"]);
    sandbox.run_lane("next", "echo next > next");
    assert_eq!(steps(), ["git proq resolve a", "git proq merge --all --dry-run"]);
    for command in steps() {
        sandbox.sh(&command.replace("git proq", "git-proq"));
    }
    // A conflict that is over needs nobody: the base is where it was before, or the lane has taken it in.
    let _ = sandbox.proq(&["discard", "--force", "bad", "next"]).ok();
    sandbox.sh_in(&sandbox.lane_path("a"), "git merge -q -X ours main");
    assert_eq!(sandbox.row("a")["state"], "done");
    assert_eq!(steps()[1], "git proq preview a");
}

#[test]
fn work_that_could_not_be_committed_is_named() {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "printf '#!/bin/sh\necho no >&2; exit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    );
    sandbox.run_lane("x", "echo x > x");
    let expected = "warning: lane 'x': uncommitted work: ";
    for args in [&[][..], &["list"]] {
        let stderr = sandbox.proq(args).stderr;
        assert!(stderr.contains(expected), "{stderr}");
    }
    sandbox.sh_in(&sandbox.lane_path("x"), "git add x; git commit -qnm x");
    assert!(!sandbox.proq(&["list"]).stderr.contains(expected));
}

#[test]
fn does_not_promise_uncertain_landings() {
    let hints = |sandbox: &Sandbox| sandbox.proq(&[]).stderr;
    let done = "hint: 2 lanes are done; see what would land: git proq merge --all --dry-run\n";
    let sandbox = Sandbox::new();
    sandbox.run_lane("a", "echo lane > a.txt");
    sandbox.run_lane("b", "echo b > b.txt");
    assert!(hints(&sandbox).contains("hint: land 2 lanes: git proq merge --all\n"), "{}", hints(&sandbox));
    sandbox.write_in(&sandbox.lane_path("b"), "b.txt", "unsaved\n");
    assert!(hints(&sandbox).contains(done), "{}", hints(&sandbox));
    sandbox.git_in(&sandbox.lane_path("b"), &["checkout", "-q", "b.txt"]);
    sandbox.commit_in_lane("b", "echo b > a.txt");
    assert!(hints(&sandbox).contains(done), "{}", hints(&sandbox));
    let _ = sandbox.proq(&["discard", "--force", "a"]).ok();
    assert!(hints(&sandbox).contains("hint: land 1 lane: git proq merge --all\n"), "{}", hints(&sandbox));
    // An idle lane with commits lands, too.
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "idle"]).ok();
    assert!(hints(&sandbox).contains("hint: land 1 lane: git proq merge --all\n"), "{}", hints(&sandbox));
    sandbox.commit_in_lane("idle", "echo idle > idle.txt");
    let one_done = "hint: 1 lane is done; see what would land: git proq merge --all --dry-run\n";
    assert!(hints(&sandbox).contains(one_done), "{}", hints(&sandbox));
    let _ = sandbox.proq(&["discard", "--force", "idle"]).ok();
    // A rebase replays commit by commit.
    sandbox.git(&["config", "proq.merge.strategy", "rebase"]);
    assert!(hints(&sandbox).contains(one_done), "{}", hints(&sandbox));
    sandbox.git(&["config", "--unset", "proq.merge.strategy"]);
    assert!(hints(&sandbox).contains("hint: land 1 lane: git proq merge --all\n"), "{}", hints(&sandbox));
    // Commits whose changes cancel out.
    let none = Sandbox::new();
    none.run_lane("none", "echo 1 > none; git add none; git commit -qm 1; git rm -q none; git commit -qm 2");
    assert!(hints(&none).contains(one_done), "{}", hints(&none));
    sandbox.sh("echo main > b.txt; git add .; git commit -qm main");
    assert!(hints(&sandbox).contains(one_done), "{}", hints(&sandbox));
}

#[test]
fn does_not_promise_landings_that_may_be_blocked() {
    let is_promised = |sandbox: &Sandbox| {
        let stderr = sandbox.proq(&[]).stderr;
        let lands = stderr.contains("hint: land 1 lane: git proq merge --all\n");
        let done = "hint: 1 lane is done; see what would land: git proq merge --all --dry-run\n";
        assert_ne!(lands, stderr.contains(done), "{stderr}");
        lands
    };
    let start_merge = "git switch -qc other; echo o > o; git add o; git commit -qm o; git switch -q main; \
                     git merge -q --no-ff --no-commit other";
    for (obstacle, code) in [
        ("git config proq.verify.commands '! grep -q lane a.txt'", 4),
        ("echo mine > a.txt", 1),
        ("echo mine > new.txt", 1),
        ("echo new.txt >> .git/info/exclude; echo mine > new.txt", 1),
        (start_merge, 1),
    ] {
        let sandbox = Sandbox::new();
        sandbox.run_lane("l", "echo lane > a.txt; echo lane > new.txt");
        sandbox.sh("echo other > beside.txt");
        assert!(is_promised(&sandbox));
        sandbox.sh(obstacle);
        assert!(!is_promised(&sandbox), "{obstacle}");
        assert_eq!(sandbox.proq(&["merge", "--all"]).code, code, "{obstacle}");
    }
    // Checks are those of the base, whatever is checked out.
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[verify]\ncommands = [\"! grep -q lane a.txt\"]\n");
    sandbox.commit_all("checks");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox.run_lane("l", "echo lane > a.txt");
    sandbox.sh("git switch -qc old; git rm -q proq.toml; git commit -qm old");
    assert!(!is_promised(&sandbox));
    assert_eq!(sandbox.proq(&["merge", "--all"]).code, 4);
    let sandbox = Sandbox::new();
    sandbox.run_lane("l", "printf '<<<<<<< a\n=======\n>>>>>>> b\n' > marked.txt");
    assert!(!is_promised(&sandbox));
    assert_eq!(sandbox.proq(&["merge", "--all"]).code, 1);
    let sandbox = Sandbox::new();
    sandbox.run_lane("l", "echo lane > new.txt");
    sandbox.sh("echo mine > a.txt; echo other > beside.txt");
    assert!(is_promised(&sandbox));
    assert_eq!(sandbox.proq(&["merge", "--all"]).code, 0);
}

#[test]
fn json_has_every_field() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "false"]).fails(4);
    insta::assert_snapshot!(sandbox.proq(&["list", "--json"]).to_text(), @r#"
    {
      "lanes": [
        {
          "active": "2026-01-02T03:04:05Z",
          "agent": "command",
          "ahead": 0,
          "attention": [
            {
              "command": "git proq show x",
              "kind": "failed",
              "since": "2026-01-02T03:04:05Z",
              "why": "exit code 1"
            }
          ],
          "base": "main",
          "behind": 0,
          "branch": "proq/x",
          "created": "2026-01-02T03:04:05Z",
          "detail": "exit code 1",
          "landing": "open",
          "missing": [],
          "name": "x",
          "path": "[ROOT]/repo/.proq-worktrees/x",
          "previewed": false,
          "run": "failed",
          "state": "failed",
          "tip": "7f85e07d4d69da1e41b721a39f72c20b0d2a2e1b",
          "title": "false",
          "uncommitted": 0,
          "updated": "2026-01-02T03:04:05Z"
        }
      ],
      "schema": 1,
      "unrecorded": []
    }
    --- code 0
    "#);
}

#[test]
fn marks_previewed_lane() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo 1 > one");
    sandbox.write("mine", "");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    LANE  STATE  LINES  COMMITS  CHANGES  CONFLICTS  AGENT    UPDATED  TITLE
    x*    done   +1     ↑1       -        -          command  0s ago   sh -ec 'echo 1 > one'
    --- stderr
    the main checkout shows 'x'; your own changes wait: git proq preview --back
    --- code 0
    ");
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["preview"], "x");
    sandbox.git(&["switch", "-q", "main"]);
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    LANE  STATE  LINES  COMMITS  CHANGES  CONFLICTS  AGENT    UPDATED  TITLE
    x     done   +1     ↑1       -        -          command  0s ago   sh -ec 'echo 1 > one'
    --- stderr
    warning: the preview of 'x' was left with git; your own changes wait: git proq preview --back
    --- code 0
    ");
}

#[test]
fn shows_missing_worktree_or_branch() {
    let sandbox = Sandbox::new();
    for name in ["folder", "branch"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", name]).ok();
    }
    std::fs::remove_dir_all(sandbox.lane_path("folder")).unwrap();
    sandbox.git_in(&sandbox.lane_path("branch"), &["switch", "-q", "--detach"]);
    sandbox.git(&["branch", "-q", "-D", "proq/branch"]);
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    LANE    STATE  COMMITS  CHANGES      AGENT  UPDATED
    branch  idle   ?        no branch    -      0s ago
    folder  idle   -        no worktree  -      0s ago
    --- stderr
    warning: lane 'branch' no longer has a branch: git proq cleanup branch
    warning: lane 'folder' no longer has a worktree: git proq cleanup folder
    --- code 0
    ");
    assert_eq!(sandbox.row("folder")["missing"], serde_json::json!(["worktree"]));
}

#[test]
fn shows_unrecorded_worktree() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    std::fs::remove_dir_all(sandbox.repo.join(".git/proq/lanes/x")).unwrap();
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r#"
    --- stderr
    no lanes yet
    hint: start an agent in a lane of its own: git proq spawn claude "implement payments"
    warning: .proq-worktrees/x belongs to no lane on record: git proq cleanup
    --- code 0
    "#);
}

#[test]
fn unreadable_records_do_not_hide_other_lanes() {
    let sandbox = Sandbox::new();
    for name in ["broken", "good", "newer"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", name]).ok();
    }
    let record = |name: &str| sandbox.repo.join(format!(".git/proq/lanes/{name}/lane.toml"));
    let newer = std::fs::read_to_string(record("newer")).unwrap().replace("format = 1", "format = 99");
    std::fs::write(record("newer"), &newer).unwrap();
    std::fs::write(record("broken"), "format = 1\nname = ").unwrap();
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    LANE  STATE  COMMITS  CHANGES  AGENT  UPDATED
    good  idle   -        -        -      0s ago
    --- stderr
    warning: lane 'broken': cannot read the record [ROOT]/repo/.git/proq/lanes/broken/lane.toml
    warning: lane 'newer': cannot read the record [ROOT]/repo/.git/proq/lanes/newer/lane.toml: it has format 99, and this git-proq reads up to 1
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["show", "broken"]).to_text(), @r"
    --- stderr
    error: cannot read the record [ROOT]/repo/.git/proq/lanes/broken/lane.toml
      caused by: TOML parse error at line 2, column 8
    hint: if it is lost, move it away: mv '[ROOT]/repo/.git/proq/lanes/broken/lane.toml' '[ROOT]/repo/.git/proq/lanes/broken/lane.toml.broken'
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["discard", "newer"]).to_text(), @r"
    --- stderr
    error: cannot read the record [ROOT]/repo/.git/proq/lanes/newer/lane.toml: it has format 99, and this git-proq reads up to 1
    hint: upgrade git-proq: cargo install git-proq
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["spawn", "--empty", "-n", "broken"]).code, 1);
    assert_eq!(std::fs::read_to_string(record("newer")).unwrap(), newer);
}

/// Creates another repository with one lane below the sandbox's folder.
fn create_repository_with_lane(sandbox: &Sandbox, name: &str) -> std::path::PathBuf {
    let dir = sandbox.root().join(name);
    std::fs::create_dir(&dir).unwrap();
    let _ = sandbox.sh_in(&dir, "git init -q -b main; git commit -q --allow-empty -m first");
    let _ = sandbox.proq_in(&dir, &["spawn", "--empty", "-n", "far"]).ok();
    dir
}

#[test]
fn everywhere_lists_existing_repositories_with_lanes() {
    let sandbox = Sandbox::new();
    let nowhere = sandbox.root().join("home");
    let list = |args: &[&str]| sandbox.proq_in(&nowhere, &[&["list", "--everywhere"][..], args].concat());
    insta::assert_snapshot!(list(&[]).to_text(), @r#"
    --- stderr
    no repository with lanes is known yet
    hint: start an agent in a lane of its own: git proq spawn claude "implement payments"
    --- code 0
    "#);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "near"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "near2"]).ok();
    let far = create_repository_with_lane(&sandbox, "far");
    insta::assert_snapshot!(list(&[]).to_text(), @r"
    [ROOT]/repo
    LANE   STATE  COMMITS  CHANGES  AGENT  UPDATED
    near   idle   -        -        -      0s ago
    near2  idle   -        -        -      0s ago

    [ROOT]/far
    LANE  STATE  COMMITS  CHANGES  AGENT  UPDATED
    far   idle   -        -        -      0s ago
    --- code 0
    ");
    let answer = list(&["--json"]).json();
    assert_eq!(answer["repositories"][1]["path"], "[ROOT]/far");
    assert_eq!(answer["repositories"][1]["lanes"][0]["name"], "far");

    std::fs::remove_dir_all(&far).unwrap();
    assert_eq!(list(&["--json"]).json()["repositories"].as_array().unwrap().len(), 1);
    let kept = std::fs::read_to_string(nowhere.join(".local/state/git-proq/repositories.toml")).unwrap();
    assert!(kept.contains("/repo/.git") && !kept.contains("/far/"), "{kept}");
}

#[test]
fn everywhere_continues_past_broken_repository() {
    let sandbox = Sandbox::new();
    let far = create_repository_with_lane(&sandbox, "far");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "near"]).ok();
    std::fs::remove_file(far.join(".git/HEAD")).unwrap();
    let out = sandbox.proq(&["list", "--everywhere", "--json"]);
    assert_eq!(out.code, 1);
    let all = &out.json()["repositories"];
    assert!(all[0]["error"].is_string() && all[1]["lanes"][0]["name"] == "near", "{all}");
    let mut command = sandbox.proq_command(&sandbox.repo, &["list", "--everywhere"]);
    command.env("GIT_DIR", sandbox.repo.join(".git"));
    assert!(sandbox.output(command).fails(1).contains("near"));
}

#[test]
fn unwritable_repository_list_does_not_block_spawn() {
    let sandbox = Sandbox::new();
    let state = sandbox.root().join("state");
    std::fs::write(&state, "no folder").unwrap();
    let spawn = |name: &str| {
        let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", name]);
        command.env("XDG_STATE_HOME", &state);
        sandbox.output(command)
    };
    let out = spawn("x");
    assert!(
        out.stderr.contains("warning: `git proq list --everywhere` will not show this repository"),
        "{}",
        out.stderr
    );
    let _ = out.ok();
    std::fs::remove_file(&state).unwrap();
    assert_eq!(spawn("y").stderr.lines().filter(|l| l.starts_with("warning")).count(), 0);
    assert!(state.join("git-proq/repositories.toml").is_file());
}

/// Returns the terminal output of a list that needs git for one lane. Git answers once `sign` was printed.
fn slow_list_output(term: &str, sign: &str) -> String {
    let sandbox = Sandbox::new();
    sandbox.run_lane("fast", "echo 1 > one");
    sandbox.run_lane("slow", "echo 2 > two");
    let root = sandbox.root();
    // Of the same length, so that git has to read it, through a filter.
    let _ = sandbox.sh(&format!(
        "mkfifo {0}/go; git config filter.slow.clean 'test -e {0}/gone || cat {0}/go; cat'
        git config core.attributesFile {0}/attributes; echo 'two filter=slow' >{0}/attributes
        echo 3 >.proq-worktrees/slow/two",
        root.display()
    ));
    let mut command = sandbox.command("python3", &sandbox.repo);
    command.args(["-c", PTY_SCRIPT, "git-proq", "list"]).env("TERM", term).env("COLUMNS", "120");
    command.stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut shown, mut chunk, mut released) = (Vec::new(), [0; 4096], false);
    loop {
        if !released && String::from_utf8_lossy(&shown).contains(sign) {
            released = true;
            // A filter that has started waits until this is closed; one that starts later does not wait.
            let go = std::fs::File::options().write(true).open(root.join("go")).unwrap();
            std::fs::write(root.join("gone"), "").unwrap();
            drop(go);
        }
        match out.read(&mut chunk).unwrap() {
            0 => break,
            n => shown.extend_from_slice(&chunk[..n]),
        }
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(shown).unwrap().replace('\r', "")
}

#[test]
fn terminal_shows_known_columns_first() {
    let shown = slow_list_output("xterm", "\n\u{1b}[J");
    let (before, after) = shown.rsplit_once("\u{1b}[K\n").unwrap();
    let row = |text: &str, lane: &str| {
        let line = text.lines().rfind(|line| line.contains(lane)).unwrap().to_owned();
        line.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row(before, "slow")[4], "…", "{shown:?}");
    assert_eq!((&*row(after, "slow")[4], row(after, "fast")[4].contains('-')), ("1", true), "{shown:?}");
    assert!(!after.contains('…') && !after.contains("\u{1b}[K"), "{shown:?}");
}

#[test]
fn dumb_terminal_gets_list_once() {
    let shown = slow_list_output("dumb", "");
    assert!(shown.starts_with("LANE") && shown.ends_with("\n2 lanes: 2 done\n"), "{shown:?}");
    assert!(!shown.contains(['…', '\u{1b}']), "{shown:?}");
}
