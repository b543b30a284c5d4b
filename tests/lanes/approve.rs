//! Tests of approving and revoking single commands that a repository defines.

use proq_test_kit::Sandbox;

/// Returns the first eight digits of the id of the command of `kind`.
fn command_id(sandbox: &Sandbox, kind: &str) -> String {
    let answer = sandbox.proq(&["approve", "--dry-run", "--json"]).json();
    let all = answer["commands"].as_array().unwrap();
    let row = all.iter().find(|row| row["kind"] == kind).unwrap_or_else(|| panic!("{answer}"));
    row["id"].as_str().unwrap()[..8].to_owned()
}

fn approved_kinds(sandbox: &Sandbox) -> Vec<String> {
    let answer = sandbox.proq(&["approve", "--list", "--json"]).json();
    let rows = answer["commands"].as_array().unwrap().iter().filter(|row| row["approved"] == true);
    rows.map(|row| row["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn approves_and_revokes_single_commands() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "proq.toml",
        "[verify]\ncommands = ['make']\n[hook]\n\"run.ended\" = ['one', 'two']\npre-merge = 'one'\n",
    );
    insta::assert_snapshot!(sandbox.proq(&["approve", "--list"]).to_text(), @r"
    2f887bf8  verify  make  (not approved)
    4a56f819  hook pre-merge  one  (not approved)
    8eb3c6b2  hook run.ended  one  (not approved)
    abc38ba4  hook run.ended  two  (not approved)
    --- code 0
    ");
    let check = command_id(&sandbox, "verify");
    let _ = sandbox.proq(&["approve", "--yes", &check]).ok();
    assert_eq!(approved_kinds(&sandbox), ["verify"]);
    let hook = command_id(&sandbox, "hook pre-merge");
    let _ = sandbox.proq(&["approve", "--yes", &hook]).ok();
    // An approval covers one use: the same command line under another key needs its own.
    assert_eq!(approved_kinds(&sandbox), ["verify", "hook pre-merge"]);
    insta::assert_snapshot!(sandbox.proq(&["approve", "--revoke", &check, "--dry-run"]).to_text(), @r"
    would revoke the approval of 1 command
    --- code 0
    ");
    assert_eq!(approved_kinds(&sandbox), ["verify", "hook pre-merge"]);
    let _ = sandbox.proq(&["approve", "--revoke", &check]).ok();
    assert_eq!(approved_kinds(&sandbox), ["hook pre-merge"]);
    for wrong in ["0123456789", &hook[..7]] {
        let _ = sandbox.proq(&["approve", "--revoke", wrong]).fails(1);
    }
    insta::assert_snapshot!(sandbox.proq(&["approve", "--yes", "00000000"]).to_text(), @r"
    --- stderr
    error: there is no command with the ID '00000000'
    hint: list the commands and their IDs: git proq approve --list
    --- code 1
    ");
    assert_eq!(approved_kinds(&sandbox), ["hook pre-merge"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(approved_kinds(&sandbox), ["verify", "hook pre-merge"]);
    let _ = sandbox.proq(&["approve", "--revoke"]).ok();
    assert_eq!(approved_kinds(&sandbox), [""; 0]);
}

/// Returns the command that the hint in `output` gives.
fn hinted_command(output: &str) -> &str {
    output.lines().find_map(|line| line.split_once("approve them without asking: ")).unwrap().1
}

/// Promise: checks/approval
#[test]
fn noninteractive_hint_approves_only_named_commands() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[verify]\ncommands = ['make', 'make test']\n");
    let plan = "format = 1\nsummary = 's'\nagent = 'true'\n[[task]]\nid = 't1'\ntitle = 'one'\nchecks = ['of the plan']\n";
    sandbox.write("my plan", plan);
    sandbox.commit_all("settings");
    sandbox.sh("git switch -qc 'it$s'; echo \"verify.commands = ['of release']\" > proq.toml; git commit -qam r; git switch -q main");
    let approved = || {
        let answer = sandbox.proq(&["approve", "--list", "--json"]).json();
        let all = answer["approved"].as_array().unwrap().iter();
        all.map(|row| row["command"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let id = command_id(&sandbox, "verify");
    for (args, command) in [
        (&["approve", "--plan", "my plan", "--format", "toml"][..], "of the plan"),
        (&["approve", "--onto", "it$s"], "of release"),
        (&["approve", &id], "make"),
    ] {
        let output = sandbox.proq(args).fails(1);
        assert!(output.contains("nothing was approved"), "{output}");
        sandbox.sh(hinted_command(&output));
        assert_eq!(approved(), [command], "{output}");
        let _ = sandbox.proq(&["approve", "--revoke"]).ok();
    }
    let output = sandbox.proq(&["swarm", "my plan", "--format", "toml"]).fails(1);
    assert!(output.contains("git proq approve --plan 'my plan' --format toml"), "{output}");
}

#[test]
fn escapes_control_characters_from_repository() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "verify.commands = [\"true \\u001b[2J\\u202ex\"]\n");
    let out = sandbox.proq(&["cleanup"]);
    assert_ne!(out.code, 0);
    let marks = ['\u{1b}', '\u{202e}'];
    for out in [out, sandbox.proq(&["list"])] {
        assert!(!out.stderr.contains(marks) && out.stderr.contains("\\u{1b}[2J"), "{}", out.stderr);
    }
}

#[test]
fn agent_cannot_approve_commands() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[verify]\ncommands = ['make']\n");
    sandbox.lane_with_commit(
        "x",
        "git proq approve --yes 2> $ROOT/said || echo $? > $ROOT/code; git proq approve --list > $ROOT/list",
    );
    let read = |name: &str| std::fs::read_to_string(sandbox.root().join(name)).unwrap();
    assert_ne!(read("code").trim(), "0", "{}", read("said"));
    assert!(read("said").contains("lane 'x'"), "{}", read("said"));
    assert!(read("list").contains("make  (not approved)"), "{}", read("list"));
    assert!(approved_kinds(&sandbox).is_empty());
}

/// Promise: agent-requests/no-discard-no-full
#[test]
fn agent_cannot_discard_others_or_raise_permission() {
    let sandbox = Sandbox::new();
    sandbox.agent("claude", "echo 1 > one");
    sandbox.run_lane("other", "echo other > other; git add .; git commit -qm other");
    let script = "try() { name=$1; shift; \"$@\" > $ROOT/$name 2>&1 && echo 0 >> $ROOT/$name || echo $? >> $ROOT/$name; }
        try gone git proq discard --force other
        try both git proq discard --force other mine
        try full git proq spawn -n more --permission full claude 'do it'
        try resolve git proq resolve mine --agent claude --permission full
        PROQ_AGENT_PERMISSION=full try set git proq spawn -n more claude 'do it'
        cd $ROOT/repo
        try away git proq discard --force other
        try edit git proq spawn -n edit --wait claude 'do it'";
    sandbox.run_lane("mine", script);
    let log_of = |name: &str| std::fs::read_to_string(sandbox.root().join(name)).unwrap();
    for name in ["gone", "both", "full", "resolve", "set", "away"] {
        let log = log_of(name);
        assert!(log.contains("cannot do this from lane 'mine'") && log.ends_with("\n1\n"), "{name}: {log}");
    }
    assert!(log_of("edit").ends_with("\n0\n"), "{}", log_of("edit"));
    assert_eq!(sandbox.row("other")["state"], "done");
    assert_eq!(sandbox.row("edit")["state"], "done");
    assert!(!sandbox.lane_path("more").exists());
    // The user is not in a lane, and an agent may discard its own lane.
    let _ = sandbox.proq(&["discard", "--force", "other"]).ok();
    let _ = sandbox.proq_in(&sandbox.lane_path("mine"), &["discard", "--force", "mine"]).ok();
}
