//! Hints about agents and their runs.

use proq_test_kit::Sandbox;

use crate::scenes::{NO_COMMAND, Row, play};

const ABOUT_CHOOSING_AN_AGENT: &[Row] = &[
    ["", "git proq spawn nosuchprogram 'do x'", "list installed agents", "claude", ""],
    [
        "program claude true",
        "git proq spawn claude 'do x' -- worker",
        "leave out the command",
        NO_COMMAND,
        "",
    ],
    [
        "program claude true; program my-agent true",
        "git proq spawn claude 'do x' -- my-agent",
        "or, if it speaks the Agent Client Protocol",
        "lane",
        "",
    ],
    ["", "git proq spawn acp 'do x'", "or add [agents.my-agent]", NO_COMMAND, ""],
    [
        "program claude true",
        "git proq spawn claude 'do x' --allow 'cargo *' --permission read",
        "leave --allow out, or use it with",
        NO_COMMAND,
        "",
    ],
    ["program claude true", "git proq spawn claude 'do x' --allow ''", "for example", "lane", ""],
    [
        "printf '[agents.x]\\nlike = 3\\n' > ../home/c.toml; mkdir -p ../home/.config/git-proq; mv ../home/c.toml ../home/.config/git-proq/config.toml",
        "git proq agents",
        "correct it, or move it away",
        "",
        "git proq agents",
    ],
    [
        "program claude true",
        "printf 'a\\000b' > p; git proq spawn claude -F p",
        "a prompt is plain text",
        NO_COMMAND,
        "",
    ],
    ["program claude true", "git proq spawn claude ''", "for example", "lane", ""],
];

#[test]
fn hints_about_choosing_an_agent_work() {
    play(ABOUT_CHOOSING_AN_AGENT);
}

const ABOUT_RUNS_OF_A_LANE: &[Row] = &[
    ["lane a", "git proq stop a", "show the lane", "Add a", ""],
    [
        "lane a; program claude 'grep -m1 -o \"it.s more\" > s; git add s; git commit -qm s'",
        "git proq send a \"it's more\"",
        "start a new one",
        "a",
        "git proq wait a || true; git show proq/a:s | grep -q \"it's more\"",
    ],
    [
        "lane a; program claude 'cat message.md > s; git add s; git commit -qm s'",
        "printf '1\\n2\\n' | git proq send a -F -; echo 'do s' > message.md",
        "start a new one",
        "a",
        "git proq wait a || true; git show proq/a:s",
    ],
    [
        "mkfifo p; program claude 'echo > s; git add s; git commit -qm s'; \
             git proq spawn -n b -- sh -c 'read x < ../../p; exit 3'",
        "git proq send b more; echo > p",
        "once its run has ended, start a new one",
        "b",
        "git proq wait b || true; git show proq/b:s",
    ],
    ["lane a; program claude true", "git proq run a", "name one", "a", "git proq wait a || true"],
    ["lane a", "git proq run a -- true", "run it in a new lane", "lane", ""],
    ["lane a; program claude true", "git proq redispatch a", "start a lane with a task", "lane", ""],
    ["", "git proq spawn -n b -- true", "follow it", "", ""],
    ["", "git proq spawn -n b -- true", "wait for it", "b", ""],
    ["git proq spawn -n b -- sh -c 'sleep 1'", "git proq show b", "follow the agent", "", ""],
];

#[test]
fn hints_about_runs_of_a_lane_work() {
    play(ABOUT_RUNS_OF_A_LANE);
}

const ABOUT_AGENTS_AND_NAMES_OF_TABLES: &[Row] = &[
    [
        "program claude true; program codex true",
        "git proq spawn -n a 'do x'",
        "or choose the default",
        "",
        "test \"$(git config --global proq.agent.default)\" = claude",
    ],
    [
        "",
        "PATH=/usr/bin:/bin $(command -v git-proq) spawn 'do x'",
        "see which agents are known",
        "claude",
        "",
    ],
    [
        "git config proq.agent.allow 'a;b'; program claude true",
        "git proq spawn claude x",
        "see where it is set",
        "a;b",
        "",
    ],
    [
        "program my-command true",
        "git proq spawn command 'do x' -- true",
        "start the command alone",
        "",
        "git proq wait my-command",
    ],
    [
        "program claude true",
        "git proq spawn claude do x",
        "quote the prompt",
        "",
        "git proq list --all | grep -q do-x",
    ],
    [
        "printf 'agents = 3\\n' > c.toml; mkdir -p ../home/.config/git-proq; mv c.toml \
             ../home/.config/git-proq/config.toml",
        "git proq agents",
        "write it as [agents.my-name]",
        NO_COMMAND,
        "",
    ],
];

#[test]
fn hints_about_agents_and_names_of_tables_work() {
    play(ABOUT_AGENTS_AND_NAMES_OF_TABLES);
}

const ABOUT_BUSY_AND_ENDED_RUNS: &[Row] = &[
    [
        "program claude 'echo x >> $ROOT/args; test $(wc -l < $ROOT/args) -ne 2'; git proq \
             supervise claude",
        "git proq supervise",
        "start a new session",
        "",
        "test $(wc -l < ../args) = 3",
    ],
    [
        "mkdir -p tasks/a/1-x; echo x > tasks/a/1-x/PROMPT.md; ln -s /etc/passwd \
             tasks/a/1-x/z; git add .; git commit -qm t; program claude true",
        "git proq spawn claude --folder tasks/a/1-x",
        "read what a task folder needs",
        "PROMPT.md",
        "",
    ],
    [
        "git proq spawn --wait -n b -- sh -c 'echo oh; exit 3' || true",
        "git proq show b",
        "show its output",
        "oh",
        "",
    ],
    [
        "git proq spawn -q -n w -- sh -c 'echo x > x; git add x; git commit -qm x; touch \
             $ROOT/up; exec sleep 60'; until test -e ../up; do git proq list > /dev/null; done",
        "git proq merge w",
        "stop it and merge",
        "w",
        "test -f x",
    ],
    [
        "git config proq.lane.setup 'exec sleep 9'; git config proq.lane.setupLimit 1s",
        "git proq spawn -n a --empty",
        "raise the time limit",
        "",
        "test \"$(git config proq.lane.setupLimit)\" = 30m",
    ],
];

#[test]
fn hints_about_busy_and_ended_runs_work() {
    play(ABOUT_BUSY_AND_ENDED_RUNS);
}

#[test]
fn hint_for_an_agent_that_would_land_another_lane_works() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("a", "echo x > x.txt");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    let dir = sandbox.lane_path("b");
    let mut command = sandbox.proq_command(&dir, &["merge", "a"]);
    command.env("PROQ_LANE", "b").env("PROQ_ATTEMPT", "1");
    let refused = sandbox.output(command).fails(1);
    assert_eq!(sandbox.follow_hint_in(&dir, &refused, "report what a person should do").code, 0);
    assert!(sandbox.proq(&["show", "b"]).ok().contains("to do      TEXT"));
}

const ABOUT_NAMING_AN_AGENT: &[Row] = &[
    ["program claude true; program codex true", "git proq spawn 'do x'", "name one", "lane", ""],
    [
        "program my-agent 'read x; echo $x > $ROOT/read'",
        "git proq spawn acp 'do x'",
        "name it behind '--'",
        "acp is running",
        "git proq wait implement-payments || grep -q initialize ../read",
    ],
    [
        "echo task > t; git proq spawn -q --wait -n b -F t -- cat {prompt_file}; says ok",
        "git proq redispatch b",
        "name an agent",
        "with claude",
        "git proq wait b || true",
    ],
    [
        "says ok",
        "git proq spawn claude 'do x' --check ''",
        "for example",
        "make test-payments",
        "git proq wait implement-payments || true",
    ],
    [
        "says ok",
        "git proq spawn claude 'do x' --sparse",
        "for example",
        "lane",
        "git -C .proq-worktrees/implement-payments sparse-checkout list | grep -q src/pay",
    ],
    [
        "mkfifo p; git proq spawn -n b -- sh -c 'read x < ../../p'",
        "git proq; echo > p",
        "follow the agent of",
        "b:",
        "",
    ],
];

#[test]
fn hints_about_naming_an_agent_work() {
    play(ABOUT_NAMING_AN_AGENT);
}

#[test]
fn hints_for_the_agent_of_a_lane_work() {
    let sandbox = Sandbox::new();
    for name in ["a", "b"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", name]).ok();
    }
    let lane = sandbox.lane_path("a");
    let refused = sandbox.proq_in(&lane, &["supervise"]);
    let followed = sandbox.follow_hint_in(&lane, &refused.stderr, "an agent in a lane can report");
    assert_eq!(followed.code, 0, "{}", followed.stderr);
    assert!(sandbox.proq(&["show", "a"]).stdout.contains("TEXT"));

    let mut merge = sandbox.command("git", &sandbox.repo);
    merge.args(["proq", "merge", "b"]).env("PROQ_LANE", "a").env("PROQ_ATTEMPT", "1");
    let refused = sandbox.output(merge);
    let followed = sandbox.follow_hint(&refused.stderr, "a person can run it in a terminal");
    assert!(followed.stderr.contains("none of these agents is installed"), "{}", followed.stderr);
}

/// Script of an agent that was not allowed to run `make test`.
const DENIED: &str = r#"program claude 'cat <<END
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"make test"}}]}}
{"type":"result","subtype":"success","is_error":false,"permission_denials":[{"tool_name":"Bash","tool_use_id":"t"}]}
END'"#;

#[test]
fn hints_about_what_an_agent_can_take_work() {
    play(&[
        [
            DENIED,
            "git proq spawn --wait claude x",
            "allow it from now on",
            "",
            "test \"$(git config proq.agent.allow)\" = 'make *'",
        ],
        [
            "printf task > task.md; head -c 200000 /dev/zero | tr '\\0' x > long; program cursor-agent true; \
             program my-agent 'cat $1 > $ROOT/read'",
            "git proq spawn --file long cursor",
            "let the agent read a file",
            "lane",
            "git proq wait payments; grep -q task ../read",
        ],
        [
            "program my-agent true; program tmux true; mkdir -p ../home/.config/git-proq; \
             printf '[agents.x]\\nprogram = \"my-agent\"\\nargs.start=[\"{prompt}\"]\\n' \
             > ../home/.config/git-proq/config.toml",
            "git proq spawn --tmux x 'do'",
            "leave --tmux out",
            NO_COMMAND,
            "",
        ],
        [
            "program gemini true; echo '[' > ../home/g",
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH=$ROOT/home/g git proq supervise gemini",
            "make ",
            NO_COMMAND,
            "",
        ],
        [
            "program claude true; sed -i 's/sh/nosuch/' ../bin/claude",
            "git proq supervise claude",
            "check its interpreter",
            "#!/bin/nosuch",
            "",
        ],
        [
            "git config core.hooksPath .husky/_",
            "git proq hooks install",
            "call this from a post-commit hook of yours",
            "",
            "",
        ],
    ]);
}
