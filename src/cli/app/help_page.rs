//! Layout of the help: the overview with its groups of commands, and the page of each command.

use clap::CommandFactory;
use clap::builder::styling::{AnsiColor, Style, Styles};

use super::args::Cli;
use crate::cli::set_up::command_groups::{COMMAND_GROUPS, short_help};

/// Headings that introduce the examples in a command's doc comment.
const EXAMPLE_HEADINGS: [&str; 2] = ["\nExample:\n", "\nExamples:\n"];

/// Style of the headings on help pages.
const HEADING_STYLE: Style = Style::new().bold();

/// Returns the clap grammar with the formatted help.
pub(crate) fn styled_command() -> clap::Command {
    let mut grammar = Cli::command().styles(
        Styles::styled().header(HEADING_STYLE).usage(HEADING_STYLE).error(AnsiColor::Red.on_default().bold()),
    );
    // A command has no text before it is built.
    grammar.build();
    let grammar = grammar.mut_subcommands(format_help);
    let (overview, options) = (subcommand_overview(&grammar), styled_heading("Options"));
    grammar
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}{{after-help}}\n\n{options}\n{{options}}"
        ))
        .after_help(overview)
}

/// Moves the examples of a command to the end of its page, and joins the lines of its text so that clap wraps
/// them.
fn format_help(command: clap::Command) -> clap::Command {
    let Some(long) = command.get_long_about().map(ToString::to_string) else { return command };
    let (text, examples) = split_examples(&long);
    let command = command.long_about(join_paragraph_lines(text));
    match examples {
        "" => command,
        lines => {
            let title = if lines.trim().lines().count() > 1 { "Examples" } else { "Example" };
            let lines: Vec<String> = lines.lines().map(|line| format!("  {}", line.trim())).collect();
            command.after_help(format!("{}\n{}", styled_heading(title), lines.join("\n")))
        }
    }
}

/// Splits a command's long help into its text and its examples; without an example heading, the second part
/// is empty.
fn split_examples(long: &str) -> (&str, &str) {
    EXAMPLE_HEADINGS.iter().find_map(|mark| long.split_once(mark)).unwrap_or((long, ""))
}

/// Joins the lines of each paragraph.
fn join_paragraph_lines(text: &str) -> String {
    let paragraphs: Vec<String> =
        text.trim().split("\n\n").map(|p| p.lines().map(str::trim).collect::<Vec<_>>().join(" ")).collect();
    paragraphs.join("\n\n")
}

/// Formats a heading of a help page: the text in bold, with a colon.
fn styled_heading(text: &str) -> String {
    format!("{HEADING_STYLE}{text}:{HEADING_STYLE:#}")
}

/// Returns the overview of all commands by group, each with its one-line help.
fn subcommand_overview(command: &clap::Command) -> String {
    let mut out = String::new();
    for (group, names) in COMMAND_GROUPS {
        out.push_str(&format!("{}\n", styled_heading(group)));
        for name in *names {
            out.push_str(&format!("  {name:<12} {}\n", short_help(command, name)));
        }
        out.push('\n');
    }
    out.push_str("New here? git proq demo\nHelp on one command: git proq COMMAND -h");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar_passes_debug_assert() {
        styled_command().debug_assert();
    }

    #[test]
    fn lists_each_command_once_with_an_example() {
        let command = styled_command();
        let listed: Vec<&str> = COMMAND_GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for sub in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            assert_eq!(listed.iter().filter(|n| **n == sub.get_name()).count(), 1, "{}", sub.get_name());
            let after = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.starts_with("Example"), "{} has no example", sub.get_name());
            assert!(after.lines().skip(1).all(|l| l.starts_with("  git ")), "{after}");
        }
    }

    #[test]
    fn help_pages_fit_80_columns() {
        let mut top = styled_command();
        let short = top.render_help().to_string();
        assert!(!short.contains("\n\n\n"), "{short}");
        assert!(short.contains("\n\nOptions:\n"), "{short}");
        assert_eq!(short.lines().find(|l| l.chars().count() > 80), None);
        top.build();
        for sub in styled_command().get_subcommands().filter(|c| !c.is_hide_set()) {
            let help =
                top.find_subcommand_mut(sub.get_name()).map(|c| c.clone().term_width(80).render_help());
            let help = help.unwrap().to_string();
            assert_eq!(help.lines().find(|l| l.chars().count() > 80), None, "{}", sub.get_name());
        }
    }
}
