//! `git proq swarm`, and the hidden command that runs the scheduler of a batch.

mod event_lines;
mod follow;
mod prepare;
mod view;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

pub(super) use follow::{BatchFollower, follow};

use super::candidates::{agent_names, branch_names};
use super::plan_source::PlanSource;
use super::{
    CommandContext, CommandResult, Failure, UsageError, approval_prompt, caller, confirm, control, new_lane,
    plan, program_path,
};
use crate::explain::Exit;
use crate::health::examine;
use crate::lane::Project;
use crate::swarm::drafts::{self, Draft};
use crate::swarm::{self, BatchOutcome, BatchRecord, ControlRequestKind, DraftError, LoadedPlan};

/// Maximum number of a plan's tasks that the command prints with `--yes`.
const MAX_PLAN_TASKS_SHOWN: usize = 20;

/// Run a plan of dependent tasks, each in a lane
///
/// Each task is done by an agent in a lane of its own, as soon as what it needs has landed; tasks that are about the same files
/// share a lane, one after the other. What is done lands on the branch of this batch, `proq/batch-ID`, where the tasks that
/// need it start from; `git proq merge --batch ID` lands all of it on the base then, in one verified step. A task that conflicts
/// is given to an agent; one that fails is tried again, and what needs it is skipped.
///
/// The work goes on without this command and without this terminal: `git proq status` shows how far it is, `git proq pause`, `resume` and
/// `abort` are heard from anywhere, and `resume` also goes on with a batch whose process was killed. In its view, Ctrl-C asks
/// whether to pause, and a second one aborts.
///
/// Exits with 4 when a task failed, 3 when one conflicts, 1 when it was paused or aborted.
///
/// Examples:
///     git proq swarm plan.toml
///     git proq swarm auth billing --agent claude --max-parallel 4
///     git proq swarm ROADMAP.md --milestone 0.3 --waves --detach
///     git proq swarm plan.toml --auto-merge --on-task-failure stop-all --budget 20
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Swarm {
    #[command(flatten)]
    source: PlanSource,
    /// Who does tasks that name no agent [default: swarm.agent]
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(agent_names))]
    agent: Option<String>,
    /// The model of tasks that name none [default: agent.model]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The branch that all of it is for; the current one without it
    #[arg(long, value_name = "BRANCH", add = ArgValueCompleter::new(branch_names))]
    base: Option<String>,
    /// How many lanes may be at work at the same time [default: swarm.max_parallel]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    max_parallel: Option<u16>,
    /// Land what can be done at the same time together, and then go on
    #[arg(long, conflicts_with_all = ["phases", "one_lane"])]
    waves: bool,
    /// Land a phase together, and then go on with the next
    #[arg(long, conflicts_with = "one_lane")]
    phases: bool,
    /// Do the whole plan in one lane, one task after the other, and land it once
    #[arg(long)]
    one_lane: bool,
    /// Which lane a task goes to with --waves and --phases; otherwise most tasks get a lane of their own
    /// [default: swarm.strategy]
    #[arg(long, value_name = "HOW", value_parser = ["affinity-first", "round-robin", "load-balanced"])]
    strategy: Option<String>,
    /// Land tasks on the base itself as they are done, and not on a branch of the batch
    #[arg(long)]
    auto_merge: bool,
    /// When a task fails: skip what needs it, start nothing more, or stop all [default: swarm.on_task_failure]
    #[arg(long, value_name = "WHAT", value_parser = ["skip-dependents", "stop-wave", "stop-all"])]
    on_task_failure: Option<String>,
    /// When a task cannot land: pause or abort [default: swarm.on_merge_failure]
    #[arg(long, value_name = "WHAT", value_parser = ["pause", "abort"])]
    on_merge_failure: Option<String>,
    /// Pause once it has cost this many US dollars [default: swarm.budget]
    #[arg(long, value_name = "USD")]
    budget: Option<String>,
    /// Count it as failed, with exit code 4, unless all criteria of the plan are met in the end; `merge --batch` refuses it then
    /// [default: swarm.strict]
    #[arg(long)]
    strict: bool,
    /// Try this task again, however often it has failed; may be given again
    #[arg(long, value_name = "ID")]
    retry: Vec<String>,
    /// Begin a batch beside one of the same plan that is not over
    #[arg(long)]
    new: bool,
    /// Begin though changes that are not committed would be in no lane
    #[arg(long)]
    ignore_dirty: bool,
    /// Return once it has begun
    #[arg(long)]
    detach: bool,
    /// Keep FILE up to date with how far it is, in JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    progress_file: Option<PathBuf>,
    /// Begin without asking
    #[arg(long, short)]
    yes: bool,
    /// Say what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,
}

/// JSON output of a batch that was started but is not followed, and of a dry run.
#[derive(Serialize)]
struct BatchStarted<'a> {
    batch: &'a str,
    base: &'a str,
    branch: &'a str,
    dry_run: bool,
}

pub(super) fn run(session: &CommandContext, args: &Swarm) -> CommandResult {
    let project = session.project_for_write()?;
    let draft = args
        .source
        .draft_name(session, &project)
        .map(|name| drafts::read_draft(&project, name))
        .transpose()?;
    let loaded_plan = args.source.read_plan_or_draft(session, &project, "git proq swarm plan.toml")?;
    let batch_request = prepare::BatchRequest::from_args(session, &project, args, &loaded_plan)?;
    if let Some(unfinished) =
        batch_request.find_unfinished_batch(&project).filter(|_| !args.new && !args.dry_run)
    {
        return offer_to_resume(session, &project, args, &unfinished);
    }
    if !args.new && !args.dry_run {
        batch_request.require_last_batch_landed(&project)?;
    }
    let plan_summary =
        plan::compute_view(&project, &loaded_plan, args.source.source_names(), &batch_request.options)?;
    if !session.ui.json && !session.ui.quiet {
        // With `--yes` you have agreed already and do not read hundreds of tasks.
        let max_tasks = if args.yes && !args.dry_run { MAX_PLAN_TASKS_SHOWN } else { usize::MAX };
        session.ui.status(plan::render(&plan_summary, max_tasks));
        session.ui.status("");
        session.ui.status(batch_request.describe());
    }
    if args.dry_run {
        if session.ui.json {
            let (base, branch) = (batch_request.base.branch.as_str(), "");
            session.ui.print_json(BatchStarted { batch: "", base, branch, dry_run: true });
        } else {
            session.ui.print_line("nothing was begun");
        }
        return Ok(Exit::Success);
    }
    batch_request.require_clean(&project, args.ignore_dirty)?;
    warn_of_health_problems(session);
    confirm_batch(session, &project, args, &batch_request, &loaded_plan, draft)?;
    let program_path = program_path::current_program_path()?;
    let batch =
        batch_request.start(&project, args, &loaded_plan, plan_summary.shared_lanes(), &program_path)?;
    new_lane::register_repository(&project);
    if args.detach {
        print_started(session, &batch);
        return Ok(Exit::Success);
    }
    session.ui.status(format!("batch {}", batch.id));
    follow(session, &project, BatchFollower::from_start(&project, &batch.id)?)
}

/// Warns of the problems that `git proq doctor` finds: a plan runs for hours, and what is wrong now is still
/// wrong then.
fn warn_of_health_problems(session: &CommandContext) {
    for finding in examine(&session.dir, false).findings.iter().filter(|finding| finding.is_problem()) {
        let help_suffix = finding.help.as_ref().map(|help| format!(": {help}")).unwrap_or_default();
        session.ui.warn(format!("{}{help_suffix}", finding.message));
    }
}

/// Requires all approvals that the batch needs: of the checks of its landings, of the commands in its plan,
/// and of the run itself. Approves the draft that the plan comes from, if it is not approved yet.
fn confirm_batch(
    session: &CommandContext,
    project: &Project,
    args: &Swarm,
    batch_request: &prepare::BatchRequest,
    loaded_plan: &LoadedPlan,
    draft: Option<Draft>,
) -> Result<(), Failure> {
    let base = batch_request.base.branch.clone();
    approval_prompt::confirm_before_landing(
        session,
        project,
        [base],
        project.settings.conflict_agent.as_deref(),
    )?;
    let plan_commands = || swarm::collect_plan_commands(project, loaded_plan, &session.dir);
    approval_prompt::confirm_commands(session, project, &plan_commands()?)?;
    batch_request.require_approved(project, args, &plan_commands()?)?;
    let draft = draft.filter(|draft| !drafts::is_approved(project, draft));
    confirm_run(session, args, draft.as_ref())?;
    if let Some(draft) = &draft {
        caller::refuse_in_lane(session, project)?;
        drop(drafts::approve(project, draft)?);
        if args.yes {
            let name = &draft.record.name;
            session.ui.status(format!("the plan '{name}', which an agent made, is approved by --yes"));
        }
    }
    Ok(())
}

/// Requires the user's agreement to run the plan. A plan drafted by an agent is refused if nobody can be
/// prompted and `--yes` is missing.
fn confirm_run(session: &CommandContext, args: &Swarm, draft: Option<&Draft>) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    match (confirm::cannot_prompt_user(session), draft) {
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
        (false, _) if confirm::is_confirmed_by_default("run it? [Y/n] ") => Ok(()),
        (false, _) => Err(UsageError::Declined.into()),
    }
}

fn print_started(session: &CommandContext, batch: &BatchRecord) {
    if session.ui.json {
        let BatchRecord { id, base, branch, .. } = batch;
        return session.ui.print_json(BatchStarted { batch: id, base, branch, dry_run: false });
    }
    session.ui.print_line(format!("batch {} has begun", batch.id));
    session
        .ui
        .hint(format!("see how far it is: git proq status {0}   follow it: git proq resume {0}", batch.id));
}

/// Prompts whether to resume an unfinished batch of the same plan, and resumes it. Fails if the user declines
/// or cannot be prompted.
fn offer_to_resume(
    session: &CommandContext,
    project: &Project,
    args: &Swarm,
    unfinished: &(BatchRecord, String),
) -> CommandResult {
    let (batch, state) = unfinished;
    let id = batch.id.clone();
    if confirm::cannot_prompt_user(session) {
        return Err(
            swarm::Error::from(swarm::BatchError::PlanBatchUnfinished { id, state: state.clone() }).into()
        );
    }
    if !confirm::is_confirmed_by_default(&format!(
        "batch {id} of this plan is not over ({state}): go on with it? [Y/n] "
    )) {
        return Err(
            swarm::Error::from(swarm::BatchError::PlanBatchUnfinished { id, state: state.clone() }).into()
        );
    }
    let mut requests = vec![ControlRequestKind::Resume];
    let loaded_batch = swarm::Batch::load(project, &id)?;
    for name in &args.retry {
        requests.push(ControlRequestKind::Retry { task: loaded_batch.find_task(name)? });
    }
    let follower = BatchFollower::from_now(project, &id)?;
    swarm::submit_batch_requests(project, &id, &program_path::current_program_path()?, requests)?;
    if args.detach {
        print_started(session, batch);
        return Ok(Exit::Success);
    }
    follow(session, project, follower)
}

/// Returns the exit code for the outcome of a batch and of its criteria.
fn batch_exit(project: &Project, batch: &swarm::Batch, state: &swarm::State) -> Exit {
    let record = &batch.record;
    let has_unmet_criteria = || {
        record.strict
            && !record.criteria.is_empty()
            && !record.criteria_report(project).is_some_and(|report| report.are_all_met())
    };
    match tasks_exit(state, batch.tasks.len()) {
        Exit::Success if has_unmet_criteria() => Exit::Agent,
        exit => exit,
    }
}

fn tasks_exit(state: &swarm::State, tasks: usize) -> Exit {
    let outcomes: Vec<swarm::TaskOutcome> = (0..tasks).filter_map(|task| state.task_outcome(task)).collect();
    let is_conflict = |outcome: &swarm::TaskOutcome| {
        matches!(outcome, swarm::TaskOutcome::Failed(swarm::FailureReason::ConflictUnresolved))
    };
    let is_failure = |outcome: &swarm::TaskOutcome| {
        use swarm::TaskOutcome::{Failed, NoChange, SetAside};
        matches!(outcome, NoChange | SetAside | Failed(_)) && !is_conflict(outcome)
    };
    match state.final_outcome() {
        Some(BatchOutcome::Complete) => Exit::Success,
        Some(BatchOutcome::Aborted) => Exit::Refused,
        _ if outcomes.iter().any(is_failure) => Exit::Agent,
        _ if outcomes.iter().any(is_conflict) => Exit::Conflicts,
        _ => Exit::Refused,
    }
}

/// Sends a control request of the terminal view to the batch.
fn send_request(project: &Project, id: &str, kind: ControlRequestKind) -> Result<(), Failure> {
    control::send_request(project, id, kind)
}
