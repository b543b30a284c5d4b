//! Owns `git proq config`.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Done, Session, table};
use crate::config::KEYS;
use crate::explain::Exit;

/// Look at the settings
///
/// Later wins: built in, proq.toml in the repository, ~/.config/git-proq/config.toml, git config proq.*, PROQ_*
/// variables.
///
/// Examples:
///     git proq config list --show-origin
///     git config proq.merge.uncommitted commit
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Config {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// What can be done with settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List every setting and its value
    List {
        /// Where each value comes from
        #[arg(long)]
        show_origin: bool,
    },
}

#[derive(Serialize)]
struct Row {
    key: &'static str,
    value: String,
    origin: String,
    default: &'static str,
    form: String,
    by_repository: bool,
    about: &'static str,
}

#[derive(Serialize)]
struct Answer {
    settings: Vec<Row>,
}

pub(super) fn run(session: &Session, args: &Config) -> Done {
    let ConfigCommand::List { show_origin } = args.command;
    let project = session.project()?;
    let settings: Vec<Row> = KEYS
        .iter()
        .map(|key| {
            let (value, origin) = project.layers.get(key);
            Row {
                key: key.name,
                value: value.to_owned(),
                origin: origin.to_string(),
                default: key.default,
                form: key.form.describe(),
                by_repository: key.by_repository,
                about: key.about,
            }
        })
        .collect();
    if session.ui.json {
        session.ui.object(Answer { settings });
        return Ok(Exit::Done);
    }
    let (last, rows): (&str, Vec<Vec<String>>) = if show_origin {
        (
            "ORIGIN",
            settings.iter().map(|r| vec![r.key.into(), one_line(&r.value), r.origin.clone()]).collect(),
        )
    } else {
        (
            "WHAT IT DOES",
            settings.iter().map(|r| vec![r.key.into(), one_line(&r.value), r.about.into()]).collect(),
        )
    };
    session.ui.answer(table::render(&["SETTING", "VALUE", last], rows));
    Ok(Exit::Done)
}

/// A list on one line, for the table.
fn one_line(value: &str) -> String {
    value.replace('\n', "; ")
}
