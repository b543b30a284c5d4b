//! Owns `git proq man`: a page per command, made from the same grammar as the help.

use std::path::Path;
use std::path::PathBuf;

use clap::Args;
use clap::Command;
use clap_mangen::Man as Page;

use super::groups::{self, GROUPS};
use super::{Done, Failure, Mistake, Session};
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

/// What an exit code means, as the pages say it.
const CODES: &[(&str, &str)] = &[
    ("0", "Everything asked for was done."),
    ("1", "Refused or failed; nothing was half-made."),
    ("2", "The command line was wrong."),
    ("3", "Conflicts were captured."),
    ("4", "An agent, a command in a lane or a check of a landing failed."),
    ("5", "A lock could not be had in time."),
    ("70", "A mistake in git-proq itself."),
    ("130", "Interrupted with Ctrl-C; 128 + N for any signal N."),
];

pub(super) fn run(session: &Session, args: &Man) -> Done {
    if let Some(dir) = &args.dir {
        for (name, text) in pages() {
            write(&dir.join(&name), text.as_bytes())?;
            session.ui.say(dir.join(&name).display().to_string());
        }
        return Ok(Exit::Done);
    }
    let name = match &args.command {
        Some(command) => format!("git-proq-{command}.1"),
        None => "git-proq.1".to_owned(),
    };
    let (_, text) = pages()
        .into_iter()
        .find(|(n, _)| *n == name)
        .ok_or(Mistake::Missing { what: "there is no such command", example: "git proq man spawn" })?;
    session.ui.text(&text);
    Ok(Exit::Done)
}

/// Every page, as `(file name, text)`.
pub(super) fn pages() -> Vec<(String, String)> {
    let mut top = groups::command();
    top.build();
    let mut out = vec![("git-proq.1".to_owned(), first_page(&top))];
    for sub in top.get_subcommands().filter(|c| !c.is_hide_set()) {
        out.push((format!("git-proq-{}.1", sub.get_name()), page(sub)));
    }
    out
}

fn first_page(top: &Command) -> String {
    let mut out = head(top, "git-proq");
    out.push_str(".SH COMMANDS\n");
    for (group, names) in GROUPS {
        out.push_str(&format!(".SS {group}\n"));
        for name in *names {
            let about = plain(&groups::about(top, name));
            out.push_str(&format!(".TP\n\\fBgit\\-proq\\-{name}\\fR(1)\n{about}\n"));
        }
    }
    out.push_str(&options(top));
    out.push_str(".SH SETTINGS\nSee \\fBgit\\-proq\\-config\\fR(1) for where they can be set.\n");
    for key in KEYS {
        let (name, form, default) = (plain(key.name), plain(&key.form.describe()), plain(key.default));
        out.push_str(&format!(".TP\n\\fB{name}\\fR ({form}; default {default})\n{}\n", plain(key.about)));
    }
    out.push_str(&codes());
    out.push_str(".SH SEE ALSO\n\\fBgit\\fR(1), \\fBgit\\-worktree\\fR(1)\n");
    out
}

fn page(command: &Command) -> String {
    let mut out = head(command, &format!("git-proq-{}", command.get_name()));
    for sub in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        out.push_str(&format!(".SH \"{}\"\n{}\n", plain(&sub.get_name().to_uppercase()), plain(&about)));
        for usage in usage(sub) {
            out.push_str(&format!(".PP\n{}\n", plain(&usage)));
        }
        out.push_str(&options(sub).replacen(".SH OPTIONS", ".SS Options", 1));
    }
    if command.get_subcommands().next().is_none() {
        out.push_str(&options(command));
    }
    if let Some(after) = command.get_after_help() {
        out.push_str(".SH EXAMPLES\n.nf\n");
        for line in after.to_string().lines().skip(1) {
            out.push_str(&format!("{}\n", plain(line.trim())));
        }
        out.push_str(".fi\n");
    }
    out.push_str(&codes());
    out.push_str(".SH SEE ALSO\n\\fBgit\\-proq\\fR(1)\n");
    out
}

/// Title, name, synopsis and description.
fn head(command: &Command, name: &str) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut out = format!(
        ".TH {} 1 \"\" \"git\\-proq {}\" \"Git Manual\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.nf\n",
        plain(&name.to_uppercase()),
        env!("CARGO_PKG_VERSION"),
        plain(name),
        plain(about.trim_end_matches('.')),
    );
    for line in usage(command) {
        out.push_str(&format!("{}\n", plain(&line)));
    }
    out.push_str(".fi\n.SH DESCRIPTION\n");
    let long = command.get_long_about().map_or(about, ToString::to_string);
    let paragraphs: Vec<String> = long.split("\n\n").map(plain).collect();
    out.push_str(&paragraphs.join("\n.PP\n"));
    out.push('\n');
    out
}

/// The forms of a command line.
fn usage(command: &Command) -> Vec<String> {
    let text = command.clone().render_usage().to_string();
    text.trim_start_matches("Usage:").lines().map(|line| line.trim().to_owned()).collect()
}

fn options(command: &Command) -> String {
    let mut out = Vec::new();
    // Writing to memory does not fail.
    drop(Page::new(command.clone()).render_options_section(&mut out));
    // Before the section stands the definition of an apostrophe, which has a name anyway.
    let text = String::from_utf8_lossy(&out).replace("\\*(Aq", "\\(aq");
    text.find(".SH").map_or(String::new(), |at| text[at..].to_owned())
}

fn codes() -> String {
    let mut out = ".SH EXIT STATUS\n".to_owned();
    for (code, text) in CODES {
        out.push_str(&format!(".TP\n.B {code}\n{}\n", plain(text)));
    }
    out
}

/// Text in the form that man wants: no line is a request, and what can be typed can be copied.
fn plain(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    let lines: Vec<String> = text
        .lines()
        .map(|line| if line.starts_with('.') { format!("\\&{line}") } else { line.to_owned() })
        .collect();
    lines.join("\n")
}

/// Writes a file, with the folders above it.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |source| Mistake::Unwritable { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(path, bytes).map_err(failed)?;
    Ok(())
}
