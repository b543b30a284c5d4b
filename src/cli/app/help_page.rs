//! Layout of the help: the overview with its groups of commands, and the page of each command.

use clap::CommandFactory;
use clap::builder::styling::{AnsiColor, Style, Styles};

use super::args::Cli;
use crate::cli::set_up::command_groups::first_commands;

/// Headings that introduce the examples in a command's doc comment.
const EXAMPLE_HEADINGS: [&str; 2] = ["\nExample:\n", "\nExamples:\n"];

/// Style of the headings on help pages.
const HEADING_STYLE: Style = Style::new().bold();

/// Most examples in the short help of a command; its long help has all.
const MAX_SHORT_EXAMPLES: usize = 3;

/// Line at the end of a command's short help, which leaves out what every command takes.
const GLOBAL_OPTIONS: &str = "Global options: --json, -q, -v, --no-hooks, -C <DIR> (git proq help --all)";

/// End of the first screen.
const OVERVIEW_END: &str = "Without a command, lists lanes and suggests next steps.
New here? Try `git proq demo`.
See `git proq help <command>`, and `git proq help --all` for all commands and options.";

/// Returns the clap grammar with the formatted help.
pub(crate) fn styled_command() -> clap::Command {
    let mut grammar = Cli::command().styles(
        Styles::styled().header(HEADING_STYLE).usage(HEADING_STYLE).error(AnsiColor::Red.on_default().bold()),
    );
    // A command has no text before it is built.
    grammar.build();
    let grammar = grammar.mut_subcommands(format_help);
    let commands = first_commands(&grammar).join("\n");
    let overview = format!("{}\n{commands}\n\n{OVERVIEW_END}", styled_heading("Commands"));
    grammar
        .help_template("{about-with-newline}\n{usage-heading} {usage}{after-help}".to_owned())
        .after_help(overview)
}

/// Moves the examples of a command to the end of its page, joins the lines of its text so that clap wraps
/// them, and names the global options where they are left out.
fn format_help(command: clap::Command) -> clap::Command {
    let command = command.mut_subcommands(format_help);
    let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let (text, examples) = split_examples(&long);
    let command = if text.is_empty() { command } else { command.long_about(join_paragraph_lines(text)) };
    let examples: Vec<String> =
        examples.lines().filter(|line| !line.is_empty()).map(|line| format!("  {}", line.trim())).collect();
    let section = |count: usize| match &examples[..count.min(examples.len())] {
        [] => String::new(),
        [one] => format!("{}\n{one}\n\n", styled_heading("Example")),
        shown => format!("{}\n{}\n\n", styled_heading("Examples"), shown.join("\n")),
    };
    let (short, all) = (section(MAX_SHORT_EXAMPLES), section(usize::MAX));
    command.after_help(format!("{short}{GLOBAL_OPTIONS}")).after_long_help(all.trim_end().to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::set_up::command_groups::{COMMAND_GROUPS, all_commands};

    /// Returns the short help of each visible command and subcommand at a width, with its name.
    fn short_pages(width: usize) -> Vec<(String, String)> {
        fn collect(command: &clap::Command, path: &str, width: usize, out: &mut Vec<(String, String)>) {
            for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
            {
                let name = format!("{path} {}", sub.get_name());
                out.push((name.clone(), sub.clone().term_width(width).render_help().to_string()));
                collect(sub, &name, width, out);
            }
        }
        let mut out = Vec::new();
        collect(&styled_command(), "", width, &mut out);
        assert!(out.len() > 40);
        out
    }

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
            let after = sub.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.starts_with("Example"), "{} has no example", sub.get_name());
            assert!(after.lines().skip(1).all(|l| l.starts_with("  git ")), "{after}");
        }
    }

    #[test]
    fn first_screen_fits_24_lines_of_80_columns() {
        let mut top = styled_command();
        let screen = top.render_help().to_string();
        assert!(screen.lines().count() <= 24, "{screen}");
        let all = all_commands(&top, |text| format!("{text}:"));
        for text in [&screen, &all] {
            assert!(!text.contains("\n\n\n"), "{text}");
            assert_eq!(text.lines().find(|l| l.chars().count() > 86), None);
        }
    }

    #[test]
    fn short_help_fits_40_lines() {
        for (name, page) in short_pages(100) {
            assert!(page.lines().count() <= 40, "{name}: {} lines\n{page}", page.lines().count());
            let wrapped =
                page.lines().find(|line| line.starts_with(&" ".repeat(9)) && !line.contains("git proq"));
            assert_eq!(wrapped, None, "{name} has an option of more than one line");
        }
    }

    #[test]
    fn short_help_fits_80_columns() {
        for (name, page) in short_pages(80) {
            assert_eq!(page.lines().find(|l| l.chars().count() > 80), None, "{name}");
        }
    }

    #[test]
    fn dry_run_and_json_have_one_text_everywhere() {
        for sub in styled_command().get_subcommands().filter(|c| !c.is_hide_set()) {
            for (option, text) in
                [("dry_run", "Show what would be done, without doing it"), ("json", "Output as JSON")]
            {
                let help =
                    sub.get_arguments().find(|arg| arg.get_id() == option).and_then(clap::Arg::get_help);
                assert!(help.is_none_or(|help| help.to_string() == text), "{} --{option}", sub.get_name());
            }
        }
    }
}
