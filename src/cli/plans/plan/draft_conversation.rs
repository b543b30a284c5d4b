//! Conversations in which an agent creates or changes a draft, and the output about drafts.

use std::path::Path;

use proq_base::explain::Exit;
use proq_base::terminal_text;
use proq_git::Repo;
use proq_lib::lane::Project;
use proq_lib::swarm::planner::agent_query::AgentQuery;
use proq_lib::swarm::planner::draft_error::DraftError;
use proq_lib::swarm::planner::draft_session::{AnswerOutcome, DraftRequest, DraftSession};
use proq_lib::swarm::planner::drafts::Draft;
use proq_lib::swarm::planner::prompt::SourceFile;
use proq_lib::swarm::planner::{agent_query, draft_session, drafts};
use proq_plan::plan::Plan;
use proq_plan::plan_diff::{PlanChange, diff_plans};
use proq_store::Store;
use proq_store::records::lane::{AnyLane, LanePurpose};
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use super::draft_list::DraftRow;
use super::plan_file::{OutputFile, write_draft_plan};
use super::{json_output, tree};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::lanes::new_lane;
use crate::cli::plans::plan_args::PlanArgs;
use crate::cli::plans::plan_view::compute_view;
use crate::cli::runs::answer_loop::{AnswerHandler, follow_until_answered};
use crate::cli::terminal::{ui, usage};

/// Maximum size of the file given with `--from`, in bytes.
const MAX_SOURCE_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// JSON output about a draft: the plan as for any other source, and the draft's own data.
#[derive(Serialize)]
struct DraftOutput<'a> {
    draft: DraftRow,
    /// Changes from the plan before; empty for a new draft.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    changes: &'a [PlanChange],
    /// Path of the file that the plan was written to.
    #[serde(rename = "saved", skip_serializing_if = "Option::is_none")]
    saved_path: Option<String>,
    #[serde(flatten)]
    plan: json_output::PlanOutput,
}

/// JSON output of a dry run: the command and the prompt.
#[derive(Serialize)]
struct DryRunOutput<'a> {
    agent: &'a str,
    command: String,
    prompt: &'a str,
    dry_run: bool,
}

/// Has an agent create a draft for `goal`.
pub(crate) fn create_draft(
    context: &CommandContext,
    args: &PlanArgs,
    goal: &str,
    target: Option<&OutputFile>,
) -> CommandResult {
    let draft_args = &args.draft_args;
    if goal.trim().is_empty() {
        let example = "git proq plan --ai \"payments by card\"";
        return Err(UsageError::MissingArgument { problem: "the plan needs a goal", example }.into());
    }
    let source_file = draft_args.from.as_deref().map(|file| read_source_file(context, file)).transpose()?;
    let project = context.project_for_write()?;
    let agent = agent_query::choose_read_only_agent(&project, draft_args.agent.as_deref())?;
    let model = draft_args.model.as_deref();
    let query =
        AgentQuery { project: &project, agent: &agent, model, purpose: LanePurpose::Plan, revision: None };
    let request = DraftRequest::new(query, goal, source_file.as_ref())?;
    if let Some(worktree) = project.repo.current_worktree()
        && let Some(names) = new_lane::changed_file_names(&project.repo, worktree)?
    {
        context.ui.warn(format!("the plan is made without your uncommitted changes ({names})"));
    }
    if draft_args.dry_run {
        print_dry_run(context, &request, &agent);
        return Ok(Exit::Success);
    }
    let (draft_session, lane) = request.start()?;
    new_lane::register_repository(&project);
    context.ui.status(format!("{agent} makes a plan: draft '{}'", draft_session.record.name));
    await_and_show_draft(context, &project, args, draft_session, (lane, None), target)
}

/// Has the agent of a draft change its plan.
pub(crate) fn change_draft(
    context: &CommandContext,
    args: &PlanArgs,
    text: &str,
    target: Option<&OutputFile>,
) -> CommandResult {
    if text.trim().is_empty() {
        let example = "git proq plan --feedback \"the migration goes first\"";
        return Err(
            UsageError::MissingArgument { problem: "there is nothing to say to the plan", example }.into()
        );
    }
    let project = context.project_for_write()?;
    let name = args.resolve_draft_name(&project)?;
    let (draft, is_busy) = draft_session::refresh_draft(&project, &name)?;
    if is_busy {
        return Err(DraftError::AgentRunning { name }.into());
    }
    let mut draft_session = DraftSession::open(&project, &name)?;
    let lane = draft_session.send_feedback(text)?;
    context.ui.status(format!("{} changes draft '{name}'", draft_session.record.agent));
    let previous_plan = draft.plan.map(|plan| plan.loaded.plan);
    await_and_show_draft(context, &project, args, draft_session, (lane, previous_plan), target)
}

/// Reads the file given with `--from`.
fn read_source_file(context: &CommandContext, file: &Path) -> Result<SourceFile, Failure> {
    let unreadable = |source| UsageError::Unreadable { path: file.to_owned(), source };
    let bytes = proq_base::regular_file::read_user_file(&context.dir.join(file), MAX_SOURCE_FILE_BYTES)
        .map_err(unreadable)?;
    let is_text = |text: &String| !text.contains('\0');
    let text = String::from_utf8(bytes).ok().filter(is_text);
    let text = text.ok_or_else(|| unreadable(std::io::Error::other("it is no text in UTF-8")))?;
    Ok(SourceFile { name: terminal_text::escape_line(&file.display().to_string()), text })
}

fn print_dry_run(context: &CommandContext, request: &DraftRequest<'_>, agent: &str) {
    if context.ui.json {
        let (command, prompt) = (request.command.display_command_line(), request.prompt.as_str());
        context.ui.print_json(DryRunOutput { agent, command, prompt, dry_run: true });
        return;
    }
    context.ui.print_line(format!(
        "would start {}; it would be told:\n",
        terminal_text::escape_line(&request.command.display_command_line())
    ));
    for line in terminal_text::escape_lines(&request.prompt) {
        context.ui.print_line(line);
    }
}

/// Handler of the agent's answers, for a new draft and for a change.
struct DraftAnswerHandler<'m, 'a> {
    draft_session: &'m mut DraftSession<'a>,
    store: &'a Store,
    /// Whether the conversation was already restarted once.
    was_restarted: bool,
}

impl AnswerHandler for DraftAnswerHandler<'_, '_> {
    fn agent_name(&self) -> &str {
        &self.draft_session.record.agent
    }

    fn expected_answer(&self) -> &'static str {
        "a plan"
    }

    fn process_answer(&mut self, lane: &AnyLane, state: LaneState) -> Result<AnswerOutcome, Failure> {
        Ok(self.draft_session.record_answer(lane, state)?)
    }

    fn retry(&mut self, lane: &AnyLane, outcome: &AnswerOutcome) -> Result<Option<AnyLane>, Failure> {
        match outcome {
            AnswerOutcome::Invalid { reason, answer } => {
                Ok(Some(self.draft_session.reject_answer(lane, answer, reason)?))
            }
            // The agent may have lost the conversation.
            AnswerOutcome::NoAnswer { .. }
                if !self.was_restarted && agent_query::failed_to_resume(self.store, lane) =>
            {
                self.was_restarted = true;
                Ok(Some(self.draft_session.retry_feedback(lane)?))
            }
            _ => Ok(None),
        }
    }
}

/// Follows the conversation until the agent answers with a plan, saves the plan to `target`, and shows it.
/// `previous_plan` is the plan before a change.
fn await_and_show_draft<'a>(
    context: &CommandContext,
    project: &'a Project,
    args: &PlanArgs,
    mut draft_session: DraftSession<'a>,
    (lane, previous_plan): (AnyLane, Option<Plan>),
    target: Option<&OutputFile>,
) -> CommandResult {
    let mut conversation =
        DraftAnswerHandler { draft_session: &mut draft_session, store: &project.store, was_restarted: false };
    let (lane, outcome) = follow_until_answered(context, project, lane, &mut conversation)?;
    if let AnswerOutcome::Invalid { reason, .. } | AnswerOutcome::NoAnswer { reason } = outcome {
        return Err(DraftError::InvalidAnswer {
            agent: draft_session.record.agent.clone(),
            expected: "a plan",
            reason: terminal_text::escape_line(&reason),
            answer_file: draft_session.answer_file(&lane),
            lane: lane.name,
            is_draft: true,
        }
        .into());
    }
    let name = draft_session.record.name.clone();
    let draft = drafts::read_draft(&project.store, &name)?;
    let changed = match (&previous_plan, &draft.plan) {
        (Some(before), Some(plan)) => diff_plans(before, &plan.loaded.plan),
        _ => Vec::new(),
    };
    let saved = match target {
        Some(target) => Some(write_draft_plan(context, &project.store, args, &draft, target)?),
        None => None,
    };
    if context.ui.json {
        let saved = saved.map(|path| proq_store::paths::path_form::to_text(&path));
        return print_json(context, project, args, &draft, (&changed, saved));
    }
    show_draft(context, project, args, &draft, &changed)?;
    if previous_plan.is_some() && changed.is_empty() {
        context.ui.status("the plan is as it was");
    }
    if saved.is_some() {
        context.ui.status(format!("wrote {}", args.draft_args.output_file_text()));
    }
    context.ui.hint(format!(
        "change it: git proq plan --feedback \"…\" {name}   keep it: git proq plan -o plan.toml {name}"
    ));
    Ok(Exit::Success)
}

/// Shows a saved draft.
pub(crate) fn show_saved_draft(
    context: &CommandContext,
    project: &Project,
    args: &PlanArgs,
    name: &str,
) -> CommandResult {
    let draft = drafts::read_draft(&project.store, name)?;
    show_draft(context, project, args, &draft, &[])?;
    let is_busy = draft_session::is_agent_busy(project, &draft.record)?;
    if is_busy && !context.ui.json {
        context.ui.status(format!("{} is at work on it", terminal_text::escape_line(&draft.record.agent)));
        context.ui.hint(format!("wait for it: git proq wait {name}"));
    } else if let (Some(rejection), false) = (&draft.record.invalid_answer_reason, context.ui.json) {
        context
            .ui
            .warn(format!("what was answered last is no plan: {}", terminal_text::escape_line(rejection)));
    }
    Ok(Exit::Success)
}

/// Shows a draft's plan as a tree, with the changes in it.
pub(crate) fn show_draft(
    context: &CommandContext,
    project: &Project,
    args: &PlanArgs,
    draft: &Draft,
    changed: &[PlanChange],
) -> CommandResult {
    if context.ui.json {
        return print_json(context, project, args, draft, (changed, None));
    }
    let Some(plan) = &draft.plan else { return Ok(Exit::Success) };
    let view = compute_view(project, &plan.loaded, &[], &args.batch_options(&project.settings.swarm))?;
    context.ui.print_line(tree::render(&view, &header_lines(&project.repo, draft)));
    if !changed.is_empty() {
        context.ui.print_line("\nWhat has changed:");
        for change in changed {
            context.ui.print_line(format!("  {}", describe_change(change)));
        }
    }
    Ok(Exit::Success)
}

fn print_json(
    context: &CommandContext,
    project: &Project,
    args: &PlanArgs,
    draft: &Draft,
    (changes, saved): (&[PlanChange], Option<String>),
) -> CommandResult {
    let name = draft.record.name.clone();
    let Some(plan) = &draft.plan else {
        return Err(DraftError::NoPlan { name, why: draft.record.invalid_answer_reason.clone() }.into());
    };
    let sources = [name];
    let view = compute_view(project, &plan.loaded, &sources, &args.batch_options(&project.settings.swarm))?;
    let is_busy = draft_session::is_agent_busy(project, &draft.record)?;
    let row = DraftRow::from_draft(draft, drafts::is_approved(&project.repo, draft), is_busy);
    context.ui.print_ordered_json(DraftOutput {
        draft: row,
        changes,
        saved_path: saved,
        plan: json_output::build_output(&view),
    });
    Ok(Exit::Success)
}

/// Returns lines about a draft: its agent, its approval, and the usage of planning.
fn header_lines(repo: &Repo, draft: &Draft) -> Vec<String> {
    let record = &draft.record;
    let is_approved = drafts::is_approved(repo, draft);
    let state = if is_approved { "approved" } else { "not approved" };
    let model = record.model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
    let mut out = vec![format!("draft {}, by {}{model}, {state}", record.name, record.agent)];
    let costs = record.past_costs.plus(record.costs);
    let mut spent = vec![ui::pluralize(costs.runs as usize, "run"), ui::short_duration(costs.duration)];
    spent.extend(costs.tokens.map(usage::tokens_text));
    spent.extend(costs.cost.map(usage::cost_text));
    out.push(format!("planning took {}", spent.join(", ")));
    out
}

fn describe_change(change: &PlanChange) -> String {
    match change {
        PlanChange::Added { task } => format!("+ {}", terminal_text::escape_line(task)),
        PlanChange::Removed { task } => format!("- {}", terminal_text::escape_line(task)),
        PlanChange::Changed { task, fields: what } => {
            format!("~ {} ({})", terminal_text::escape_line(task), what.join(", "))
        }
        PlanChange::Plan { component: what } => format!("~ {what}"),
    }
}
