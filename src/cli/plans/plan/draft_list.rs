//! The list of drafts, `git proq plan --drafts`.

use proq_base::explain::Exit;
use proq_base::terminal_text;
use proq_lib::swarm::planner::drafts::Draft;
use proq_lib::swarm::planner::{draft_session, drafts};
use proq_store::base::clock::Moment;
use proq_store::records::draft::RunCosts;
use serde::Serialize;

use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::{table, ui, usage};

/// JSON output about a draft.
#[derive(Serialize)]
pub(crate) struct DraftRow {
    name: String,
    goal: String,
    /// File given with `--from`.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// State of the draft: `ready`, `approved`, `at-work` or `empty`.
    state: &'static str,
    /// Reason why the agent's last answer is not a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "wrong")]
    rejection: Option<String>,
    /// Number of tasks in the plan; 0 without a plan.
    tasks: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// Feedback that the user gave, oldest first.
    feedback: Vec<String>,
    costs: RunCosts,
    created: Moment,
    updated: Moment,
}

impl DraftRow {
    /// Creates the row of a draft.
    pub(crate) fn from_draft(draft: &Draft, is_approved: bool, is_busy: bool) -> DraftRow {
        let record = draft.record.clone();
        DraftRow {
            state: match (is_busy, &draft.plan, is_approved) {
                (true, ..) => "at-work",
                (false, None, _) => "empty",
                (false, Some(_), true) => "approved",
                (false, Some(_), false) => "ready",
            },
            tasks: draft.plan.as_ref().map_or(0, |plan| plan.loaded.plan.tasks().count()),
            costs: record.past_costs.plus(record.costs),
            name: record.name,
            goal: record.goal,
            from: record.source_file,
            agent: record.agent,
            model: record.model,
            rejection: record.invalid_answer_reason,
            session: record.session,
            feedback: record.feedback,
            created: record.created,
            updated: record.updated,
        }
    }
}

#[derive(Serialize)]
struct DraftsOutput {
    drafts: Vec<DraftRow>,
}

pub(crate) fn run(context: &CommandContext) -> CommandResult {
    let project = context.project()?;
    let mut rows = Vec::new();
    for record in drafts::list_drafts(&project)? {
        match draft_session::refresh_draft(&project, &record.name) {
            Ok((draft, is_busy)) => {
                rows.push(DraftRow::from_draft(&draft, drafts::is_approved(&project.repo, &draft), is_busy));
            }
            Err(e) => context.ui.warn(format!(
                "draft '{}': {}",
                record.name,
                terminal_text::escape_line(&e.to_string())
            )),
        }
    }
    if context.ui.json {
        context.ui.print_json(DraftsOutput { drafts: rows });
        return Ok(Exit::Success);
    }
    if rows.is_empty() {
        context.ui.status("there is no draft of a plan");
        context.ui.hint("have one made: git proq plan --ai \"payments by card\"");
        return Ok(Exit::Success);
    }
    let lines = rows.iter().map(|row| {
        vec![
            row.name.clone(),
            row.state.to_owned(),
            row.tasks.to_string(),
            terminal_text::escape_line(&row.agent),
            row.costs.cost.map_or_else(|| "-".to_owned(), usage::cost_text),
            ui::short_duration(proq_store::base::clock::now().duration_since(row.updated)),
            terminal_text::escape_line(
                row.goal.lines().find(|line| !line.trim().is_empty()).unwrap_or_default(),
            ),
        ]
    });
    let head = ["DRAFT", "STATE", "TASKS", "AGENT", "COST", "AGE", "GOAL"];
    context.ui.print_line(table::render(&head, lines.collect()));
    for row in rows.iter().filter(|row| row.rejection.is_some()) {
        let rejection = terminal_text::escape_line(row.rejection.as_deref().unwrap_or_default());
        context.ui.status(format!("{}: what was answered last is no plan: {rejection}", row.name));
    }
    Ok(Exit::Success)
}
