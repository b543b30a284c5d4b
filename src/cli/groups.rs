//! Owns the help page: the commands in groups, each with its own one-line help.

use clap::CommandFactory;

use super::Cli;

/// The page around the groups.
pub(super) const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{after-help}\nOptions:\n{options}";

/// The groups of commands, in order.
const GROUPS: &[(&str, &[&str])] = &[
    ("Lanes", &["spawn", "wait", "stop", "discard", "cleanup"]),
    ("Look", &["list", "show", "diff", "logs", "preview", "events"]),
    ("Land", &["merge"]),
    ("Set-up", &["agents", "config", "setup", "completions", "man", "demo"]),
];

/// The grammar with the grouped list of commands in its help.
pub(super) fn command() -> clap::Command {
    let plain = Cli::command();
    let page = page(&plain);
    plain.after_help(page)
}

fn page(command: &clap::Command) -> String {
    let mut out = String::new();
    for (group, names) in GROUPS {
        out.push_str(&format!("{}\n", console::style(format!("{group}:")).bold()));
        for name in *names {
            let about = command
                .find_subcommand(name)
                .and_then(|c| c.get_about())
                .map(ToString::to_string)
                .unwrap_or_default();
            out.push_str(&format!("  {name:<12} {about}\n"));
        }
    }
    out.push_str("\nHelp on one command: git proq COMMAND -h\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group_and_has_an_example() {
        let command = command();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for sub in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            assert_eq!(listed.iter().filter(|n| **n == sub.get_name()).count(), 1, "{}", sub.get_name());
            let long = sub.get_long_about().map(ToString::to_string).unwrap_or_default();
            assert!(long.contains("Example"), "{} has no example", sub.get_name());
        }
    }
}
