//! The groups of commands, and the texts that list commands: the first screen of the help, and all of it.

/// The commands on the first screen of the help, in its order. One that the grammar lacks is left out.
const FIRST_COMMANDS: [&str; 12] =
    ["spawn", "list", "show", "diff", "logs", "send", "stop", "open", "preview", "merge", "resolve", "undo"];

/// The groups of commands, in the order of the help of all commands.
pub(crate) const COMMAND_GROUPS: &[(&str, &[&str])] = &[
    (
        "Lanes",
        &[
            "spawn",
            "run",
            "send",
            "open",
            "wait",
            "edit",
            "rename",
            "stop",
            "discard",
            "redispatch",
            "cleanup",
        ],
    ),
    (
        "Inspect",
        &["list", "show", "diff", "logs", "preview", "matrix", "compare", "events", "status", "statusline"],
    ),
    ("Merge", &["merge", "pick", "queue", "resolve"]),
    ("Plans", &["plan", "deps", "swarm", "batch"]),
    ("Safety", &["undo", "redo", "op", "snap", "doctor", "gc"]),
    (
        "Setup",
        &[
            "agents",
            "approve",
            "config",
            "hooks",
            "sync",
            "supervise",
            "mcp",
            "task",
            "schema",
            "setup",
            "completions",
            "shell-init",
            "man",
            "demo",
            "help",
            "version",
        ],
    ),
];

/// Width of the column of names in lists of commands.
const NAME_WIDTH: usize = 12;

/// Returns the one-line help of a command.
pub(crate) fn short_help(command: &clap::Command, name: &str) -> String {
    let sub = command.find_subcommand(name).and_then(clap::Command::get_about);
    sub.map(ToString::to_string).unwrap_or_default()
}

/// Returns the other commands of a command's group.
pub(crate) fn commands_of_group(name: &str) -> impl Iterator<Item = &'static str> {
    let group = COMMAND_GROUPS.iter().find(|(_, names)| names.contains(&name));
    let names = group.map_or(&[][..], |(_, names)| *names);
    names.iter().copied().filter(move |other| *other != name)
}

/// Returns the lines of the first screen's commands.
pub(crate) fn first_commands(grammar: &clap::Command) -> Vec<String> {
    let known = FIRST_COMMANDS.iter().filter(|name| grammar.find_subcommand(name).is_some());
    known.map(|name| command_line(grammar, name)).collect()
}

/// Returns the help of all commands, by group, and of the options that every command takes. `heading` formats
/// a heading.
pub(crate) fn all_commands(grammar: &clap::Command, heading: impl Fn(&str) -> String) -> String {
    let mut out = Vec::new();
    for (group, names) in COMMAND_GROUPS {
        out.push(heading(group));
        out.extend(names.iter().map(|name| command_line(grammar, name)));
        out.push(String::new());
    }
    out.push(heading("Options of every command"));
    out.extend(grammar.get_arguments().filter(|arg| !arg.is_hide_set()).map(|arg| {
        let short = arg.get_short().map_or("    ".to_owned(), |short| format!("-{short}, "));
        let long = arg.get_long().map(|long| format!("--{long}"));
        let name = format!("{short}{}", long.unwrap_or_default());
        let value_names = arg.get_value_names().filter(|_| arg.get_action().takes_values());
        let value = value_names.and_then(|names| names.first());
        let value = value.map(|name| format!(" <{name}>")).unwrap_or_default();
        let name = format!("{}{value}", name.trim_end().trim_end_matches(','));
        format!("  {name:<20} {}", arg.get_help().map(ToString::to_string).unwrap_or_default())
    }));
    out.join("\n")
}

/// Returns a line with a command, its one-line help and its aliases.
fn command_line(grammar: &clap::Command, name: &str) -> String {
    let aliases = grammar.find_subcommand(name).into_iter().flat_map(clap::Command::get_all_aliases);
    let aliases: Vec<&str> = aliases.collect();
    let suffix = if aliases.is_empty() { String::new() } else { format!(" [alias: {}]", aliases.join(", ")) };
    format!("  {name:<NAME_WIDTH$} {}{suffix}", short_help(grammar, name))
}
