//! Hints about agents and their runs.

use crate::scenes::{NO_COMMAND, Row, play};

const ABOUT_CHOOSING_AN_AGENT: &[Row] = &[
    ["", "git proq spawn -n b -- nosuchprogram", "list installed agents", "claude", ""],
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
    ["lane a; program claude true", "git proq send a 'also x'", "start a new one", "a", ""],
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
