//! Flags about an agent's run that `spawn`, `run` and other commands share: permission, model and limits.

use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use proq_base::money::NanoDollars;
use proq_lib::agent::command::agent_command::RunOptions;
use proq_lib::agent::profiles::profile::permission::Permission;
use proq_lib::lane::Project;
use proq_lib::types::RunLimits;

use crate::cli::invocation::caller;
use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;

/// What a run is to be like. What is left open is as in the settings.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunArgs {
    /// Permission level: read, edit or full
    ///
    /// [default: agent.permission] `read`: read files only; `edit`: also edit the lane and run git in it; `full`: everything, without asking.
    #[arg(long, value_name = "LEVEL", hide_possible_values = true, value_parser = permission())]
    pub(crate) permission: Option<Permission>,
    /// Model to use [default: agent.model]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Stop the run after N turns, if the agent supports it
    #[arg(long, hide_short_help = true, value_name = "N")]
    pub(crate) max_turns: Option<u32>,
    /// Stop the run after TIME, such as 90s, 30m or 2h
    ///
    /// 0 is no limit.
    #[arg(long, value_name = "TIME", alias = "max-minutes", value_parser = parse_duration)]
    pub(crate) max_time: Option<Duration>,
    /// Stop the run after TIME without output or commits
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) stall: Option<Duration>,
    /// Stop the run once it has cost more than USD
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    pub(crate) budget: Option<NanoDollars>,
}

/// Flags of a run that starts with a task: also the commands that its agent may run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TaskRunArgs {
    /// Allow a command such as 'cargo *' [can be repeated]
    ///
    /// The agent may run it without a request. `*` stands for any arguments.
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<String>,
    /// Flags of any run
    #[command(flatten)]
    run_args: RunArgs,
}

impl TaskRunArgs {
    /// Returns the run options of these flags, for a run that is in a tmux window if `in_window`.
    pub(crate) fn run_options_with_window(&self, in_window: bool) -> RunOptions {
        RunOptions { in_window, allow: self.allow.clone(), ..self.run_args.run_options() }
    }
}

/// Parses a duration; a number without a unit is in minutes.
fn parse_duration(text: &str) -> Result<Duration, String> {
    proq_base::config::value_format::parse_duration(text)
        .ok_or_else(|| "expected a duration, such as 90s, 30m or 2h".to_owned())
}

/// Parses an amount of US dollars.
fn parse_dollars(text: &str) -> Result<NanoDollars, String> {
    NanoDollars::parse(text).ok_or_else(|| "expected an amount in US dollars, such as 2.50".to_owned())
}

/// Returns the parser of a permission level.
fn permission() -> impl TypedValueParser<Value = Permission> {
    let names = PossibleValuesParser::new(["read", "edit", "full"]);
    names.map(|name| Permission::from_name(&name).unwrap_or_default())
}

impl RunArgs {
    /// Returns the run options of these flags; an absent flag leaves its option unspecified.
    pub(crate) fn run_options(&self) -> RunOptions {
        RunOptions {
            permission: self.permission,
            model: self.model.clone(),
            max_turns: self.max_turns,
            limits: RunLimits { max_duration: self.max_time, max_stall: self.stall, budget: self.budget },
            ..RunOptions::default()
        }
    }
}

/// Refuses a run at full permission, by flag or by settings, if an agent in a lane starts it.
///
/// # Errors
/// [`proq_lib::ops::refusal::Refusal::InLane`].
pub(crate) fn refuse_full_permission(
    context: &CommandContext,
    project: &Project,
    run_options: &RunOptions,
) -> Result<(), Failure> {
    match run_options.permission.or(Permission::from_name(&project.settings.permission)) {
        Some(Permission::Full) => caller::refuse_in_lane(context, project),
        _ => Ok(()),
    }
}
