//! The groups of commands on the overview page of the help.

/// The groups of commands, in the order of the overview page.
pub(crate) const COMMAND_GROUPS: &[(&str, &[&str])] = &[
    ("Lanes", &["spawn", "run", "send", "open", "wait", "edit", "stop", "discard", "redispatch", "cleanup"]),
    (
        "Look",
        &["list", "show", "diff", "logs", "preview", "matrix", "compare", "events", "status", "statusline"],
    ),
    ("Land", &["merge", "pick", "queue", "resolve"]),
    ("Plan", &["plan", "deps", "swarm", "batch"]),
    ("Safety", &["undo", "redo", "op", "snap", "doctor", "gc"]),
    (
        "Set-up",
        &[
            "agents",
            "approve",
            "config",
            "hooks",
            "sync",
            "supervise",
            "mcp",
            "task",
            "setup",
            "completions",
            "shell-init",
            "man",
            "demo",
        ],
    ),
];

/// Returns the one-line help of a command.
pub(crate) fn short_help(command: &clap::Command, name: &str) -> String {
    let sub = command.find_subcommand(name).and_then(clap::Command::get_about);
    sub.map(ToString::to_string).unwrap_or_default()
}
