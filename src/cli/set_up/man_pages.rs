//! Man pages: one per command, generated from the clap grammar that the help uses.

use clap::Command;
use clap_mangen::Man as Page;
use proq_base::config::keys::KEYS;

use super::command_groups::{COMMAND_GROUPS, commands_of_group, short_help};

/// Exit codes with their meanings, for the section EXIT STATUS.
const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "Success."),
    ("1", "Refused or failed; no partial change was left."),
    ("2", "Invalid command line."),
    ("3", "Conflicts were found and kept."),
    ("4", "An agent, a command in a lane or a check failed."),
    ("5", "Timed out waiting for a lock."),
    ("70", "Internal error (bug)."),
    ("130", "Interrupted with Ctrl-C; 128 + N for any signal N."),
];

/// Returns every page of the grammar as `(file name, text)`.
pub(crate) fn all_man_pages(mut root: Command) -> Vec<(String, String)> {
    root.build();
    let mut out = vec![("git-proq.1".to_owned(), main_page(&root))];
    for sub in root.get_subcommands().filter(|c| !c.is_hide_set()) {
        out.push((format!("git-proq-{}.1", sub.get_name()), command_page(sub)));
    }
    out
}

fn main_page(root: &Command) -> String {
    let mut out = page_header(root, "git-proq");
    out.push_str(".SH COMMANDS\n");
    for (group, names) in COMMAND_GROUPS {
        out.push_str(&format!(".SS {group}\n"));
        for name in *names {
            let about = escape_roff(&short_help(root, name));
            out.push_str(&format!(".TP\n\\fBgit\\-proq\\-{name}\\fR(1)\n{about}\n"));
        }
    }
    out.push_str(&options_section(root));
    out.push_str(".SH SETTINGS\nSee \\fBgit\\-proq\\-config\\fR(1) for where they can be set.\n");
    for key in KEYS.iter() {
        let (name, form, default) =
            (escape_roff(key.name), escape_roff(&key.format.describe()), escape_roff(key.default));
        out.push_str(&format!(
            ".TP\n\\fB{name}\\fR ({form}; default {default})\n{}\n",
            escape_roff(key.summary)
        ));
    }
    out.push_str(&exit_status_section());
    out.push_str(".SH SEE ALSO\n\\fBgit\\fR(1), \\fBgit\\-worktree\\fR(1)\n");
    out
}

fn command_page(command: &Command) -> String {
    let mut out = page_header(command, &format!("git-proq-{}", command.get_name()));
    for sub in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        out.push_str(&format!(
            ".SH \"{}\"\n{}\n",
            escape_roff(&sub.get_name().to_uppercase()),
            escape_roff(&about)
        ));
        for usage_line in usage_lines(sub) {
            out.push_str(&format!(".PP\n{}\n", escape_roff(&usage_line)));
        }
        out.push_str(&options_section(sub).replacen(".SH OPTIONS", ".SS Options", 1));
    }
    if command.get_subcommands().next().is_none() {
        out.push_str(&options_section(command));
    }
    if let Some(after) = command.get_after_long_help() {
        out.push_str(".SH EXAMPLES\n.nf\n");
        for line in after.to_string().lines().skip(1) {
            out.push_str(&format!("{}\n", escape_roff(line.trim())));
        }
        out.push_str(".fi\n");
    }
    out.push_str(&exit_status_section());
    out.push_str(".SH SEE ALSO\n\\fBgit\\-proq\\fR(1)");
    for name in commands_of_group(command.get_name()) {
        out.push_str(&format!(", \\fBgit\\-proq\\-{}\\fR(1)", escape_roff(name)));
    }
    out.push('\n');
    out
}

/// Returns the title, name, synopsis and description of a page.
fn page_header(command: &Command, name: &str) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut out = format!(
        ".TH {} 1 \"\" \"git\\-proq {}\" \"git\\-proq Manual\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.nf\n",
        escape_roff(&name.to_uppercase()),
        env!("CARGO_PKG_VERSION"),
        escape_roff(name),
        escape_roff(about.trim_end_matches('.')),
    );
    for line in usage_lines(command) {
        out.push_str(&format!("{}\n", escape_roff(&line)));
    }
    out.push_str(".fi\n.SH DESCRIPTION\n");
    let long = command.get_long_about().map_or(about, ToString::to_string);
    let paragraphs: Vec<String> = long.split("\n\n").map(escape_roff).collect();
    out.push_str(&paragraphs.join("\n.PP\n"));
    out.push('\n');
    out
}

/// Returns the usage lines of a command, without the word "Usage:".
fn usage_lines(command: &Command) -> Vec<String> {
    let text = command.clone().render_usage().to_string();
    text.trim_start_matches("Usage:").lines().map(|line| line.trim().to_owned()).collect()
}

fn options_section(command: &Command) -> String {
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    drop(Page::new(command.clone()).render_options_section(&mut out));
    // clap_mangen defines a string for the apostrophe before the section. `\(aq` needs no definition, so that
    // part is dropped.
    let text = String::from_utf8_lossy(&out).replace("\\*(Aq", "\\(aq");
    text.find(".SH").map_or(String::new(), |at| text[at..].to_owned())
}

fn exit_status_section() -> String {
    let mut out = ".SH EXIT STATUS\n".to_owned();
    for (code, text) in EXIT_CODES {
        out.push_str(&format!(".TP\n.B {code}\n{}\n", escape_roff(text)));
    }
    out
}

/// Escapes text for roff: no line is read as a request, and commands can be copied from the rendered page.
fn escape_roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    let lines: Vec<String> = text
        .lines()
        .map(|line| if line.starts_with('.') { format!("\\&{line}") } else { line.to_owned() })
        .collect();
    lines.join("\n")
}
