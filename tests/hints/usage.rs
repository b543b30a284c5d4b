//! Hints about the command line and settings.

use crate::scenes::{NO_COMMAND, Row, play};

const ABOUT_COMMAND_LINES: &[Row] = &[
    ["", "git proq lst", "did you mean", "no lanes", ""],
    ["", "git proq help lst", "did you mean", "Usage:", ""],
    ["", "git proq help zzzz", "see all commands", "spawn", ""],
    ["", "git proq man zzzz", "see all commands", "spawn", ""],
    ["", "git proq list --frobnicate", "see the help", "List", ""],
    ["", "git proq logs", "see all lanes", "", ""],
    ["", "git proq merge", "see the lanes", "", ""],
    [
        "lane a",
        "git proq merge",
        "merge all that can be merged",
        "a",
        "git log --format=%s | grep -q 'Add a'",
    ],
    ["lane a", "git proq merge", "or one of them", "a", "git log --format=%s | grep -q 'Add a'"],
    ["git proq spawn -q --empty -n payments", "git proq edit", "for example", "payments", ""],
    ["", "git proq mcp < /dev/null > /dev/null", "agents start this server", "mcp", ""],
    ["", "git proq -C nowhere list", "-C takes a folder", NO_COMMAND, ""],
    ["", "git proq agents", "run any other program", "docs", "git proq wait docs || true"],
];

#[test]
fn hints_about_command_lines_work() {
    play(ABOUT_COMMAND_LINES);
}

const ABOUT_NAMES_OF_LANES: &[Row] = &[
    ["", "git proq spawn --empty -n 'My Lane'", "use a valid name", NO_COMMAND, ""],
    ["", "git proq spawn --empty -n ///", "use letters", NO_COMMAND, ""],
    ["git proq spawn --empty -n payments", "git proq show paymnts", "did you mean", NO_COMMAND, ""],
    ["git proq spawn --empty -n a", "git proq show zzz", "see all", "a", ""],
    ["git proq spawn --empty -n a", "git proq spawn --empty -n a", "show that lane", "main", ""],
];

#[test]
fn hints_about_names_of_lanes_work() {
    play(ABOUT_NAMES_OF_LANES);
}

const ABOUT_SETTINGS: &[Row] = &[
    ["", "git proq config set merge.strategi squash", "did you mean", "merge.strategy", ""],
    ["", "git proq config set zzz 1", "see all settings", "merge.strategy", ""],
    ["", "git proq config set merge.strategy fast", "see what it does", "squash", ""],
    ["", "git proq config", "see all settings", "merge.strategy", ""],
    [
        "git config proq.merge.strategy fast",
        "git proq spawn --empty -n a",
        "show where it is set",
        "fast",
        "",
    ],
    [
        "git config proq.merge.strategy fast",
        "git proq spawn --empty -n a",
        "or use the default",
        "",
        "git proq spawn --empty -n a",
    ],
    [
        "printf '[merge' > proq.toml",
        "git proq spawn --empty -n a",
        "correct it, or move it away",
        "",
        "git proq list",
    ],
    [
        "git config proq.lane.location '.git/{lane}'",
        "git proq spawn --empty -n home",
        "put lanes beside",
        "",
        "git proq spawn --empty -n a",
    ],
    [
        "git config proq.lane.location 'sub/{lane}'",
        "git proq spawn --empty -n home",
        "or inside it",
        "",
        "git proq spawn --empty -n a",
    ],
    [
        "printf '[lane]\\nprefix = \"x\"\\n[agent]\\ndefault = \"claude\"\\n' > proq.toml",
        "git proq spawn --empty -n a",
        "remove it there; you may set it yourself with",
        "",
        "",
    ],
];

#[test]
fn hints_about_settings_work() {
    play(ABOUT_SETTINGS);
}

const ABOUT_SCHEMAS_AND_VALUES: &[Row] = &[
    ["", "git proq schema zzzz", "see all schemas", "list", ""],
    ["", "git proq config unset merge.strategy", "see where its value comes from", "merge.strategy", ""],
];

#[test]
fn hints_about_schemas_and_values_work() {
    play(ABOUT_SCHEMAS_AND_VALUES);
}

const ABOUT_WHAT_IS_MISSING: &[Row] = &[
    [
        "git proq spawn --empty -n a; echo y > .proq-worktrees/a/a.txt",
        "git proq diff a --path a.txt",
        "add it",
        "+y",
        "",
    ],
    ["", "git proq schema lst", "did you mean", "\"lanes\"", ""],
    ["mkdir d", "cd d; rmdir ../d; git-proq list", "change to your home folder", "", ""],
    ["program claude true", "git proq spawn claude -F nofile", "list the files of that folder", "a.txt", ""],
    ["", "git proq preview --back", "list lanes to preview", "no lanes yet", ""],
    ["", "git proq approve zzz", "list the commands and their IDs", "", ""],
    ["lane a", "git proq logs a --setup", "list the settings", "lane.setup", ""],
    ["lane a", "git proq logs a", "list its runs", "Add a", ""],
];

#[test]
fn hints_about_what_is_missing_work() {
    play(ABOUT_WHAT_IS_MISSING);
}
