//! The `git proq man` command: one man page per command, generated from the clap grammar that the help uses.

use std::path::Path;
use std::path::PathBuf;

use clap::Args;
use clap::Command;
use clap_mangen::Man as Page;

use super::help_page::{self, COMMAND_GROUPS};
use super::{CommandContext, CommandResult, Failure, UsageError};
use crate::config::KEYS;
use crate::explain::Exit;

/// Print the man page of a command
///
/// Examples:
///     git proq man spawn | man -l -
///     git proq man --dir ~/.local/share/man/man1
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq man [OPTIONS] [COMMAND]\n       git proq man [OPTIONS] --dir DIR")]
pub(crate) struct Man {
    /// The command; without it, the page of git-proq itself
    #[arg(value_name = "COMMAND", conflicts_with = "pages")]
    pub(crate) command: Option<String>,
    /// Write all pages to DIR
    #[arg(id = "pages", long = "dir", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

/// Exit codes with their meanings, for the section EXIT STATUS.
const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "Everything asked for was done."),
    ("1", "Refused or failed; nothing was half-made."),
    ("2", "The command line was wrong."),
    ("3", "Conflicts were captured."),
    ("4", "An agent, a command in a lane or a check of a landing failed."),
    ("5", "A lock could not be had in time."),
    ("70", "A mistake in git-proq itself."),
    ("130", "Interrupted with Ctrl-C; 128 + N for any signal N."),
];

pub(super) fn run(session: &CommandContext, args: &Man) -> CommandResult {
    if let Some(dir) = &args.dir {
        for (name, text) in pages() {
            write_file(&dir.join(&name), text.as_bytes())?;
            session.ui.status(dir.join(&name).display().to_string());
        }
        return Ok(Exit::Success);
    }
    let name = match &args.command {
        Some(command) => format!("git-proq-{command}.1"),
        None => "git-proq.1".to_owned(),
    };
    let (_, text) = pages()
        .into_iter()
        .find(|(n, _)| *n == name)
        .ok_or(UsageError::Missing { problem: "there is no such command", example: "git proq man spawn" })?;
    session.ui.print_text(&text);
    Ok(Exit::Success)
}

/// Returns every page as `(file name, text)`.
pub(super) fn pages() -> Vec<(String, String)> {
    let mut root = help_page::styled_command();
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
            let about = escape_roff(&help_page::short_help(root, name));
            out.push_str(&format!(".TP\n\\fBgit\\-proq\\-{name}\\fR(1)\n{about}\n"));
        }
    }
    out.push_str(&options_section(root));
    out.push_str(".SH SETTINGS\nSee \\fBgit\\-proq\\-config\\fR(1) for where they can be set.\n");
    for key in KEYS {
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
    if let Some(after) = command.get_after_help() {
        out.push_str(".SH EXAMPLES\n.nf\n");
        for line in after.to_string().lines().skip(1) {
            out.push_str(&format!("{}\n", escape_roff(line.trim())));
        }
        out.push_str(".fi\n");
    }
    out.push_str(&exit_status_section());
    out.push_str(".SH SEE ALSO\n\\fBgit\\-proq\\fR(1)\n");
    out
}

/// Returns the title, name, synopsis and description of a page.
fn page_header(command: &Command, name: &str) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut out = format!(
        ".TH {} 1 \"\" \"git\\-proq {}\" \"Git Manual\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.nf\n",
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

/// Writes a file, and creates its parent folders.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let unwritable = |source| UsageError::Unwritable { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(unwritable)?;
    }
    std::fs::write(path, bytes).map_err(unwritable)?;
    Ok(())
}
