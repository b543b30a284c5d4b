//! The `git proq config` command.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::Exit;
use proq_base::{hint, interrupt};
use proq_lib::board::settings::{SettingList, SettingRow};
use proq_lib::lane::Project;
use proq_lib::ops::settings;
use proq_lib::ops::settings::{SettingChange, SettingRequest};
use proq_lib::types::{Listener, SettingsFile};

use crate::cli::arguments::candidates::setting_names;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::table::Column;
use crate::cli::terminal::{page, table};

/// View and change settings
///
/// Without a command, list the settings that differ from their defaults. Later sources override earlier ones:
/// built-in defaults, proq.toml in the repository, ~/.config/git-proq/config.toml, `git config proq.*`, and
/// PROQ_* variables. proq.toml is read from the main checkout. Its checks (verify.*) are those of the current
/// branch, or of the base of the lane: if the main checkout shows another branch, or lacks the file, those of
/// the last commit of that branch.
///
/// `hook.EVENT` sets the commands that run at an event: one shell command line, or several. The page of
/// `hooks/` lists the events.
///
/// Examples:
///     git proq config
///     git proq config set merge.strategy squash
///     git proq config describe merge.uncommitted
///     git proq config list --show-origin
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Config {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
}

/// What can be done with settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List all settings and their values
    List {
        /// Show where each value comes from
        #[arg(long)]
        show_origin: bool,
    },
    /// Print the value of a setting
    Get {
        /// The setting, such as merge.strategy
        #[arg(value_name = "KEY", add = ArgValueCompleter::new(setting_names))]
        key: String,
    },
    /// Change a setting, in git's configuration
    Set {
        /// The setting, such as merge.strategy
        #[arg(value_name = "KEY", add = ArgValueCompleter::new(setting_names))]
        key: String,
        /// The new value; several for a list
        #[arg(value_name = "VALUE", required = true)]
        values: Vec<String>,
        /// Where the change is made
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Remove a setting from git's configuration
    Unset {
        /// The setting, such as merge.strategy
        #[arg(value_name = "KEY", add = ArgValueCompleter::new(setting_names))]
        key: String,
        /// Where the change is made
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Open git's configuration in your editor
    Edit {
        /// Open that of all your repositories, ~/.gitconfig
        #[arg(long)]
        global: bool,
    },
    /// Show what a setting does, its type, default and source
    Describe {
        /// The setting, such as merge.strategy
        #[arg(value_name = "KEY", add = ArgValueCompleter::new(setting_names))]
        key: String,
    },
}

/// Flags of the commands that change a setting.
#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    /// Change it for all your repositories, in ~/.gitconfig
    #[arg(long)]
    global: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Config) -> CommandResult {
    if args.command.as_ref().is_some_and(ConfigCommand::is_global)
        && settings::is_outside_repository(&context.dir)
    {
        return change_outside_repository(context, args);
    }
    let project = context.project_to_read()?;
    if matches!(args.command, None | Some(ConfigCommand::List { .. })) {
        page::begin();
    }
    match &args.command {
        None => print_changed(context, &project),
        Some(ConfigCommand::List { show_origin }) => {
            let last_title = if *show_origin { "ORIGIN" } else { "DESCRIPTION" };
            context.show(SettingList::load(&project)?, |context, list| {
                print_table(context, list, last_title);
            })
        }
        Some(ConfigCommand::Get { key }) => {
            context.show(SettingList::load(&project)?.find(key)?, |context, row| {
                context.ui.print_verbatim(row.value);
            })
        }
        Some(ConfigCommand::Set { key, values, change }) => {
            change_setting(context, &project, change, &change.request(key, values))
        }
        Some(ConfigCommand::Unset { key, change }) => {
            change_setting(context, &project, change, &change.request(key, &[]))
        }
        Some(ConfigCommand::Edit { global }) => {
            caller::refuse_lane_agent(false)?;
            settings::edit(&project, settings_file(*global))?;
            Ok(Exit::Success)
        }
        Some(ConfigCommand::Describe { key }) => {
            context.show(SettingList::load(&project)?.find(key)?, |context, row| describe(context, &row))
        }
    }
}

impl ConfigCommand {
    /// Returns whether only the user's own settings of git are changed.
    fn is_global(&self) -> bool {
        match self {
            ConfigCommand::Set { change, .. } | ConfigCommand::Unset { change, .. } => change.global,
            ConfigCommand::Edit { global } => *global,
            ConfigCommand::List { .. } | ConfigCommand::Get { .. } | ConfigCommand::Describe { .. } => false,
        }
    }
}

/// Changes the user's own settings of git from a folder in no repository.
fn change_outside_repository(context: &CommandContext, args: &Config) -> CommandResult {
    caller::refuse_lane_agent(false)?;
    let (key, values, change) = match &args.command {
        Some(ConfigCommand::Set { key, values, change }) => (key, values.as_slice(), change),
        Some(ConfigCommand::Unset { key, change }) => (key, &[][..], change),
        _ => {
            settings::edit_outside_repository(&context.dir)?;
            return Ok(Exit::Success);
        }
    };
    interrupt::defer_signals();
    let request = change.request(key, values);
    let change = settings::change_outside_repository(&context.dir, &request, change.dry_run)?;
    print_change(context, &change)
}

impl ChangeArgs {
    fn request(&self, key: &str, values: &[String]) -> SettingRequest {
        SettingRequest { key: key.to_owned(), values: values.to_vec(), file: settings_file(self.global) }
    }
}

/// Returns the user's file of git's settings with `--global`, and otherwise the repository's.
fn settings_file(global: bool) -> SettingsFile {
    if global { SettingsFile::Global } else { SettingsFile::Local }
}

fn print_changed(context: &CommandContext, project: &Project) -> CommandResult {
    let mut list = SettingList::load(project)?;
    list.retain_changed();
    context.show(list, |context, list| {
        if list.settings.is_empty() {
            context.ui.status("all settings have their defaults");
        } else {
            print_table(context, list, "ORIGIN");
        }
        context.ui.hint(hint!("see all settings: git proq config list"));
    })
}

fn print_table(context: &CommandContext, list: SettingList, last_title: &'static str) {
    let rows = list.settings.into_iter().map(|row| {
        let last = if last_title == "ORIGIN" { row.origin } else { row.about };
        vec![row.key, row.value.replace('\n', "; "), last]
    });
    context.ui.print_line(table::render_untruncated(
        &["SETTING", "VALUE", last_title].map(Column::new),
        rows.collect(),
    ));
}

fn change_setting(
    context: &CommandContext,
    project: &Project,
    args: &ChangeArgs,
    request: &SettingRequest,
) -> CommandResult {
    caller::refuse_lane_agent(args.dry_run)?;
    // A file of git's configuration that is written is locked in the meantime.
    interrupt::defer_signals();
    let plan = settings::plan(project, request)?;
    let reopen = || Project::open_to_read(&context.dir, Listener::silent());
    print_change(context, &if args.dry_run { plan } else { plan.execute(project, reopen)? })
}

fn print_change(context: &CommandContext, change: &SettingChange) -> CommandResult {
    context.show(change, |context, change| {
        let (key, value, before) = (&change.key, one_line(&change.value), one_line(&change.before));
        context.ui.print_line(match (change.dry_run, change.is_removal()) {
            (true, _) => format!("would run: {}", change.git_command()),
            (false, true) => format!("unset {key}; its value is now {value} ({})", change.origin),
            (false, false) => format!("set {key} to {}", one_line(change.written_value())),
        });
        if let Some(stronger) = &change.overridden_by {
            context.ui.warn(format!("{key} is still {value}: {stronger} overrides it"));
        } else if let Some(others) = &change.extended_by {
            context.ui.warn(format!("{key} is {value}: a list also has the items of {others}"));
        } else if !change.dry_run && !change.is_removal() && change.before != change.value {
            context.ui.status(format!("it was {before}"));
        }
    })
}

/// Formats a value in one line.
fn one_line(value: &str) -> String {
    if value.is_empty() { "empty".to_owned() } else { value.replace('\n', "; ") }
}

fn describe(context: &CommandContext, row: &SettingRow) {
    let ui = context.ui;
    ui.print_line(format!("{}: {}", row.key, row.about));
    ui.print_field("value", format!("{} ({})", one_line(&row.value), row.origin));
    ui.print_field("default", one_line(row.default));
    ui.print_field("type", &row.form);
    if let Some((git_key, variable)) = row.other_names() {
        ui.print_field("set by", format!("git config {git_key}, or ${variable}"));
    }
    ui.print_field("proq.toml", if row.settable_by_repository { "may set it" } else { "may not set it" });
}
