//! The `git proq edit` command.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_lib::lane::creation::create;
use proq_lib::ops::edit;
use proq_lib::ops::edit::EditRequest;

use crate::cli::arguments::candidates::{any_lane_names, user_branch_names};
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;

/// Edit a lane's title, scope, checks or base
///
/// New scopes and checks replace all earlier ones; an empty one removes them. A new base changes which branch the lane
/// is merged into, and nothing in the lane.
///
/// Examples:
///     git proq edit payments --title "Payments by card and by invoice"
///     git proq edit payments --check "make test" --check "make lint"
///     git proq edit payments --base develop
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "git proq edit [OPTIONS] [LANE]")]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true).args(["title", "scope", "check", "base"]))]
pub(crate) struct Edit {
    /// Lane name [default: lane of the current folder]
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: Option<String>,
    /// New title (one line, at most 120 characters)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) title: Option<String>,
    /// Files the task should touch [can be repeated]
    #[arg(long, value_name = "GLOB")]
    pub(crate) scope: Option<Vec<String>>,
    /// Shell command that must pass before the lane can land [can be repeated]
    #[arg(long, value_name = "CMD", value_hint = clap::ValueHint::CommandString)]
    pub(crate) check: Option<Vec<String>>,
    /// Branch that the lane lands on
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) base: Option<String>,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Edit) -> CommandResult {
    let example = "git proq edit payments --title \"Payments by card\"";
    let clean_title = |title: &String| match create::clean_title(title) {
        None => Err(UsageError::missing("the title is empty", example)),
        Some(_) if title.trim().lines().count() > 1 => {
            Err(UsageError::missing("the title has more than one line", example))
        }
        Some(_) if title.trim().chars().count() > create::MAX_TITLE_CHARS => {
            Err(UsageError::missing("the title has more than 120 characters", example))
        }
        Some(title) => Ok(title),
    };
    let title = args.title.as_ref().map(clean_title).transpose()?;
    let project = context.project_for_write()?;
    let lane = project.find_any_lane(&caller::lane_or_current(&project, args.lane.as_ref())?)?;
    caller::refuse_agent_for_other_lanes(std::slice::from_ref(&lane.name), args.dry_run)?;
    if args.check.is_some() || args.base.is_some() {
        // An agent must not decide which checks its own work has to pass.
        caller::refuse_lane_agent(args.dry_run)?;
    }
    let Edit { scope, check: checks, base, .. } = args;
    let (scope, checks, base) = (scope.clone(), checks.clone(), base.clone());
    let plan = edit::plan(&project, EditRequest { lane, title, scope, checks, base })?;
    let change = if args.dry_run { plan } else { plan.execute(&project)? };
    context.show(&change, |context, change| {
        if !change.changed {
            let is_same = "already has these values; nothing was changed or recorded";
            return context.ui.print_line(format!("{} {is_same}", change.lane));
        }
        let would = if args.dry_run { "would set" } else { "set" };
        if args.title.is_some() {
            context.ui.print_line(format!("{would} the title of {} to {}", change.lane, change.title));
        }
        let list = |texts: &Vec<String>| if texts.is_empty() { "none".to_owned() } else { texts.join(", ") };
        let lists =
            [("scope", change.scope.as_ref().map(list)), ("checks", change.checks.as_ref().map(list))];
        for (name, value) in lists.into_iter().chain([("base", change.base.clone())]) {
            if let Some(value) = value {
                context.ui.print_line(format!("{would} the {name} of {} to {value}", change.lane));
            }
        }
    })
}
