//! Commands about drafts, `git proq plan` with `--ai`, `--feedback`, `--approve`, `-o` and `--drafts`.

use proq_base::explain::Exit;
use proq_base::hint;
use proq_base::terminal_text;
use proq_lib::lane::Project;
use proq_lib::swarm::ops::draft_approval::ApproveDraftRequest;
use proq_lib::swarm::ops::draft_plans::{
    ChangeDraftRequest, DraftOutcome, DraftUse, MakeDraftPlan, MakeDraftRequest,
};
use proq_lib::swarm::ops::draft_view::{DraftRow, DraftView, list_drafts};
use proq_lib::swarm::ops::named_plan::NamedPlan;
use proq_lib::swarm::ops::plan_file::{OutputFile, read_source_file, save_plan};
use proq_lib::swarm::ops::{draft_approval, draft_plans};
use proq_plan::plan_diff::PlanChange;
use proq_plan::schedule::options::BatchOptions;

use super::tree;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::plans::plan_args::PlanArgs;
use crate::cli::runs::follow_run::follow_quietly;
use crate::cli::terminal::table::Column;
use crate::cli::terminal::{table, ui, usage};

pub(crate) fn run(context: &CommandContext, args: &PlanArgs) -> CommandResult {
    let draft_args = &args.draft_args;
    if draft_args.drafts {
        return print_drafts(context);
    }
    // An unusable output file is refused before an agent spends anything.
    let target = draft_args.save.as_ref();
    let target = target.map(|file| OutputFile::check(&context.dir, file, draft_args.force)).transpose()?;
    if let Some(goal) = &draft_args.ai {
        return make_draft(context, args, goal, target);
    }
    if let Some(text) = &draft_args.feedback {
        return change_draft(context, args, text, target);
    }
    let project = context.project_for_write()?;
    let Some(target) = target else { return approve_draft(context, &project, args) };
    let saved = save_plan(&project, &args.source.named_plan(&context.dir), &target)?;
    context.show(saved, |context, _| {
        let file = &target.display_name;
        context.ui.print_line(format!("wrote {file}"));
        context.ui.hint(hint!("show it: git proq plan {file}"));
    })
}

/// Has an agent create a draft for `goal`.
fn make_draft(
    context: &CommandContext,
    args: &PlanArgs,
    goal: &str,
    target: Option<OutputFile>,
) -> CommandResult {
    let draft_args = &args.draft_args;
    require_text(goal, "the plan needs a goal", "git proq plan --ai \"payments by card\"")?;
    let source_file =
        draft_args.from.as_ref().map(|file| read_source_file(&context.dir, file)).transpose()?;
    let project = context.project_for_write()?;
    let request = MakeDraftRequest {
        goal: goal.to_owned(),
        source_file,
        agent: draft_args.agent.clone(),
        model: draft_args.model.clone(),
        draft_use: DraftUse { target, options: args.batch_options(&project.settings.swarm) },
    };
    let plan = draft_plans::plan_new(&project, &request)?;
    if draft_args.dry_run {
        return context.show(plan, |context, plan| print_dry_run(context, &plan));
    }
    let outcome = plan.execute(&project, context, &|lane| follow_quietly(context, &project, lane))?;
    Ok(print_changed_draft(context, &outcome))
}

/// Has the agent of a draft change its plan.
fn change_draft(
    context: &CommandContext,
    args: &PlanArgs,
    text: &str,
    target: Option<OutputFile>,
) -> CommandResult {
    let example = "git proq plan --feedback \"the migration goes first\"";
    require_text(text, "the feedback is empty", example)?;
    let project = context.project_for_write()?;
    let request = ChangeDraftRequest {
        plan: single_draft(context, args)?,
        feedback: text.to_owned(),
        draft_use: DraftUse { target, options: args.batch_options(&project.settings.swarm) },
    };
    let plan = draft_plans::plan_change(&project, &request)?;
    let outcome = plan.execute(&project, context, &|lane| follow_quietly(context, &project, lane))?;
    Ok(print_changed_draft(context, &outcome))
}

/// Shows a draft and approves it for running, after a confirmation prompt or with `--yes`.
fn approve_draft(context: &CommandContext, project: &Project, args: &PlanArgs) -> CommandResult {
    let request = ApproveDraftRequest {
        plan: single_draft(context, args)?,
        is_confirmed: args.draft_args.yes,
        options: args.batch_options(&project.settings.swarm),
        calling_lane: caller::calling_lane(context, project),
    };
    let plan = draft_approval::plan(project, &request)?;
    if !context.ui.json {
        print_draft(context, &plan.view);
    }
    let approved = plan.execute(project, context)?;
    if context.ui.json {
        context.ui.print_ordered_json(approved);
    } else {
        context.ui.print_line(format!("\napproved draft '{}'", approved.row.name));
    }
    Ok(Exit::Success)
}

/// Refuses a blank text, which an agent would be given.
fn require_text(text: &str, problem: &'static str, example: &'static str) -> Result<(), UsageError> {
    match text.trim().is_empty() {
        true => Err(UsageError::MissingArgument { problem, example }),
        false => Ok(()),
    }
}

/// Returns the draft that was named; no source if none was.
fn single_draft(context: &CommandContext, args: &PlanArgs) -> Result<NamedPlan, UsageError> {
    let plan = args.source.named_plan(&context.dir);
    match plan.sources.len() {
        0 | 1 => Ok(plan),
        _ => Err(UsageError::MissingArgument {
            problem: "one draft at a time",
            example: "git proq plan --approve plan-payments",
        }),
    }
}

fn print_dry_run(context: &CommandContext, plan: &MakeDraftPlan) {
    let command = terminal_text::escape_line(&plan.request.command.display_command_line());
    context.ui.print_line(format!("would start {command} with this prompt:\n"));
    terminal_text::escape_lines(&plan.request.prompt).for_each(|line| context.ui.print_verbatim(line));
}

/// Prints a draft after its agent has answered.
fn print_changed_draft(context: &CommandContext, outcome: &DraftOutcome) -> Exit {
    if context.ui.json {
        context.ui.print_ordered_json(outcome);
        return Exit::Success;
    }
    let view = &outcome.view;
    print_draft(context, view);
    if outcome.had_plan && view.changes.is_empty() {
        context.ui.status("the plan is unchanged");
    }
    if let Some(file) = &outcome.output_file {
        context.ui.status(format!("wrote {file}"));
    }
    let name = &view.row.name;
    context.ui.hint(hint!("revise it: git proq plan --feedback \"what to change\" {name}"));
    context.ui.hint(hint!("save it: git proq plan -o plan.toml {name}"));
    Exit::Success
}

/// Shows a saved draft.
pub(crate) fn show_saved_draft(
    context: &CommandContext,
    project: &Project,
    name: &str,
    options: &BatchOptions,
) -> CommandResult {
    let view = DraftView::read(project, name, options)?;
    if context.ui.json {
        context.ui.print_ordered_json(view);
        return Ok(Exit::Success);
    }
    print_draft(context, &view);
    if view.is_busy() {
        context.ui.status(format!("{} is working on it", terminal_text::escape_line(&view.row.agent)));
        context.ui.hint(hint!("wait for it: git proq wait {name}"));
    } else if let Some(rejection) = &view.row.rejection {
        let rejection = terminal_text::escape_line(rejection);
        context.ui.warn(format!("the last answer is not a plan: {rejection}"));
    }
    Ok(Exit::Success)
}

/// Prints a draft's plan as a tree, with the changes in it.
fn print_draft(context: &CommandContext, view: &DraftView) {
    context.ui.print_line(tree::render(&view.plan, &header_lines(view)));
    if !view.changes.is_empty() {
        context.ui.print_line("\nWhat has changed:");
        for change in &view.changes {
            context.ui.print_line(format!("  {}", describe_change(change)));
        }
    }
}

/// Returns lines about a draft: its agent, its approval, and the usage of planning.
fn header_lines(view: &DraftView) -> Vec<String> {
    let row = &view.row;
    let state = if view.is_approved { "approved" } else { "not approved" };
    let model = row.model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
    let costs = row.costs;
    let mut spent = vec![ui::pluralize(costs.runs as usize, "run"), ui::short_duration(costs.duration)];
    spent.extend(costs.tokens.map(usage::tokens_text));
    spent.extend(costs.cost.map(usage::cost_text));
    vec![
        format!("draft {}, by {}{model}, {state}", row.name, row.agent),
        format!("planning took {}", spent.join(", ")),
    ]
}

fn describe_change(change: &PlanChange) -> String {
    let escape = terminal_text::escape_line;
    match change {
        PlanChange::Added { task } => format!("+ {}", escape(task)),
        PlanChange::Removed { task } => format!("- {}", escape(task)),
        PlanChange::Changed { task, fields } => format!("~ {} ({})", escape(task), fields.join(", ")),
        PlanChange::Plan { component } => format!("~ {component}"),
    }
}

fn print_drafts(context: &CommandContext) -> CommandResult {
    context.show(list_drafts(&context.project()?)?, |context, list| {
        if list.drafts.is_empty() {
            context.ui.status("no drafts");
            return context.ui.hint(hint!("generate one: git proq plan --ai \"payments by card\""));
        }
        context.ui.print_line(table::render(&DRAFT_COLUMNS, list.drafts.iter().map(draft_row).collect()));
        for row in &list.drafts {
            if let Some(rejection) = &row.rejection {
                let rejection = terminal_text::escape_line(rejection);
                context.ui.status(format!("{}: the last answer is not a plan: {rejection}", row.name));
            }
        }
    })
}

/// Columns of the list of drafts.
const DRAFT_COLUMNS: [Column; 7] = [
    Column::name("DRAFT"),
    Column::new("STATE"),
    Column::number("TASKS").hidden_at(1),
    Column::text("AGENT", 6).hidden_at(3),
    Column::number("COST").hidden_at(2),
    Column::new("WHEN").hidden_at(4),
    Column::text("GOAL", 12).hidden_at(5),
];

fn draft_row(row: &DraftRow) -> Vec<String> {
    let goal = row.goal.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    vec![
        row.name.clone(),
        row.state.to_owned(),
        row.tasks.to_string(),
        terminal_text::escape_line(&row.agent),
        row.costs.cost.map_or_else(|| "-".to_owned(), usage::cost_text),
        format!("{} ago", ui::short_duration(row.age)),
        terminal_text::escape_line(goal),
    ]
}
