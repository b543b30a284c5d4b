//! The `git proq config` command.

use clap::{Args, Subcommand};
use proq_lib::board::settings::SettingList;

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

pub(crate) fn run(context: &CommandContext, args: &Config) -> CommandResult {
    let ConfigCommand::List { show_origin } = args.command;
    context.show(SettingList::load(&context.project()?)?, |context, list| {
        let last_title = if show_origin { "ORIGIN" } else { "WHAT IT DOES" };
        let rows = list.settings.into_iter().map(|row| {
            vec![row.key, row.value.replace('\n', "; "), if show_origin { row.origin } else { row.about }]
        });
        let table = table::render_untruncated(&["SETTING", "VALUE", last_title], rows.collect());
        context.ui.print_line(table);
    })
}
