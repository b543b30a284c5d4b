//! The `git proq agents` command.

use clap::Args;
use proq_base::hint;
use proq_lib::board::agents::{AgentList, AgentRow};

use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::table::Column;
use crate::cli::terminal::{page, table};

/// Columns of the list of agents. The last two are empty without `--wide`.
const COLUMNS: [Column; 7] = [
    Column::new("AGENT"),
    Column::text("VERSION", 8),
    Column::text("TESTED", 8).hidden_at(2),
    Column::text("PROGRAM", 13).hidden_at(1),
    Column::text("DESCRIPTION", 12).hidden_at(3),
    Column::text("REPORTS", 8).hidden_at(4),
    Column::text("CAPABILITIES", 12).hidden_at(5),
];

/// List supported and installed agents
///
/// Installed agents are asked for their version; `tried` shows whether git-proq was tested with that
/// version. Others mostly work too. Any other program on PATH can be used as an agent; it gets the prompt
/// as its last argument.
///
/// Profiles of agents are data: [agents.NAME] in ~/.config/git-proq/config.toml changes one, and with a new
/// NAME and `like = "claude"` adds one.
///
/// Examples:
///     git proq agents
///     git proq agents --wide
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Agents {
    /// Also show the capabilities of each agent
    #[arg(long)]
    pub(crate) wide: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Agents) -> CommandResult {
    context.apply_color_settings();
    page::begin();
    context.show(AgentList::load(&context.dir)?, |context, list| {
        let row = |row: &AgentRow| {
            let mut cells = vec![
                row.name.clone(),
                row.version.clone().unwrap_or_default(),
                tested_version_text(row),
                program_location_text(row),
                row.profile.about.clone(),
            ];
            let details = [reported_activities_text(row), row.capabilities.join(", ")];
            cells.extend(details.map(|text| if args.wide { text } else { String::new() }));
            cells
        };
        let mut agents: Vec<&AgentRow> = list.agents.iter().collect();
        agents.sort_by_key(|row| row.path.is_none());
        context.ui.print_line(table::render(&COLUMNS, agents.into_iter().map(row).collect()));
        context.ui.hint(hint!("run any other program: git proq spawn -n docs -- make docs"));
    })
}

/// Formats which activities of the agent are known while it runs.
fn reported_activities_text(row: &AgentRow) -> String {
    match row.reported_activities.is_empty() {
        true if row.profile.has_optional_hooks() => "nothing without capabilities.hooks".to_owned(),
        true => "nothing".to_owned(),
        false => row.reported_activities.join(", "),
    }
}

/// Formats whether the profile was tested with the installed version; empty where that is unknown.
fn tested_version_text(row: &AgentRow) -> String {
    match (&row.path, row.is_version_tested) {
        _ if row.profile.documented_only => "no (from its documentation)".to_owned(),
        (None, _) => String::new(),
        (Some(_), _) if row.version.is_none() => "?".to_owned(),
        (Some(_), true) => "yes".to_owned(),
        (Some(_), false) if row.profile.tested_versions.is_empty() => String::new(),
        (Some(_), false) => format!("with {}", row.profile.tested_versions.join(", ")),
    }
}

/// Formats the path of the agent's program, or that it is not installed.
fn program_location_text(row: &AgentRow) -> String {
    match &row.path {
        Some(path) => console::style(path).green().to_string(),
        None if row.profile.program.is_empty() => console::style("any program").dim().to_string(),
        None => console::style("not installed").dim().to_string(),
    }
}
