//! Owns how help looks: the commands in groups on the first page, usage, text and examples on each command's own.

use clap::CommandFactory;
use clap::builder::styling::{AnsiColor, Style, Styles};

use super::Cli;

/// The groups of commands, in order.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Lanes",
        &["spawn", "run", "send", "attach", "wait", "edit", "stop", "discard", "redispatch", "cleanup"],
    ),
    ("Look", &["list", "show", "diff", "logs", "preview", "matrix", "compare", "events"]),
    ("Land", &["merge", "pick", "queue", "resolve"]),
    ("Plan", &["plan", "deps", "swarm", "status", "report", "pause", "resume", "abort"]),
    ("Safety", &["undo", "op", "snap", "doctor", "gc"]),
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
            "man",
            "demo",
        ],
    ),
];

/// What leads a command's examples in its doc comment.
const EXAMPLES: [&str; 2] = ["\nExample:\n", "\nExamples:\n"];

const HEADING: Style = Style::new().bold();

/// The grammar with its help in shape.
pub(super) fn command() -> clap::Command {
    let mut plain = Cli::command()
        .styles(Styles::styled().header(HEADING).usage(HEADING).error(AnsiColor::Red.on_default().bold()));
    // A command has no text before it is made.
    plain.build();
    let plain = plain.mut_subcommands(dress);
    let (page, options) = (page(&plain), heading("Options"));
    plain
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}{{after-help}}\n\n{options}\n{{options}}"
        ))
        .after_help(page)
}

/// Takes the examples out of a command's text, to stand last on its page, and lets the text wrap by itself.
fn dress(command: clap::Command) -> clap::Command {
    let Some(long) = command.get_long_about().map(ToString::to_string) else { return command };
    let (text, examples) = split(&long);
    let command = command.long_about(flow(text));
    match examples {
        "" => command,
        lines => {
            let title = if lines.trim().lines().count() > 1 { "Examples" } else { "Example" };
            let lines: Vec<String> = lines.lines().map(|line| format!("  {}", line.trim())).collect();
            command.after_help(format!("{}\n{}", heading(title), lines.join("\n")))
        }
    }
}

fn split(long: &str) -> (&str, &str) {
    EXAMPLES.iter().find_map(|mark| long.split_once(mark)).unwrap_or((long, ""))
}

/// Joins the lines of each paragraph.
fn flow(text: &str) -> String {
    let paragraphs: Vec<String> =
        text.trim().split("\n\n").map(|p| p.lines().map(str::trim).collect::<Vec<_>>().join(" ")).collect();
    paragraphs.join("\n\n")
}

fn heading(text: &str) -> String {
    format!("{HEADING}{text}:{HEADING:#}")
}

fn page(command: &clap::Command) -> String {
    let mut out = String::new();
    for (group, names) in GROUPS {
        out.push_str(&format!("{}\n", heading(group)));
        for name in *names {
            out.push_str(&format!("  {name:<12} {}\n", about(command, name)));
        }
        out.push('\n');
    }
    out.push_str("New here? git proq demo\nHelp on one command: git proq COMMAND -h");
    out
}

/// A command's one-line help.
pub(super) fn about(command: &clap::Command, name: &str) -> String {
    let sub = command.find_subcommand(name).and_then(clap::Command::get_about);
    sub.map(ToString::to_string).unwrap_or_default()
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
            let after = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.starts_with("Example"), "{} has no example", sub.get_name());
            assert!(after.lines().skip(1).all(|l| l.starts_with("  git ")), "{after}");
        }
    }

    #[test]
    fn the_pages_fit_a_narrow_terminal() {
        let mut top = command();
        let short = top.render_help().to_string();
        assert!(!short.contains("\n\n\n"), "{short}");
        assert!(short.contains("\n\nOptions:\n"), "{short}");
        assert_eq!(short.lines().find(|l| l.chars().count() > 80), None);
        top.build();
        for sub in command().get_subcommands().filter(|c| !c.is_hide_set()) {
            let help =
                top.find_subcommand_mut(sub.get_name()).map(|c| c.clone().term_width(80).render_help());
            let help = help.unwrap().to_string();
            assert_eq!(help.lines().find(|l| l.chars().count() > 80), None, "{}", sub.get_name());
        }
    }
}
