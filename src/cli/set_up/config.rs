//! The `git proq config` command.

use clap::{Args, Subcommand};
use proq_base::config::keys::KEYS;
use proq_base::config::value_format::ValueFormat;
use proq_base::explain::Exit;
use proq_lib::lane::inspection::landing_checks;
use serde::Serialize;

use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::table;

/// Look at the settings
///
/// `hook.EVENT` sets what is run at an event: one command line for the shell, or several. The page of `hooks/` has the events.
///
/// Later wins: built in, proq.toml in the repository, ~/.config/git-proq/config.toml, git config proq.*, PROQ_*
/// variables. proq.toml is read from the main checkout; its checks (verify.*) are those of the branch that you are on, or of your
/// lane's base: where the main checkout has another one, or lacks the file, those of that branch's last commit.
///
/// Examples:
///     git proq config list --show-origin
///     git config proq.merge.uncommitted commit
///     git config proq.hook.run.ended 'echo "$PROQ_MESSAGE" >> ~/agents.log'
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
struct SettingRow {
    key: String,
    value: String,
    origin: String,
    default: &'static str,
    /// Format of the setting's values, as text.
    form: String,
    /// Whether the repository's `proq.toml` may set it.
    #[serde(rename = "by_repository")]
    settable_by_repository: bool,
    /// What the setting does, in one sentence.
    about: String,
}

#[derive(Serialize)]
struct ConfigOutput {
    settings: Vec<SettingRow>,
}

pub(crate) fn run(context: &CommandContext, args: &Config) -> CommandResult {
    let ConfigCommand::List { show_origin } = args.command;
    let project = context.project()?;
    let layers = landing_checks::default_base_layers(&project)?;
    let mut settings: Vec<SettingRow> = KEYS
        .iter()
        .map(|key| {
            let (value, origin) = layers.get(key);
            SettingRow {
                key: key.name.to_owned(),
                value: key.display_value(value),
                origin: origin.to_string(),
                default: key.default,
                form: key.format.describe(),
                settable_by_repository: key.settable_by_repository,
                about: key.summary.to_owned(),
            }
        })
        .collect();
    settings.extend(layers.hook_events().filter_map(|event| {
        let (value, origin) = layers.hook_commands(event)?;
        Some(SettingRow {
            key: format!("hook.{event}"),
            value: value.clone(),
            origin: origin.to_string(),
            default: "",
            form: ValueFormat::Commands.describe(),
            settable_by_repository: true,
            about: format!("what is run at {event}"),
        })
    }));
    settings.sort_by(|a, b| a.key.cmp(&b.key));
    if context.ui.json {
        context.ui.print_json(ConfigOutput { settings });
        return Ok(Exit::Success);
    }
    let (last_title, rows): (&str, Vec<Vec<String>>) = if show_origin {
        (
            "ORIGIN",
            settings
                .iter()
                .map(|r| vec![r.key.clone(), join_list_value(&r.value), r.origin.clone()])
                .collect(),
        )
    } else {
        (
            "WHAT IT DOES",
            settings
                .iter()
                .map(|r| vec![r.key.clone(), join_list_value(&r.value), r.about.clone()])
                .collect(),
        )
    };
    context.ui.print_line(table::render_untruncated(&["SETTING", "VALUE", last_title], rows));
    Ok(Exit::Success)
}

/// Joins a list value into one line for the table.
fn join_list_value(value: &str) -> String {
    value.replace('\n', "; ")
}
