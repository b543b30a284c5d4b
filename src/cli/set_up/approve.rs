//! The `git proq approve` command.

use std::path::Path;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use proq_base::config::settings::Settings;
use proq_base::explain::{Exit, shell_quote};
use proq_base::terminal_text;
use proq_lib::event::approval::{Approvals, ShellCommand};
use proq_lib::lane::Project;
use proq_lib::lane::inspection::{base, landing_checks};
use proq_lib::ops::approvals::{save_approvals, unapproved_commands};
use proq_lib::swarm::batch::plan_commands;
use proq_lib::types::{ApprovalsRecord, ApprovedCommand};
use serde::Serialize;

use crate::cli::arguments::candidates::user_branch_names;
use crate::cli::arguments::plan_source::{FormatArg, PlanSource};
use crate::cli::invocation::approval_prompt::{APPROVE_QUESTION, SHORT_ID_LEN, print_commands, short_id};
use crate::cli::invocation::caller;
use crate::cli::invocation::confirm::{cannot_prompt_user, require_confirmation};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::ui;

/// Allow commands that come with the repository to run
///
/// The verify.commands, the lane.setup commands, the merge.conflict_agent and the hooks of a proq.toml run only after this, and a changed one asks
/// again: what counts is the command line itself and what it is for, not what the scripts say that it starts. Each has an ID,
/// and with IDs only those are approved, or taken back. proq.toml is read from the main checkout, as it lies there. Its
/// checks are those of the branch that you are on, or of --onto: where the main checkout has another one, as while a lane is
/// previewed, or lacks the file, those of that branch's last commit. Commands of your own settings and of --verify need no approval.
///
/// A plan that lies in a repository may bring commands, too: checks of its tasks, and criteria. `git proq swarm` runs it only
/// once those are approved, with --plan.
///
/// Examples:
///     git proq approve
///     git proq approve 3f9c21aa
///     git proq approve --onto release
///     git proq approve --plan plan.toml
///     git proq approve --list
///     git proq approve --revoke 3f9c21aa
///     git proq approve --revoke
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Approve {
    /// Only these, by the beginnings of their IDs
    #[arg(value_name = "ID", conflicts_with = "list")]
    pub(crate) ids: Vec<String>,
    /// Approve them without a question
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// List all commands that the repository brings, and all that was approved before
    #[arg(long, conflicts_with_all = ["yes", "revoke", "dry_run"])]
    pub(crate) list: bool,
    /// Take approvals back: those with an ID, or without one all of this repository
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
    /// The commands of this plan, named as for `git proq swarm`, in place of those of proq.toml; may be given again
    #[arg(long, value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub(crate) plan: Vec<String>,
    /// What the plan is written in, where its name does not tell
    #[arg(long, value_name = "FORM", requires = "plan")]
    pub(crate) format: Option<FormatArg>,
    /// The checks of landings on this branch, in place of those of the branch that you are on
    #[arg(long, value_name = "BRANCH", conflicts_with = "plan", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) onto: Option<String>,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl Approve {
    /// Returns the arguments that select the commands to approve, for use in a hint.
    fn selection_args(&self) -> String {
        let onto = self.onto.iter().map(|branch| format!(" --onto {}", shell_quote(branch)));
        let ids = self.ids.iter().map(|id| format!(" {}", shell_quote(id)));
        let plan = PlanSource::from_names(&self.plan, self.format).named_plan(Path::new("")).approve_args();
        terminal_text::escape_line(&std::iter::once(plan).chain(onto).chain(ids).collect::<String>())
    }
}

#[derive(Serialize)]
struct ApproveOutput {
    /// The commands that the settings or the plan contain.
    commands: Vec<CommandRow>,
    /// All approved commands.
    approved: Vec<ApprovedCommand>,
    dry_run: bool,
}

#[derive(Serialize)]
struct CommandRow {
    id: String,
    /// What the command is for, such as a check or a hook.
    kind: String,
    command: String,
    /// File that contains the command; `None` for the user's own settings.
    #[serde(rename = "from", skip_serializing_if = "Option::is_none")]
    source_file: Option<String>,
    approved: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Approve) -> CommandResult {
    let project = match args.list {
        true => context.project()?,
        false => context.project_for_write()?,
    };
    // An agent must not approve what it wants to run.
    if !args.list && !args.revoke {
        caller::refuse_in_lane(context, &project)?;
    }
    let mut approvals = Approvals::load(&project.repo, &project.store)?;
    let commands = select_by_id(plan_or_settings_commands(context, &project, &approvals, args)?, args)?;
    let pending = unapproved_commands(&commands);
    let mut record = approvals.record.clone();
    if args.revoke {
        record = revoke_by_id(&approvals.record, &args.ids)?;
        print_revoked(context, args, approvals.record.approved.len() - record.approved.len());
    } else if args.list {
        print_list(context, &record, &pending);
    } else {
        if !context.ui.json {
            print_commands(context, &commands);
        }
        if !pending.is_empty() && !args.dry_run {
            if !args.yes {
                confirm_or_refuse(context, args)?;
            }
            record = approvals.with_approved(&pending);
        }
    }
    if record != approvals.record && !args.dry_run {
        save_approvals(&project, &approvals, &record)?;
        if !args.revoke && !context.ui.json {
            context.ui.print_line(format!("approved {}", ui::pluralize(pending.len(), "command")));
        }
    }
    if context.ui.json {
        if !args.dry_run {
            approvals.record = record;
        }
        let commands = plan_or_settings_commands(context, &project, &approvals, args)?;
        let commands = commands.into_iter().map(CommandRow::from).collect();
        context.ui.print_json(ApproveOutput {
            commands,
            approved: approvals.record.approved,
            dry_run: args.dry_run,
        });
    }
    Ok(Exit::Success)
}

/// Returns the commands to approve: those of a plan, or those of the settings.
fn plan_or_settings_commands(
    context: &CommandContext,
    project: &Project,
    approvals: &Approvals<'_>,
    args: &Approve,
) -> Result<Vec<ShellCommand>, Failure> {
    if args.plan.is_empty() {
        let layers = match &args.onto {
            Some(onto) => project.landing_checks(&base::resolve(project, None, Some(onto))?.branch)?.layers,
            None => landing_checks::default_base_layers(project)?,
        };
        return Ok(approvals.all_commands(&layers, &Settings::from_layers(&layers)));
    }
    let plan =
        PlanSource::from_names(&args.plan, args.format).named_plan(&context.dir).read_silently(project)?;
    Ok(plan_commands::collect_plan_commands(project, &plan, &context.dir)?)
}

/// Returns the commands that the given id prefixes select. Returns all commands if no id was given, or if
/// approvals are revoked.
fn select_by_id(commands: Vec<ShellCommand>, args: &Approve) -> Result<Vec<ShellCommand>, Failure> {
    if args.ids.is_empty() || args.revoke {
        return Ok(commands);
    }
    require_known_ids(&args.ids, |id| commands.iter().any(|command| command.id.starts_with(id)))?;
    Ok(commands.into_iter().filter(|c| args.ids.iter().any(|id| c.id.starts_with(id.as_str()))).collect())
}

/// Returns the approvals without those of `ids`; no approvals if `ids` is empty.
fn revoke_by_id(record: &ApprovalsRecord, ids: &[String]) -> Result<ApprovalsRecord, Failure> {
    if ids.is_empty() {
        return Ok(ApprovalsRecord::default());
    }
    require_known_ids(ids, |id| record.approved.iter().any(|approved| approved.id.starts_with(id)))?;
    let is_retained =
        |approved: &&ApprovedCommand| !ids.iter().any(|id| approved.id.starts_with(id.as_str()));
    Ok(ApprovalsRecord { approved: record.approved.iter().filter(is_retained).cloned().collect() })
}

/// Fails if an id is shorter than [`SHORT_ID_LEN`] or matches no command.
fn require_known_ids(ids: &[String], is_known: impl Fn(&str) -> bool) -> Result<(), Failure> {
    match ids.iter().find(|id| id.len() < SHORT_ID_LEN || !is_known(id)) {
        Some(id) => Err(UsageError::UnknownCommandId { id: id.clone() }.into()),
        None => Ok(()),
    }
}

fn print_revoked(context: &CommandContext, args: &Approve, count: usize) {
    if context.ui.json {
        return;
    }
    context.ui.print_line(match (count, args.dry_run) {
        (0, _) => "nothing was approved".to_owned(),
        (n, false) => format!("took back the approval of {}", ui::pluralize(n, "command")),
        (n, true) => format!("would take back the approval of {}", ui::pluralize(n, "command")),
    });
}

fn print_list(context: &CommandContext, record: &ApprovalsRecord, pending: &[ShellCommand]) {
    if context.ui.json {
        return;
    }
    for ApprovedCommand { id, kind, command, at } in &record.approved {
        context.ui.print_line(format!("{}  {kind}  {command}  ({at})", short_id(id)));
    }
    for ShellCommand { id, kind, line, .. } in pending {
        context.ui.print_line(format!("{}  {kind}  {line}  (not approved)", short_id(id)));
    }
    if record.approved.is_empty() && pending.is_empty() {
        context.ui.status("nothing was approved");
    }
}

/// Prompts the user to approve the commands.
///
/// # Errors
/// [`UsageError::ApprovalRequired`] if the user cannot be prompted; also fails if they decline.
fn confirm_or_refuse(context: &CommandContext, args: &Approve) -> Result<(), Failure> {
    if cannot_prompt_user(context) {
        let source = if args.plan.is_empty() { "this repository's proq.toml" } else { "this plan" };
        return Err(
            UsageError::ApprovalRequired { origin: source, selection_args: args.selection_args() }.into()
        );
    }
    require_confirmation(APPROVE_QUESTION)
}

impl From<ShellCommand> for CommandRow {
    fn from(ShellCommand { id, kind, line, source_file: from, approved }: ShellCommand) -> CommandRow {
        CommandRow {
            id,
            kind: kind.into_owned(),
            command: line,
            source_file: from.map(|p| p.display().to_string()),
            approved,
        }
    }
}
