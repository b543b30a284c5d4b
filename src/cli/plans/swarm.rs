//! The `git proq swarm` command.

use proq_base::explain::Exit;
use proq_lib::health::examine::examine;
use proq_lib::lane::Project;
use proq_lib::swarm;
use proq_lib::swarm::batch::control_request::ControlRequestKind;
use proq_lib::swarm::batch::record::BatchRecord;
use proq_lib::swarm::batch::{error, plan_commands, record};
use proq_lib::swarm::planner::draft_error::DraftError;
use proq_lib::swarm::planner::drafts;
use proq_lib::swarm::planner::drafts::Draft;
use proq_lib::swarm::run::control_requests;
use proq_plan::plan_source::LoadedPlan;
use serde::Serialize;

use super::batch_follower::BatchFollower;
use super::batch_request::BatchRequest;
use super::follow_batch::follow;
use super::plan_text::render;
use super::plan_view::compute_view;
use super::swarm_args::Swarm;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::invocation::{approval_prompt, caller, confirm};
use crate::cli::lanes::new_lane;

/// Maximum number of a plan's tasks that the command prints with `--yes`.
const MAX_PLAN_TASKS_SHOWN: usize = 20;

/// JSON output of a batch that was started but is not followed, and of a dry run.
#[derive(Serialize)]
struct StartedBatchOutput<'a> {
    batch: &'a str,
    base: &'a str,
    branch: &'a str,
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Swarm) -> CommandResult {
    let project = context.project_for_write()?;
    let draft = args
        .source
        .draft_name(context, &project.store)
        .map(|name| drafts::read_draft(&project.store, name))
        .transpose()?;
    let loaded_plan = args.source.read_plan_or_draft(context, &project, "git proq swarm plan.toml")?;
    let batch_request = BatchRequest::from_args(context, &project, args, &loaded_plan)?;
    if let Some(unfinished) =
        batch_request.find_unfinished_batch(&project).filter(|_| !args.new && !args.dry_run)
    {
        return prompt_and_resume(context, &project, args, &unfinished);
    }
    if !args.new && !args.dry_run {
        batch_request.require_last_batch_landed(&project)?;
    }
    let plan_summary =
        compute_view(&project, &loaded_plan, args.source.source_names(), &batch_request.options)?;
    if !context.ui.json && !context.ui.quiet {
        // With `--yes` you have agreed already and do not read hundreds of tasks.
        let max_tasks = if args.yes && !args.dry_run { MAX_PLAN_TASKS_SHOWN } else { usize::MAX };
        context.ui.status(render(&plan_summary, max_tasks));
        context.ui.status("");
        context.ui.status(batch_request.describe_landing());
    }
    if args.dry_run {
        if context.ui.json {
            let (base, branch) = (batch_request.base.branch.as_str(), "");
            context.ui.print_json(StartedBatchOutput { batch: "", base, branch, dry_run: true });
        } else {
            context.ui.print_line("nothing was begun");
        }
        return Ok(Exit::Success);
    }
    batch_request.require_clean(&project.repo, args.ignore_dirty)?;
    warn_of_health_problems(context);
    require_batch_approvals(context, &project, args, &batch_request, &loaded_plan, draft)?;
    // No batch is recorded whose scheduler could not be started.
    project.git_proq_path()?;
    let batch = batch_request.create_and_start(&project, args, &loaded_plan, plan_summary.shared_lanes())?;
    new_lane::register_repository(&project);
    if args.detach {
        print_started(context, &batch);
        return Ok(Exit::Success);
    }
    context.ui.status(format!("batch {}", batch.id));
    follow(context, &project, BatchFollower::from_start(&project.store, &batch.id)?)
}

/// Warns of the problems that `git proq doctor` finds: a plan runs for hours, and what is wrong now is still
/// wrong then.
fn warn_of_health_problems(context: &CommandContext) {
    for finding in examine(&context.dir, false).findings.iter().filter(|finding| finding.is_problem()) {
        let help_suffix = finding.help.as_ref().map(|help| format!(": {help}")).unwrap_or_default();
        context.ui.warn(format!("{}{help_suffix}", finding.message));
    }
}

/// Requires all approvals that the batch needs: of the checks of its landings, of the commands in its plan,
/// and of the run itself. Approves the draft that the plan comes from, if it is not approved yet.
fn require_batch_approvals(
    context: &CommandContext,
    project: &Project,
    args: &Swarm,
    batch_request: &BatchRequest,
    loaded_plan: &LoadedPlan,
    draft: Option<Draft>,
) -> Result<(), Failure> {
    let base = batch_request.base.branch.clone();
    approval_prompt::prompt_landing_approvals(
        context,
        project,
        [base],
        project.settings.conflict_agent.as_deref(),
    )?;
    let plan_commands = || plan_commands::collect_plan_commands(project, loaded_plan, &context.dir);
    approval_prompt::prompt_for_approval(context, project, &plan_commands()?)?;
    batch_request.require_approved(project, args, &plan_commands()?)?;
    let draft = draft.filter(|draft| !drafts::is_approved(&project.repo, draft));
    require_run_confirmation(context, args, draft.as_ref())?;
    if let Some(draft) = &draft {
        caller::refuse_in_lane(context, project)?;
        drop(drafts::approve(project, draft)?);
        if args.yes {
            let name = &draft.record.name;
            context.ui.status(format!("the plan '{name}', which an agent made, is approved by --yes"));
        }
    }
    Ok(())
}

/// Requires the user's agreement to run the plan. A plan drafted by an agent is refused if nobody can be
/// prompted and `--yes` is missing.
fn require_run_confirmation(
    context: &CommandContext,
    args: &Swarm,
    draft: Option<&Draft>,
) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    match (confirm::cannot_prompt_user(context), draft) {
        (true, Some(draft)) => {
            let name = &draft.record.name;
            let subject = format!("the plan '{name}', which an agent made, may be run");
            Err(DraftError::ApprovalRequired {
                question: subject,
                approve_command: format!("git proq plan --approve {name}"),
            }
            .into())
        }
        (true, None) => Ok(()),
        (false, _) if confirm::prompt_yes_by_default("run it? [Y/n] ") => Ok(()),
        (false, _) => Err(UsageError::Declined.into()),
    }
}

fn print_started(context: &CommandContext, batch: &BatchRecord) {
    if context.ui.json {
        let BatchRecord { id, base, branch, .. } = batch;
        return context.ui.print_json(StartedBatchOutput {
            batch: id.as_str(),
            base,
            branch,
            dry_run: false,
        });
    }
    context.ui.print_line(format!("batch {} has begun", batch.id));
    context
        .ui
        .hint(format!("see how far it is: git proq status {0}   follow it: git proq resume {0}", batch.id));
}

/// Prompts whether to resume an unfinished batch of the same plan, and resumes it. `unfinished` is the batch
/// and a word for its state. Fails if the user declines or cannot be prompted.
fn prompt_and_resume(
    context: &CommandContext,
    project: &Project,
    args: &Swarm,
    unfinished: &(BatchRecord, String),
) -> CommandResult {
    let (batch, state) = unfinished;
    let id = batch.id.clone();
    if confirm::cannot_prompt_user(context) {
        return Err(
            swarm::Error::from(error::BatchError::PlanBatchUnfinished { id, state: state.clone() }).into()
        );
    }
    if !confirm::prompt_yes_by_default(&format!(
        "batch {id} of this plan is not over ({state}): go on with it? [Y/n] "
    )) {
        return Err(
            swarm::Error::from(error::BatchError::PlanBatchUnfinished { id, state: state.clone() }).into()
        );
    }
    let mut requests = vec![ControlRequestKind::Resume];
    let loaded_batch = record::Batch::load(&project.store, &id)?;
    for name in &args.retry {
        requests.push(ControlRequestKind::Retry { task: loaded_batch.find_task(name)? });
    }
    let follower = BatchFollower::from_now(&project.store, &id)?;
    control_requests::submit_requests(project, &id, requests)?;
    if args.detach {
        print_started(context, batch);
        return Ok(Exit::Success);
    }
    follow(context, project, follower)
}
