//! Owns the tests of runs that only look: `--mode answer` and `--mode plan`, what they come to, and what they may not touch.

use serde_json::{Value, json};

use super::stop::kill_supervisor;
use super::support::patience::wait_until;
use super::support::{Output, Sandbox};

/// What begins and ends an agent that says something. `say TEXT` is its last message.
const WORDS: &str = r#"cat > "$ROOT/told"; printf '%s\n' "$@" > "$ROOT/args"
    say() { printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","result":"%s"}\n' "$1"; }
    echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'"#;

/// A sandbox whose `claude` runs this script.
pub fn with_claude(script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("claude", &format!("{WORDS}\n{script}"));
    sandbox
}

/// Asks, as lane `x`, and waits for the answer.
fn ask(sandbox: &Sandbox) -> Output {
    sandbox.proq(&["spawn", "-n", "x", "--mode", "answer", "--wait", "claude", "where is the tax?"])
}

/// The branches, tags and everything of git-proq's, and what is in the main checkout.
pub fn repository(sandbox: &Sandbox) -> [String; 3] {
    [&["for-each-ref"][..], &["status", "--porcelain"], &["worktree", "list"]].map(|args| sandbox.git(args))
}

pub fn told_of_escapes(sandbox: &Sandbox) -> Vec<String> {
    let all = sandbox.events("lane.escape");
    all.iter().map(|event| sandbox.plain(event["message"].as_str().unwrap().as_bytes())).collect()
}

#[test]
fn an_answer_is_printed_and_kept_and_changes_nothing() {
    let sandbox = with_claude(r"say 'In tax.rs, line 3.\nIt is called `tax`.'");
    sandbox.write("a.txt", "an edit of mine\n");
    let before = repository(&sandbox);
    insta::assert_snapshot!(ask(&sandbox).shown(), @r"
    In tax.rs, line 3.
    It is called `tax`.
    --- code 0
    ");
    assert_eq!(repository(&sandbox), before);
    assert!(!sandbox.repo.join(".proq-worktrees").exists());
    let shown = sandbox.proq(&["show", "x"]).ok();
    let shown: Vec<&str> = shown.lines().filter(|line| !line.starts_with("log")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    lane       x
    title      where is the tax?
    state      done
    mode       answer: it only looks, there is nothing to land
    looks at   main (7f85e07d)
    in         [ROOT]/repo
    run 1      claude: done, exit code 0, 0s

    where is the tax?

    its answer

    In tax.rs, line 3.
    It is called `tax`.
    ");
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    assert_eq!(shown["answer"], "In tax.rs, line 3.\nIt is called `tax`.\n");
    let file = sandbox.repo.join(".git/proq/lanes/x/runs/1.answer.md");
    assert_eq!(sandbox.plain(file.as_os_str().as_encoded_bytes()), shown["answer_file"].as_str().unwrap());
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
fn a_list_says_what_is_an_answer_and_what_comes_next() {
    let sandbox = with_claude("say 'first do this'");
    let out = sandbox.proq(&["spawn", "-n", "how", "--mode", "plan", "claude", "how to add x"]);
    insta::assert_snapshot!(out.shown(), @r"
    lane 'how' for a plan, looking at main (7f85e07d)
      [ROOT]/repo
    --- stderr
    claude looks there, and changes nothing
    hint: wait for it: git proq wait how   read it then: git proq show how
    --- code 0
    ");
    let _ = sandbox.proq(&["wait", "how"]).ok();
    sandbox.lane_with("pay", "echo pay > pay.txt");
    insta::assert_snapshot!(sandbox.proq(&["list"]).shown(), @r"
    LANE  STATE  AGENT    COMMITS  CHANGES  AGE  TITLE
    how   done   claude   plan     -        0s   how to add x
    pay   done   command  +1       -        0s   sh -ec echo pay > pay.txt
    --- code 0
    ");
    let out = sandbox.proq(&[]);
    assert!(out.stderr.contains("hint: git proq show how prints what it came to"), "{}", out.stderr);
    assert!(out.stderr.contains("hint: git proq merge --all lands 1 lane\n"), "{}", out.stderr);
}

#[test]
fn what_lands_or_shows_changes_is_refused_by_name_and_passes_it_over() {
    let sandbox = with_claude("say yes");
    let _ = ask(&sandbox).ok();
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).shown(), @r"
    --- stderr
    error: lane 'x' has no branch and no changes of its own: it is an answer
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
        let said = "error: lane 'x' has no branch and no changes of its own: it is an answer\nhint: read it: git proq show x\n";
        assert_eq!((out.code, out.stderr.as_str(), out.stdout.as_str()), (2, said, ""), "{args:?}");
    }
    sandbox.lane_with("pay", "echo pay > pay.txt");
    let _ = sandbox.proq(&["matrix"]).ok();
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert_eq!(sandbox.read("pay.txt"), "pay\n");
    let _ = sandbox.proq(&["cleanup", "--all"]).ok();
    let _ = sandbox.proq(&["gc"]).ok();
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn no_words_are_no_answer() {
    for (script, why) in [
        ("say ''", "it ended without an answer"),
        (r"say ' \n\t'", "it ended without an answer"),
        ("say 'half'; exit 1", ""),
        (
            "echo '{\"type\":\"assistant\",\"message\":{\"id\":\"a\",\"content\":[{\"type\":\"text\",\"text\":\"half\"}]}}'",
            "it ended without a result",
        ),
    ] {
        let sandbox = with_claude(script);
        let out = ask(&sandbox);
        if why.is_empty() {
            // Its last word counts, and not how its process ended.
            assert_eq!((out.code, out.stdout.as_str()), (0, "half\n"), "{}", out.shown());
            continue;
        }
        assert_eq!((out.code, out.stdout.as_str()), (4, ""), "{}", out.shown());
        assert!(out.stderr.contains(&format!("x: failed ({why})")), "{}", out.stderr);
        assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["answer"], Value::Null);
        let _ = sandbox.proq(&["cleanup", "--all"]).ok();
        assert_eq!(sandbox.row("x"), Value::Null);
    }
}

#[test]
fn nothing_in_an_answer_is_obeyed_by_a_terminal() {
    let sandbox = with_claude(r"say 'a\u001b[2Jb'");
    let out = ask(&sandbox);
    assert!(out.stdout.starts_with(r"a\u{1b}[2Jb"), "{}", out.stdout);
    assert!(!sandbox.proq(&["show", "x"]).ok().contains('\u{1b}'));
}

#[test]
fn only_an_agent_that_can_be_kept_to_looking_is_started() {
    let sandbox = with_claude("say yes");
    sandbox.program("robot", "true");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--mode", "answer", "robot", "x?"]).shown(), @r"
    --- stderr
    error: nothing is known that keeps 'robot' from changing things, so it cannot be started with permission read; nothing was made
    hint: see which agents have permissions: git proq agents --wide
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--mode", "plan", "--", "true"]).shown(), @r#"
    --- stderr
    error: mode plan takes an agent: nothing keeps a command of yours from changing things; nothing was made
    hint: as in: git proq spawn claude --mode answer "where is the tax computed?"
    --- code 2
    "#);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--mode", "plan", "claude", "x?", "--permission", "edit"]).shown(), @r#"
    --- stderr
    error: mode plan only looks, so there is no other permission than read; nothing was made
    hint: as in: git proq spawn claude --mode answer "where is the tax computed?"
    --- code 2
    "#);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--mode", "plan", "claude", "x?", "--carry"]).shown(), @r"
    --- stderr
    error: --carry does not go with --mode plan, which makes nothing that could land; nothing was made
    hint: leave --carry out, or have it built: --mode build
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
        assert_eq!(out.code, 2, "{flag:?}: {}", out.shown());
    }
    let _ = sandbox.proq(&["spawn", "--mode", "answer", "--agents", "claude:2", "x?"]).fails(2);
    let _ = sandbox.proq(&["spawn", "--mode", "answer", "claude", " "]).fails(2);
    let _ = sandbox.proq(&["spawn", "--mode", "answer", "claude", "x?", "--dry-run"]).ok();
    assert_eq!(sandbox.traces(), [""; 0]);
    let _ = ask(&sandbox).ok();
    let _ = sandbox.proq(&["run", "x", "claude", "and?", "--permission", "full"]).fails(2);
    let _ = sandbox.proq(&["run", "x", "true"]).fails(1);
    let _ = sandbox.proq(&["run", "x", "robot", "and?"]).fails(1);
    assert_eq!(sandbox.row("x")["state"], "done");
    let args = std::fs::read_to_string(sandbox.root().join("args")).unwrap();
    assert!(args.contains("--disallowedTools\nEdit\n"), "{args}");
    // Whatever the settings say.
    sandbox.git(&["config", "proq.agent.permission", "full"]);
    let _ = sandbox.proq(&["send", "x", "and?", "--wait"]).ok();
    let args = std::fs::read_to_string(sandbox.root().join("args")).unwrap();
    assert!(args.contains("--disallowedTools\nEdit\n") && args.contains("--resume\ns-1\n"), "{args}");
}

#[test]
fn it_is_told_that_its_last_message_is_what_is_kept() {
    let sandbox = with_claude("say yes");
    sandbox.git(&["config", "proq.verify.commands", "make test"]);
    sandbox.write("notes.md", "notes\n");
    let _ = sandbox
        .proq(&["spawn", "-n", "x", "--mode", "plan", "--wait", "claude", "how?", "--attach", "notes.md"])
        .ok();
    let rules =
        sandbox.proq(&["show", "x", "--prompt", "--json"]).json()["rules"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(rules, @r"
    # Rules of this run

    You look at a git repository (mode `plan`, called `x`), where it is checked out: [ROOT]/repo, on `main` when this was asked. People work there at the same time. Nobody can answer questions: decide, and say at the end what you assumed.

    - Look only. Change no file, commit nothing, and leave branches, the stash and git's settings alone.
    - Your last message is the plan, and the only thing that is kept: write it into no file. Name the steps in their order, the files that each changes, how one sees that it is done, and what is not clear yet. Where you were told in which form to answer, that form counts.
    - The tool `read_task` of the MCP server `proq` gives you this task again. Report with `update_task` what you found out, and what only a person can do. Without that server, `git proq task read` and `git proq task update` do the same.
    ");
    assert!(std::fs::read_to_string(sandbox.root().join("told")).unwrap().contains("attachments/notes.md"));
}

#[test]
fn more_can_be_asked_in_the_same_session_and_each_answer_stays() {
    let sandbox = with_claude("case \"$*\" in *--resume*) say second;; *) say first;; esac");
    let _ = ask(&sandbox).ok();
    assert_eq!(sandbox.proq(&["send", "x", "and the duty?", "--wait"]).ok(), "second\n");
    assert_eq!(std::fs::read_to_string(sandbox.root().join("told")).unwrap(), "and the duty?");
    assert_eq!(sandbox.proq(&["run", "x", "claude", "--wait"]).ok(), "first\n");
    insta::assert_snapshot!(sandbox.proq(&["redispatch", "x"]).shown(), @r"
    lane 'x' asks claude anew, of main (7f85e07d)
    --- stderr
    hint: wait for it: git proq wait x   read its answer then: git proq show x
    --- code 0
    ");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let answers = [1, 2, 3, 4].map(|n| sandbox.read(&format!(".git/proq/lanes/x/runs/{n}.answer.md")));
    assert_eq!(answers, ["first\n", "second\n", "first\n", "first\n"]);
    let told = std::fs::read_to_string(sandbox.root().join("told")).unwrap();
    assert_eq!(told, "where is the tax?");
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["answer"], "first\n");
}

#[test]
fn one_that_is_discarded_can_be_read_and_comes_back() {
    let sandbox = with_claude("say 'in tax.rs'");
    let _ = ask(&sandbox).ok();
    insta::assert_snapshot!(sandbox.proq(&["discard", "x"]).shown(), @r"
    discarded x
    --- stderr
    what was said stays for a while: git proq show x@1
    --- code 0
    ");
    assert_eq!(sandbox.row("x"), Value::Null);
    assert_eq!(sandbox.proq(&["show", "x@1", "--json"]).json()["answer"], "in tax.rs\n");
    assert!(sandbox.proq(&["list", "--all"]).ok().contains("x@1"));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["answer"], "in tax.rs\n");
    let _ = sandbox.proq(&["edit", "x", "--title", "The tax"]).ok();
    assert_eq!(sandbox.row("x")["title"], "The tax");
    let _ = sandbox.proq(&["cleanup", "x"]).ok();
    assert_eq!(sandbox.row("x"), Value::Null);
    sandbox.assert_healthy();
}

/// A lane `x` whose agent looks until it is told to go on.
fn at_work(script: &str) -> Sandbox {
    let sandbox = with_claude(&format!("echo up > \"$ROOT/up\"; read go < \"$ROOT/go\"; {script}\nsay yes"));
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--mode", "answer", "claude", "where is the tax?"]).ok();
    sandbox.hear("up");
    sandbox
}

#[test]
fn one_at_work_is_stopped_or_refused() {
    let sandbox = at_work("");
    assert_eq!(sandbox.started_row("x")["state"], "running");
    let out = sandbox.proq(&["discard", "x"]);
    insta::assert_snapshot!(out.shown(), @r"
    --- stderr
    error: lane 'x' was kept: its agent is running
    hint: stop its agent: git proq stop x
    hint: remove it all the same, saving everything first: git proq discard --force x
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["cleanup", "--all"]).code, 0);
    let _ = sandbox.proq(&["run", "x", "claude"]).fails(1);
    let _ = sandbox.proq(&["redispatch", "x"]).fails(1);
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "stopped");
    let sandbox = at_work("");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert_eq!(sandbox.row("x"), Value::Null);
    assert_eq!(sandbox.proq(&["show", "x@1", "--json"]).json()["state"], "discarded");
}

#[test]
fn a_killed_supervisor_leaves_an_orphan_that_is_known() {
    let sandbox = at_work("");
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    let _ = sandbox.proq(&["send", "x", "more"]).fails(1);
    let _ = sandbox.proq(&["discard", "x"]).fails(1);
    sandbox.tell("go");
    while sandbox.row("x")["state"] == "orphaned" {}
    assert_eq!(sandbox.row("x")["state"], "failed");
    let doctor = sandbox.proq(&["doctor", "--fix", "--json"]).json();
    assert!(doctor.to_string().contains("lane-state"), "{doctor}");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    sandbox.hear("up");
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["answer"], "yes\n");
    sandbox.assert_healthy();
}

#[test]
fn one_whose_supervisor_was_killed_can_be_put_away() {
    for away in ["discard", "cleanup"] {
        let sandbox = at_work("");
        kill_supervisor(&sandbox, "x");
        sandbox.tell("go");
        wait_until("its agent has ended", || sandbox.row("x")["state"] == "failed");
        let _ = sandbox.proq(&[away, "x"]).ok();
        assert_eq!(sandbox.row("x"), Value::Null);
        // It may have been killed while it wrote a record; what it had of the next one stays for a day.
        let report = sandbox.proq(&["doctor", "--json"]).json();
        let findings = report["findings"].as_array().unwrap().iter();
        let known = |finding: &&Value| finding["check"] == "half-written" || finding["check"] == "disk-space";
        let others: Vec<&Value> =
            findings.filter(|finding| finding["severity"] != "info" && !known(finding)).collect();
        assert!(others.is_empty(), "{others:#?}");
    }
}

#[test]
fn one_that_is_cut_off_while_it_is_made_leaves_nothing() {
    let sandbox = with_claude("say yes");
    let before = sandbox.traces();
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "-n", "x", "--mode", "answer", "claude", "y?"]);
    command.env("PROQ_TEST_DIE_AT", "look.drafted");
    assert_ne!(sandbox.output(command).code, 0);
    assert_eq!(sandbox.row("x"), Value::Null);
    assert_eq!(sandbox.traces(), before);
    sandbox.assert_healthy();
    let _ = ask(&sandbox).ok();
}

#[test]
fn its_git_writes_no_branch_and_what_it_does_in_the_main_checkout_is_told() {
    let sandbox = with_claude(
        "{ git commit -q --allow-empty -m astray; git branch mine; git branch -D other; git stash
        git update-ref refs/proq/x HEAD; git switch -q other; git status -s; } 2>&1 | sed 's/^/# /'; say yes",
    );
    sandbox.git(&["branch", "other"]);
    sandbox.write("a.txt", "an edit of mine\n");
    let refs =
        || sandbox.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/stash"]);
    let before = refs();
    let _ = ask(&sandbox).ok();
    assert_eq!(refs(), before);
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "other", "HEAD is not what is guarded");
    assert_eq!(sandbox.read("a.txt"), "an edit of mine\n");
    let log = sandbox.proq(&["logs", "x", "--raw"]).ok();
    for what in [
        "main is not for a run that only looks",
        "mine is not",
        "other is not",
        "refs/proq/x is not",
        "the stash is one",
    ] {
        assert!(log.contains(what), "{what}: {log}");
    }
    let told = told_of_escapes(&sandbox);
    // Older ones ask no hook about a branch that is switched to.
    let asks = sandbox.git_version() >= (2, 46);
    let words = "the agent of lane 'x' ran git in the main checkout, which wrote HEAD there".to_owned();
    assert_eq!(told.contains(&words), asks, "{told:?}");
}

#[test]
fn a_change_is_told_when_its_output_names_it_and_not_blamed_on_it_otherwise() {
    let sandbox = at_work("echo x > \"$ROOT/repo/made.txt\"; echo \"wrote $ROOT/repo/made.txt\"");
    sandbox.write("mine.txt", "mine\n");
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let told = told_of_escapes(&sandbox);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("made.txt") && !told[0].contains("mine.txt"), "{told:?}");
    assert!(told[0].contains("it is not known who changed them"), "{told:?}");
    let may_be = "while the agent of lane 'x', which was only to look, ran, these changed in the main checkout: mine.txt; that may have been you: nothing says who it was";
    assert_eq!(told[1], may_be);
}

#[test]
fn an_agent_that_looks_reads_its_task_and_reports() {
    let sandbox = at_work(
        "git-proq task read --json > \"$ROOT/task\"; git-proq task update --finding 'the sky is blue'; git-proq merge --all 2> \"$ROOT/merge\"",
    );
    // Somebody else in the main checkout is not it.
    let _ = sandbox.proq(&["task", "read"]).fails(1);
    sandbox.tell("go");
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
    // Nor is who comes after it.
    let mut command = sandbox.proq_command(&sandbox.repo, &["task", "update", "--finding", "late"]);
    command.env("PROQ_LANE", "x");
    let _ = sandbox.output(command).fails(1);
}

#[test]
fn it_looks_at_what_is_checked_out_whatever_that_is() {
    let sandbox = with_claude("say \"$(git log -1 --format=%s)\"");
    sandbox.lane_with("pay", "echo pay > pay.txt");
    let _ = sandbox.proq(&["preview", "pay"]).ok();
    assert_eq!(ask(&sandbox).code, 0);
    assert_eq!(sandbox.row("x")["base"], "proq/pay");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.git(&["switch", "-q", "--detach"]);
    let _ = sandbox.proq(&["spawn", "-n", "y", "--mode", "answer", "--wait", "claude", "what?"]).ok();
    assert_eq!(sandbox.row("y")["base"], "HEAD");
    // From within a lane it is the main checkout all the same.
    let _ = sandbox
        .proq_in(&sandbox.lane("pay"), &["spawn", "-n", "z", "--mode", "answer", "--wait", "claude", "what?"])
        .ok();
    assert_eq!(sandbox.row("z")["path"], "[ROOT]/repo");
    let empty = Sandbox::empty();
    empty.program("claude", "true");
    let out = empty.proq(&["spawn", "--mode", "answer", "claude", "what?"]);
    assert!(out.code == 1 && out.stderr.contains("has no commit yet"), "{}", out.shown());
}

#[test]
fn a_service_that_is_busy_is_asked_again() {
    let sandbox = with_claude(
        r#"[ -e "$ROOT/once" ] && { say yes; exit; }; : > "$ROOT/once"
        echo '{"type":"result","subtype":"error","is_error":true,"session_id":"s-1","api_error_status":429,"result":"API Error: 429 rate limit"}'; exit 1"#,
    );
    sandbox.git(&["config", "proq.agent.backoff", "0"]);
    sandbox.write("a.txt", "an edit of mine\n");
    let before = repository(&sandbox);
    assert_eq!(ask(&sandbox).ok(), "yes\n");
    assert_eq!(sandbox.last_run("x")["attempt"], 2);
    assert_eq!(repository(&sandbox), before, "nothing is put back that it did not do");
}
