//! The `git proq approve` command.

use std::path::Path;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use proq_base::explain::shell_quote;
use proq_base::terminal_text;
use proq_lib::swarm::ops::approve;
use proq_lib::swarm::ops::approve::{ApprovalAction, ApproveOutcome, ApproveRequest, CommandRow};
use proq_lib::swarm::ops::named_plan::NamedPlan;
use proq_lib::types::ApprovedCommand;

use crate::cli::arguments::candidates::user_branch_names;
use crate::cli::arguments::plan_source::{FormatArg, PlanSource};
use crate::cli::invocation::approval_prompt::{APPROVE_QUESTION, print_commands, short_id};
use crate::cli::invocation::caller;
use crate::cli::invocation::confirm::{cannot_prompt_user, require_confirmation};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::ui;

/// Trust commands defined by this repository
///
/// The verify.commands, the lane.setup commands, the agent.allow, the merge.conflict_agent and the hooks of a proq.toml run
/// only after this, and changed ones must be approved again. What you approve is the command line and its
/// purpose, not the content of scripts that it starts. Each command has an ID; with IDs, only those are
/// approved or revoked. proq.toml is read from the main checkout. Its checks are those of the current
/// branch, or of --onto: if the main checkout shows another branch, as during a preview, or lacks the file,
/// those of the branch's last commit. Commands of your own settings and of --check need no approval.
///
/// A plan in a repository may also define commands: checks and criteria of its tasks. `git proq swarm` runs
/// it only once they are approved, with --plan.
///
/// Examples:
///     git proq approve
///     git proq approve --list
///     git proq approve 3f9c21aa
///     git proq approve --onto release
///     git proq approve --plan plan.toml
///     git proq approve --revoke 3f9c21aa
///     git proq approve --revoke
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Approve {
    /// Only these commands, by ID or the beginning of one
    #[arg(value_name = "ID", conflicts_with = "list")]
    pub(crate) ids: Vec<String>,
    /// Approve without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// List the commands of the repository, and all approvals
    #[arg(long, conflicts_with_all = ["yes", "revoke", "dry_run"])]
    pub(crate) list: bool,
    /// Revoke approvals: the given IDs, or all of this repository
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
    /// Approve the commands of this plan instead [can be repeated]
    #[arg(long, value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    pub(crate) plan: Vec<String>,
    /// Format of the plan: toml, folders, roadmap or stories
    #[arg(long, value_name = "FORM", hide_possible_values = true, requires = "plan")]
    pub(crate) format: Option<FormatArg>,
    /// Approve the checks of merges into BRANCH
    #[arg(long, value_name = "BRANCH", conflicts_with = "plan", add = ArgValueCompleter::new(user_branch_names))]
    pub(crate) onto: Option<String>,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl Approve {
    fn request(&self, dir: &Path) -> ApproveRequest {
        ApproveRequest {
            action: match (self.list, self.revoke) {
                (true, _) => ApprovalAction::List,
                (false, true) => ApprovalAction::Revoke,
                (false, false) => ApprovalAction::Approve,
            },
            ids: self.ids.clone(),
            plan: (!self.plan.is_empty())
                .then(|| PlanSource::from_names(&self.plan, self.format).named_plan(dir)),
            onto: self.onto.clone(),
        }
    }
}

pub(crate) fn run(context: &CommandContext, args: &Approve) -> CommandResult {
    let project = match args.list {
        true => context.project()?,
        false => context.project_for_write()?,
    };
    let request = args.request(&context.dir);
    if request.action == ApprovalAction::Approve {
        // An agent must not approve what it wants to run.
        caller::refuse_in_lane(context, &project)?;
    }
    let plan = approve::plan(&project, &request)?;
    let changed = plan.changed;
    if request.action == ApprovalAction::Approve {
        if !context.ui.json {
            print_commands(context, &plan.selected);
        }
        if changed > 0 && !args.dry_run && !args.yes {
            confirm_or_refuse(context, &request)?;
        }
    }
    let outcome = if args.dry_run { plan.preview() } else { plan.execute(&project)? };
    context.show(outcome, |context, outcome| {
        let commands = ui::pluralize(changed, "command");
        context.ui.print_line(match (request.action, changed) {
            (ApprovalAction::List, _) => return print_list(context, &outcome),
            (ApprovalAction::Revoke, 0) => "nothing was approved".to_owned(),
            (ApprovalAction::Revoke, _) if args.dry_run => {
                format!("would revoke the approval of {commands}")
            }
            (ApprovalAction::Revoke, _) => format!("revoked the approval of {commands}"),
            (ApprovalAction::Approve, 1..) if !args.dry_run => format!("approved {commands}"),
            (ApprovalAction::Approve, _) => return,
        });
    })
}

fn print_list(context: &CommandContext, outcome: &ApproveOutcome) {
    for ApprovedCommand { id, kind, command, at } in &outcome.approved {
        context.ui.print_line(format!("{}  {kind}  {command}  ({at})", short_id(id)));
    }
    let mut pending = outcome.commands.iter().filter(|row| !row.approved).peekable();
    if outcome.approved.is_empty() && pending.peek().is_none() {
        context.ui.status("nothing was approved");
    }
    for CommandRow { id, kind, command, .. } in pending {
        context.ui.print_line(format!("{}  {kind}  {command}  (not approved)", short_id(id)));
    }
}

/// Prompts the user to approve the commands.
///
/// # Errors
/// [`UsageError::ApprovalRequired`] if the user cannot be prompted; also fails if they decline.
fn confirm_or_refuse(context: &CommandContext, request: &ApproveRequest) -> Result<(), Failure> {
    if !cannot_prompt_user(context) {
        return require_confirmation(APPROVE_QUESTION);
    }
    let origin = if request.plan.is_some() { "this plan" } else { "this repository's proq.toml" };
    let plan = request.plan.as_ref().map(NamedPlan::approve_args);
    let onto = request.onto.iter().map(|branch| format!(" --onto {}", shell_quote(branch)));
    let ids = request.ids.iter().map(|id| format!(" {}", shell_quote(id)));
    let args = plan.into_iter().chain(onto).chain(ids).collect::<String>();
    Err(UsageError::ApprovalRequired { origin, selection_args: terminal_text::escape_line(&args) }.into())
}
