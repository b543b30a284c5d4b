//! Man pages: one per command, generated from the clap grammar that the help uses, and the pages about
//! settings and the tutorial.

use clap::{Arg, Command};
use proq_base::config::keys::KEYS;

use self::facts::{COMMAND_ENVIRONMENT, COMMAND_FILES, ENVIRONMENT, EXIT_CODES, FILES, RELATED, of_command};
use super::command_groups::{COMMAND_GROUPS, commands_of_group, short_help};

mod facts;
mod json_page;
mod roff;

/// Page of the guide that is the source of the tutorial.
const TUTORIAL: &str = include_str!("../../../docs/guide/tutorial.md");

/// Man page.
pub(crate) struct ManPage {
    /// Name, such as `git-proq-merge`.
    name: String,
    /// Section of the manual: 1 for commands, 5 for formats of files, 7 for overviews.
    section: u8,
    /// Source of the page.
    pub(crate) text: String,
}

impl ManPage {
    /// Returns the name of the page's file.
    pub(crate) fn file_name(&self) -> String {
        format!("{}.{}", self.name, self.section)
    }

    /// Returns the name of the folder that `man` looks for the page in.
    pub(crate) fn folder_name(&self) -> String {
        format!("man{}", self.section)
    }

    /// Returns whether a user who wants the page about `topic` means this one: a command or another topic, the
    /// program itself without one.
    pub(crate) fn is_about(&self, topic: Option<&str>) -> bool {
        topic.map_or(self.name == "git-proq", |topic| self.name == format!("git-proq-{topic}"))
    }
}

/// Returns every page of the grammar, those of commands first.
pub(crate) fn all_man_pages(mut root: Command) -> Vec<ManPage> {
    root.build();
    let commands = root.get_subcommands().filter(|command| !command.is_hide_set());
    let commands =
        commands.map(|command| (format!("git-proq-{}", command.get_name()), command_page(command)));
    let pages = [("git-proq".to_owned(), main_page(&root))].into_iter().chain(commands);
    let page = |section: u8| move |(name, text): (String, String)| ManPage { name, section, text };
    let others = [
        page(5)(("git-proq-config".to_owned(), config_page())),
        page(5)(("git-proq-json".to_owned(), json_page::json_page())),
        page(7)(("git-proq-tutorial".to_owned(), tutorial_page())),
    ];
    pages.map(page(1)).chain(others).collect()
}

fn main_page(root: &Command) -> String {
    let mut out = command_header(root, "git-proq");
    out.push_str(".SH COMMANDS\n");
    for (group, names) in COMMAND_GROUPS {
        out.push_str(&format!(".SS {group}\n"));
        for name in *names {
            let about = roff::escape(&short_help(root, name));
            out.push_str(&format!(".TP\n\\fBgit\\-proq\\-{}\\fR(1)\n{about}\n", roff::escape(name)));
        }
    }
    out.push_str(&roff::arguments(".SH OPTIONS", root, |arg| !arg.is_positional()));
    out.push_str(&exit_status(None));
    out.push_str(&roff::entries("ENVIRONMENT", ENVIRONMENT));
    out.push_str(&roff::entries("FILES", FILES));
    out + &roff::see_also(&[
        page_name("tutorial", 7),
        page_name("config", 5),
        page_name("json", 5),
        page_name("spawn", 1),
        page_name("merge", 1),
        ("git".to_owned(), 1),
        ("git-worktree".to_owned(), 1),
    ])
}

fn command_page(command: &Command) -> String {
    let name = command.get_name();
    let mut out = command_header(command, &format!("git-proq-{name}"));
    let is_own = |arg: &Arg| !arg.is_global_set() && arg.get_id() != "help";
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        let about = sub.get_long_about().or_else(|| sub.get_about()).map(ToString::to_string);
        out.push_str(&roff::paragraphs(
            &format!("\"{}\"", roff::escape(&sub.get_name().to_uppercase())),
            &about.unwrap_or_default(),
        ));
        out.push_str(".PP\n.nf\n");
        out.extend(usage_lines(sub).iter().map(|line| format!("{}\n", roff::escape(line))));
        out.push_str(".fi\n");
        out.push_str(&roff::arguments(".PP", sub, is_own));
    }
    out.push_str(&roff::arguments(".SH ARGUMENTS", command, Arg::is_positional));
    out.push_str(&roff::arguments(".SH OPTIONS", command, |arg| {
        !arg.is_positional() && !arg.is_global_set() && arg.get_id() != "help"
    }));
    out.push_str(&roff::arguments(".SH GLOBAL OPTIONS", command, |arg| {
        arg.is_global_set() || arg.get_id() == "help"
    }));
    if let Some(after) = command.get_after_long_help() {
        let examples: Vec<String> =
            after.to_string().lines().skip(1).map(|line| roff::escape(line.trim())).collect();
        if !examples.is_empty() {
            out.push_str(&format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", examples.join("\n")));
        }
    }
    out.push_str(&exit_status(Some(name)));
    out.push_str(&roff::entries("ENVIRONMENT", of_command(COMMAND_ENVIRONMENT, name).unwrap_or_default()));
    out.push_str(&roff::entries("FILES", of_command(COMMAND_FILES, name).unwrap_or_default()));
    let related: Vec<&str> = match of_command(RELATED, name) {
        Some(names) => names.to_vec(),
        None => commands_of_group(name).collect(),
    };
    let mut pages = vec![("git-proq".to_owned(), 1)];
    pages.extend(related.into_iter().map(|name| page_name(name, 1)));
    pages.push(page_name("config", 5));
    out + &roff::see_also(&pages)
}

/// Returns the name and section of a page in a list of pages.
fn page_name(topic: &str, section: u8) -> (String, u8) {
    (format!("git-proq-{topic}"), section)
}

/// Returns title, name, synopsis and description of a command's page. A command whose help is one line has no
/// description.
fn command_header(command: &Command, name: &str) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let description = long.strip_prefix(&about).unwrap_or(&long);
    let usage: Vec<String> = usage_lines(command).iter().map(|line| roff::escape(line)).collect();
    format!(
        "{}.SH SYNOPSIS\n.nf\n{}\n.fi\n{}",
        roff::title(name, 1, &about),
        usage.join("\n"),
        roff::paragraphs("DESCRIPTION", description)
    )
}

/// Returns the usage lines of a command, without the word "Usage:".
fn usage_lines(command: &Command) -> Vec<String> {
    let text = command.clone().render_usage().to_string();
    text.trim_start_matches("Usage:").lines().map(|line| line.trim().to_owned()).collect()
}

/// Returns the exit codes that a command uses; without a command, all.
fn exit_status(command: Option<&str>) -> String {
    let is_used = |users: Option<&[&str]>| match (users, command) {
        (Some(users), Some(command)) => users.contains(&command),
        _ => true,
    };
    let codes = EXIT_CODES.iter().filter(|(.., users)| is_used(*users));
    let entries = codes.map(|(code, text, _)| format!(".TP\n.B {code}\n{}\n", roff::escape(text)));
    format!(".SH EXIT STATUS\n{}", entries.collect::<String>())
}

/// Returns the page of all settings, by group.
fn config_page() -> String {
    let mut out = roff::title("git-proq-config", 5, "Settings of git-proq");
    out.push_str(".SH SYNOPSIS\n.nf\ngit config proq.\\fIgroup.name\\fR \\fIvalue\\fR\n");
    out.push_str("git proq config set \\fIgroup.name\\fR \\fIvalue\\fR\n.fi\n");
    out.push_str(&roff::paragraphs("DESCRIPTION", CONFIG_DESCRIPTION));
    let mut group = "";
    for key in KEYS.iter() {
        let (key_group, _) = key.name.split_once('.').unwrap_or((key.name, ""));
        if key_group != group {
            group = key_group;
            out.push_str(&format!(".SH {}\n", roff::escape(&group.to_uppercase())));
        }
        let default = match key.default {
            "" => "no default".to_owned(),
            default => format!("default: {default}"),
        };
        let owner = if key.settable_by_repository { "" } else { "; not in proq.toml" };
        let form = format!("{}; {default}{owner}.", key.format.describe());
        out.push_str(&roff::entry(
            &format!("proq.{}", key.git_name()),
            &format!("{}.", capitalized(key.summary)),
        ));
        out.push_str(&format!(".IP\n{}\n", roff::escape(&capitalized(&form))));
    }
    out.push_str(&roff::entries("FILES", of_command(COMMAND_FILES, "config").unwrap_or_default()));
    out.push_str(&roff::entries(
        "ENVIRONMENT",
        of_command(COMMAND_ENVIRONMENT, "config").unwrap_or_default(),
    ));
    out + &roff::see_also(&[page_name("config", 1), ("git-proq".to_owned(), 1), ("git-config".to_owned(), 1)])
}

/// Text before the settings on their page.
const CONFIG_DESCRIPTION: &str = "Each setting can be made in several places, of which the last one counts: the default, \
    proq.toml at the top of the repository, ~/.config/git-proq/config.toml, git's configuration, and a variable of the \
    environment.\n\nThe setting agent.max_time, for example, is max_time in the table [agent] of a TOML file, \
    proq.agent.maxTime for git, and PROQ_AGENT_MAX_TIME in the environment. The page has git's names. `git proq config \
    list --show-origin` prints every value and where it comes from.\n\nA proq.toml cannot set what is for the user \
    only. Commands that it brings run once you have approved them: see git-proq-approve(1).\n\nHooks are settings too: \
    hook.EVENT is a shell command line, or several, that runs at an event, such as run.ended; git-proq-events(1) shows them.";

/// Returns a text with a capital first letter.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// Returns the tutorial, from its page of the guide.
fn tutorial_page() -> String {
    let title = roff::title("git-proq-tutorial", 7, "Land, preview and undo your first lanes");
    let synopsis =
        ".SH SYNOPSIS\n.nf\ngit proq demo\ngit proq spawn \\-n search \\-\\- sh \\-c \\(aq...\\(aq\n.fi\n";
    let (text, _) = TUTORIAL.split_once("\n## Next").unwrap_or((TUTORIAL, ""));
    let description = roff::from_markdown(text);
    let pages =
        [("git-proq".to_owned(), 1), page_name("spawn", 1), page_name("merge", 1), page_name("config", 5)];
    format!(
        "{title}{synopsis}.SH DESCRIPTION\n{}\n{}",
        description.trim_start_matches(".PP\n").trim_end_matches(".PP\n").trim_end(),
        roff::see_also(&pages)
    )
}
