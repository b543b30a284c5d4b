//! Owns `git proq agents`.

use clap::Args;
use serde::Serialize;

use super::{Done, Session, table};
use crate::agent::{Installed, Profile, installed, profiles};
use crate::explain::Exit;
use crate::lane::Project;

/// List the agents that are known, and which are installed
///
/// An installed one is asked for its version; `tried` says whether what is known of it was tried with that version. Others
/// mostly work too. Any other program on PATH can be used as an agent; it gets the prompt as its last argument.
///
/// What is known of an agent is data, that [agents.NAME] in ~/.config/git-proq/config.toml changes; with another NAME and
/// `like = "claude"` it adds one.
///
/// Examples:
///     git proq agents
///     git proq agents --wide
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Agents {
    /// Say what can be had from each, too
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(Serialize)]
struct Row {
    name: String,
    /// Where its program is.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The program's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Whether the profile was tried with that version.
    tried: bool,
    capabilities: Vec<&'static str>,
    /// What its hooks tell of what it does while it runs.
    tells: Vec<String>,
    profile: Profile,
}

#[derive(Serialize)]
struct Answer {
    agents: Vec<Row>,
}

pub(super) fn run(session: &Session, args: &Agents) -> Done {
    let layers = Project::layers_of(None)?;
    let known = profiles(&layers)?;
    let found = installed(&known.values().collect::<Vec<_>>(), &session.dir);
    let agents: Vec<Row> =
        known.into_iter().zip(found).map(|((name, p), found)| row(name, p, found)).collect();
    if session.ui.json {
        session.ui.object(Answer { agents });
        return Ok(Exit::Done);
    }
    let mut titles = vec!["AGENT", "VERSION", "TRIED", "FOUND", "WHAT IT IS"];
    if args.wide {
        titles.extend(["TELLS THAT IT IS", "WHAT CAN BE HAD FROM IT"]);
    }
    let rows = agents.iter().map(|row| {
        let mut cells = vec![
            row.name.clone(),
            row.version.clone().unwrap_or_default(),
            tried(row).to_owned(),
            place(row),
            row.profile.about.clone(),
        ];
        if args.wide {
            cells.extend([tells(row), row.capabilities.join(", ")]);
        }
        cells
    });
    session.ui.answer(table::render(&titles, rows.collect()));
    session.ui.hint("any other program works too: git proq spawn -n NAME -- CMD ARGS…");
    Ok(Exit::Done)
}

fn row(name: String, profile: Profile, found: Option<Installed>) -> Row {
    let (path, version) = match found {
        Some(found) => (Some(found.path.display().to_string()), found.version),
        None => (None, None),
    };
    let tried = version.as_ref().is_some_and(|version| profile.tried.contains(version));
    let tells = profile.tells().iter().map(ToString::to_string).collect();
    Row { name, path, version, tried, capabilities: profile.capabilities.names(), tells, profile }
}

/// What is known of what it does while it runs.
fn tells(row: &Row) -> String {
    match row.tells.is_empty() {
        true if row.profile.can_have_hooks() => "nothing without capabilities.hooks".to_owned(),
        true => "nothing".to_owned(),
        false => row.tells.join(", "),
    }
}

/// Whether it was tried, as far as there is anything to say of that.
fn tried(row: &Row) -> &'static str {
    match (&row.path, row.tried) {
        _ if row.profile.documented_only => "never: as documented",
        (None, _) => "",
        (Some(_), _) if row.version.is_none() => "?",
        (Some(_), true) => "yes",
        (Some(_), false) if row.profile.tried.is_empty() => "",
        (Some(_), false) => "other versions",
    }
}

fn place(row: &Row) -> String {
    match &row.path {
        Some(path) => console::style(path).green().to_string(),
        None if row.profile.program.is_empty() => console::style("yours to name").dim().to_string(),
        None => console::style("not installed").dim().to_string(),
    }
}
