//! Read-only runs: `--mode answer` and `--mode plan`, their results, and what they may not touch.

use proq_test_kit::claude::with_claude;
use proq_test_kit::runs::{escape_messages, kill_supervisor, repository_state};
use proq_test_kit::{Output, Sandbox};
use serde_json::{Value, json};

/// Starts a query as lane `x`, and waits for the answer.
pub fn run_query(sandbox: &Sandbox) -> Output {
    sandbox.proq(&["spawn", "-n", "x", "--mode", "answer", "--wait", "claude", "where is the tax?"])
}

#[test]
fn answer_is_printed_and_saved_without_changes() {
    let sandbox = with_claude(r"say 'In tax.rs, line 3.\nIt is called `tax`.'");
    sandbox.write("a.txt", "an edit of mine\n");
    let before = repository_state(&sandbox);
    insta::assert_snapshot!(run_query(&sandbox).to_text(), @r"
    In tax.rs, line 3.
    It is called `tax`.
    --- code 0
    ");
    assert_eq!(repository_state(&sandbox), before);
    assert!(!sandbox.repo.join(".proq-worktrees").exists());
    let shown = sandbox.proq(&["show", "x"]).ok();
    let shown: Vec<&str> = shown.lines().filter(|line| !line.starts_with("log")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    lane       x
    title      where is the tax?
    state      done
    mode       answer: reads only, nothing to land
    reads      main (7f85e07d)
    in         .
    run 1      claude: done, exit code 0, 0s

    answer

    In tax.rs, line 3.
    It is called `tax`.
    ");
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    assert_eq!(shown["answer"], "In tax.rs, line 3.\nIt is called `tax`.\n");
    let file = sandbox.repo.join(".git/proq/lanes/x/runs/1.answer.md");
    assert_eq!(
        sandbox.normalize(file.as_os_str().as_encoded_bytes()),
        shown["answer_file"].as_str().unwrap()
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), shown["answer"].as_str().unwrap());
    assert_eq!(
        (&shown["mode"], &shown["branch"], &shown["runs"][0]["permission"]),
        (&"answer".into(), &Value::Null, &"read".into())
    );
    let row = sandbox.row("x");
    assert_eq!(
        (&row["mode"], &row["state"], &row["branch"]),
        (&"answer".into(), &"done".into(), &Value::Null)
    );
    sandbox.assert_healthy();
}

#[test]
fn list_marks_read_only_lanes_and_next_step() {
    let sandbox = with_claude("say 'first do this'");
    let out = sandbox.proq(&["spawn", "-n", "how", "--mode", "plan", "claude", "how to add x"]);
    insta::assert_snapshot!(out.to_text(), @r"
    lane 'how' for a plan, reading main (7f85e07d)
      [ROOT]/repo
    --- stderr
    claude reads the files there and changes nothing
    hint: wait for it: git proq wait how
    hint: read the result after that: git proq show how
    --- code 0
    ");
    let _ = sandbox.proq(&["wait", "how"]).ok();
    sandbox.run_lane("pay", "echo pay > pay.txt");
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    LANE  STATE  LINES  COMMITS  CHANGES  CONFLICTS  AGENT    UPDATED  TITLE
    how   done   -      plan     -        -          claude   0s ago   how to add x
    pay   done   +1     ↑1       -        -          command  0s ago   sh -ec 'echo pay > pay.txt'
    --- code 0
    ");
    let out = sandbox.proq(&[]);
    assert!(out.stderr.contains("hint: read the answer of 'how': git proq show how\n"), "{}", out.stderr);
    assert!(out.stderr.contains("hint: land 1 lane: git proq merge --all\n"), "{}", out.stderr);
}

#[test]
fn landing_commands_refuse_or_skip_read_only_lane() {
    let sandbox = with_claude("say yes");
    let _ = run_query(&sandbox).ok();
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).to_text(), @r"
    --- stderr
    error: cannot use lane 'x': it has no branch; it is an answer
    hint: read it: git proq show x
    --- code 2
    ");
    let all: [&[&str]; 10] = [
        &["merge", "x", "--dry-run"],
        &["preview", "x"],
        &["diff", "x"],
        &["resolve", "x", "--shell"],
        &["resolve", "x", "--agent", "claude"],
        &["resolve", "x", "--abort"],
        &["pick", "x"],
        &["compare", "x"],
        &["matrix", "x"],
        &["merge", "x", "--force", "--stop"],
    ];
    for args in all {
        let out = sandbox.proq(args);
        let expected =
            "error: cannot use lane 'x': it has no branch; it is an answer\nhint: read it: git proq show x\n";
        assert_eq!((out.code, out.stderr.as_str(), out.stdout.as_str()), (2, expected, ""), "{args:?}");
    }
    sandbox.run_lane("pay", "echo pay > pay.txt");
    let _ = sandbox.proq(&["matrix"]).ok();
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert_eq!(sandbox.read("pay.txt"), "pay\n");
    let _ = sandbox.proq(&["cleanup", "--all"]).ok();
    let _ = sandbox.proq(&["gc"]).ok();
    assert_eq!(sandbox.row("x")["state"], "done");
}

/// Promise: agent-git/answers
#[test]
fn empty_answer_fails() {
    for (script, reason) in [
        ("say ''", "it ended without an answer"),
        (r"say ' \n\t'", "it ended without an answer"),
        ("say 'half'; exit 1", ""),
        (
            "echo '{\"type\":\"assistant\",\"message\":{\"id\":\"a\",\"content\":[{\"type\":\"text\",\"text\":\"half\"}]}}'",
            "it ended without a result",
        ),
    ] {
        let sandbox = with_claude(script);
        let out = run_query(&sandbox);
        if reason.is_empty() {
            // The last message counts, not how the process exited.
            assert_eq!((out.code, out.stdout.as_str()), (0, "half\n"), "{}", out.to_text());
            continue;
        }
        assert_eq!((out.code, out.stdout.as_str()), (4, ""), "{}", out.to_text());
        assert!(out.stderr.contains(&format!("x: failed ({reason})")), "{}", out.stderr);
        assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["answer"], Value::Null);
        let _ = sandbox.proq(&["cleanup", "--all"]).ok();
        assert_eq!(sandbox.row("x"), Value::Null);
    }
}

#[test]
fn answer_is_printed_without_escapes() {
    let sandbox = with_claude(r"say 'a\u001b[2Jb'");
    let out = run_query(&sandbox);
    assert!(out.stdout.starts_with(r"a\u{1b}[2Jb"), "{}", out.stdout);
    assert!(!sandbox.proq(&["show", "x"]).ok().contains('\u{1b}'));
}

/// Promise: agent-git/read-only-run
#[test]
fn starts_only_agents_with_read_permission() {
    let sandbox = with_claude("say yes");
    sandbox.program("robot", "true");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--mode", "answer", "robot", "x?"]).to_text(), @r"
    --- stderr
    error: cannot start 'robot' with permission read: it has no read-only mode
    hint: show the permissions of each agent: git proq agents --wide
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--mode", "plan", "--", "true"]).to_text(), @r#"
    --- stderr
    error: cannot use mode plan: it needs an agent with a read-only mode, not a command
    hint: for example: git proq spawn claude --mode answer "where is the tax computed?"
    --- code 2
    "#);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--mode", "plan", "claude", "x?", "--permission", "edit"]).to_text(), @r#"
    --- stderr
    error: cannot use mode plan: it allows only permission read
    hint: for example: git proq spawn claude --mode answer "where is the tax computed?"
    --- code 2
    "#);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--mode", "plan", "claude", "x?", "--carry"]).to_text(), @r"
    --- stderr
    error: cannot combine --carry with --mode plan, which creates nothing to merge
    hint: leave out --carry, or use --mode build
    --- code 2
    ");
    let flags: [&[&str]; 8] = [
        &["--base", "main"],
        &["--onto", "main"],
        &["--check", "true"],
        &["--scope", "src"],
        &["--auto-merge"],
        &["--count", "2"],
        &["--empty"],
        &["--tmux"],
    ];
    for flag in flags {
        let out = sandbox.proq(&[&["spawn", "--mode", "answer", "claude", "x?"], flag].concat());
        assert_eq!(out.code, 2, "{flag:?}: {}", out.to_text());
    }
    let _ = sandbox.proq(&["spawn", "--mode", "answer", "--agents", "claude:2", "x?"]).fails(2);
    let _ = sandbox.proq(&["spawn", "--mode", "answer", "claude", " "]).fails(2);
    let _ = sandbox.proq(&["spawn", "--mode", "answer", "claude", "x?", "--dry-run"]).ok();
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    let _ = run_query(&sandbox).ok();
    let _ = sandbox.proq(&["run", "x", "claude", "and?", "--permission", "full"]).fails(2);
    let _ = sandbox.proq(&["run", "x", "true"]).fails(1);
    let _ = sandbox.proq(&["run", "x", "robot", "and?"]).fails(1);
    assert_eq!(sandbox.row("x")["state"], "done");
    let args = std::fs::read_to_string(sandbox.root().join("args")).unwrap();
    assert!(args.contains("--disallowedTools\nEdit\n"), "{args}");
    // Whatever the settings are.
    sandbox.git(&["config", "proq.agent.permission", "full"]);
    let _ = sandbox.proq(&["send", "x", "and?", "--wait"]).ok();
    let args = std::fs::read_to_string(sandbox.root().join("args")).unwrap();
    assert!(args.contains("--disallowedTools\nEdit\n") && args.contains("--resume\ns-1\n"), "{args}");
}

#[test]
fn rules_state_that_last_message_is_saved() {
    let sandbox = with_claude("say yes");
    sandbox.git(&["config", "proq.verify.commands", "make test"]);
    sandbox.write("notes.md", "notes\n");
    let _ = sandbox
        .proq(&["spawn", "-n", "x", "--mode", "plan", "--wait", "claude", "how?", "--attach", "notes.md"])
        .ok();
    let rules =
        sandbox.proq(&["show", "x", "--prompt", "--json"]).json()["rules"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(rules, @"
    # Rules of this run

    You are inspecting a git repository (mode `plan`, run `x`), in the main checkout: [ROOT]/repo, on `main` when you were started. The user may be working there now. Nobody can answer questions: decide yourself and list your assumptions in your final message.

    - This run is read-only. Change no file, commit nothing, and do not touch branches, the stash or git's configuration.
    - Your final message is the plan and the only output that is kept; do not write it to a file. List the steps in order, the files that each step changes, how to verify each step, and open questions. If the task specifies an output format, follow it.
    - The tool `read_task` of the MCP server `proq` shows this task again. Use `update_task` to report findings and steps that only a person can do. Without that server, use `git proq task read` and `git proq task update` instead.
    ");
    assert!(std::fs::read_to_string(sandbox.root().join("told")).unwrap().contains("attachments/notes.md"));
}

#[test]
fn follow_up_queries_keep_every_answer() {
    let sandbox = with_claude("case \"$*\" in *--resume*) say second;; *) say first;; esac");
    let _ = run_query(&sandbox).ok();
    assert_eq!(sandbox.proq(&["send", "x", "and the duty?", "--wait"]).ok(), "second\n");
    assert_eq!(std::fs::read_to_string(sandbox.root().join("told")).unwrap(), "and the duty?");
    assert_eq!(sandbox.proq(&["run", "x", "claude", "--wait"]).ok(), "first\n");
    insta::assert_snapshot!(sandbox.proq(&["redispatch", "x"]).to_text(), @r"
    restarted claude of lane 'x' on main (7f85e07d)
    --- stderr
    hint: wait for its answer: git proq wait x
    hint: read it after that: git proq show x
    --- code 0
    ");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let answers = [1, 2, 3, 4].map(|n| sandbox.read(&format!(".git/proq/lanes/x/runs/{n}.answer.md")));
    assert_eq!(answers, ["first\n", "second\n", "first\n", "first\n"]);
    let prompt = std::fs::read_to_string(sandbox.root().join("told")).unwrap();
    assert_eq!(prompt, "where is the tax?");
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["answer"], "first\n");
}

/// Returns a lane `x` whose agent waits for the pipe `go`, runs the script, and answers.
pub fn sandbox_with_waiting_query(script: &str) -> Sandbox {
    let sandbox = with_claude(&format!("echo up > \"$ROOT/up\"; read go < \"$ROOT/go\"; {script}\nsay yes"));
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--mode", "answer", "claude", "where is the tax?"]).ok();
    sandbox.read_pipe("up");
    sandbox
}

#[test]
fn killed_supervisor_leaves_orphaned_run() {
    let sandbox = sandbox_with_waiting_query("");
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    let _ = sandbox.proq(&["send", "x", "more"]).fails(1);
    let _ = sandbox.proq(&["discard", "x"]).fails(1);
    sandbox.write_pipe("go");
    while sandbox.row("x")["state"] == "orphaned" {}
    assert_eq!(sandbox.row("x")["state"], "failed");
    let doctor = sandbox.proq(&["doctor", "--fix", "--json"]).json();
    assert!(doctor.to_string().contains("lane-state"), "{doctor}");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    sandbox.read_pipe("up");
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["answer"], "yes\n");
    sandbox.assert_healthy();
}

/// Promise: agent-git/answers
#[test]
fn killed_start_leaves_nothing() {
    let sandbox = with_claude("say yes");
    let before = sandbox.lane_leftovers();
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "-n", "x", "--mode", "answer", "claude", "y?"]);
    command.env("PROQ_TEST_DIE_AT", "look.drafted");
    assert_ne!(sandbox.output(command).code, 0);
    assert_eq!(sandbox.row("x"), Value::Null);
    assert_eq!(sandbox.lane_leftovers(), before);
    sandbox.assert_healthy();
    let _ = run_query(&sandbox).ok();
}

/// Promise: agent-git/read-only-run
#[test]
fn git_writes_are_refused_or_reported() {
    let sandbox = with_claude(
        "{ git commit -q --allow-empty -m astray; git branch mine; git branch -D other; git stash
        git update-ref refs/proq/x HEAD; git switch -q other; git status -s; } 2>&1 | sed 's/^/# /'; say yes",
    );
    sandbox.git(&["branch", "other"]);
    sandbox.write("a.txt", "an edit of mine\n");
    let refs =
        || sandbox.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/stash"]);
    let before = refs();
    let _ = run_query(&sandbox).ok();
    assert_eq!(refs(), before);
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "other", "HEAD is not what is guarded");
    assert_eq!(sandbox.read("a.txt"), "an edit of mine\n");
    let log = sandbox.proq(&["logs", "x", "--raw"]).ok();
    for text in [
        "main is not for a run that only looks",
        "mine is not",
        "other is not",
        "refs/proq/x is not",
        "the stash is one",
    ] {
        assert!(log.contains(text), "{text}: {log}");
    }
    let messages = escape_messages(&sandbox);
    // Older versions of git run no hook for a branch that is switched to.
    let hook_runs = sandbox.git_version() >= (2, 46);
    let message = "the agent of lane 'x' ran git in the main checkout, which wrote HEAD there".to_owned();
    assert_eq!(messages.contains(&message), hook_runs, "{messages:?}");
}

/// Promise: agent-git/read-only-user-changes
#[test]
fn distinguishes_changes_named_in_its_output() {
    let sandbox =
        sandbox_with_waiting_query("echo x > \"$ROOT/repo/made.txt\"; echo \"wrote $ROOT/repo/made.txt\"");
    sandbox.write("mine.txt", "mine\n");
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let messages = escape_messages(&sandbox);
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("made.txt") && !messages[0].contains("mine.txt"), "{messages:?}");
    assert!(messages[0].contains("git-proq does not know who changed them"), "{messages:?}");
    let message = "while the agent of lane 'x', which was read-only, ran, these changed in the main checkout: mine.txt; git-proq cannot tell who changed them: this agent, you";
    assert_eq!(messages[1], message);
}

#[test]
fn read_only_agent_reads_task_and_reports() {
    let sandbox = sandbox_with_waiting_query(
        "git-proq task read --json > \"$ROOT/task\"; git-proq task update --finding 'the sky is blue'; git-proq merge --all 2> \"$ROOT/merge\"",
    );
    // Another process in the main checkout is not the agent.
    let _ = sandbox.proq(&["task", "read"]).fails(1);
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let task: Value =
        serde_json::from_str(&std::fs::read_to_string(sandbox.root().join("task")).unwrap()).unwrap();
    assert_eq!(
        (&task["mode"], &task["lane"], &task["branch"]),
        (&json!("answer"), &json!("x"), &Value::Null)
    );
    assert_eq!(task["prompt"], "where is the tax?");
    assert_eq!(
        sandbox.proq(&["show", "x", "--json"]).json()["report"]["findings"],
        json!(["the sky is blue"])
    );
    // Neither is a process that comes after the agent.
    let mut command = sandbox.proq_command(&sandbox.repo, &["task", "update", "--finding", "late"]);
    command.env("PROQ_LANE", "x");
    let _ = sandbox.output(command).fails(1);
}

#[test]
fn query_reads_whatever_is_checked_out() {
    let sandbox = with_claude("say \"$(git log -1 --format=%s)\"");
    sandbox.run_lane("pay", "echo pay > pay.txt");
    let _ = sandbox.proq(&["preview", "pay"]).ok();
    assert_eq!(run_query(&sandbox).code, 0);
    assert_eq!(sandbox.row("x")["base"], "proq/pay");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.git(&["switch", "-q", "--detach"]);
    let _ = sandbox.proq(&["spawn", "-n", "y", "--mode", "answer", "--wait", "claude", "what?"]).ok();
    assert_eq!(sandbox.row("y")["base"], "HEAD");
    // From within a lane the query still reads the main checkout.
    let _ = sandbox
        .proq_in(
            &sandbox.lane_path("pay"),
            &["spawn", "-n", "z", "--mode", "answer", "--wait", "claude", "what?"],
        )
        .ok();
    assert_eq!(sandbox.row("z")["path"], "[ROOT]/repo");
    let empty = Sandbox::empty();
    empty.program("claude", "true");
    let out = empty.proq(&["spawn", "--mode", "answer", "claude", "what?"]);
    assert!(out.code == 1 && out.stderr.contains("has no commit yet"), "{}", out.to_text());
}

/// Promise: agent-git/read-only-user-changes
#[test]
fn busy_service_is_retried() {
    let sandbox = with_claude(
        r#"[ -e "$ROOT/once" ] && { say yes; exit; }; : > "$ROOT/once"
        echo '{"type":"result","subtype":"error","is_error":true,"session_id":"s-1","api_error_status":429,"result":"API Error: 429 rate limit"}'; exit 1"#,
    );
    sandbox.git(&["config", "proq.agent.backoff", "0"]);
    sandbox.write("a.txt", "an edit of mine\n");
    let before = repository_state(&sandbox);
    assert_eq!(run_query(&sandbox).ok(), "yes\n");
    assert_eq!(sandbox.last_run("x")["attempt"], 2);
    assert_eq!(repository_state(&sandbox), before, "nothing is put back that it did not do");
}
