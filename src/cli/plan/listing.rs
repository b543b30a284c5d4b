//! Owns the list of drafts.

use serde::Serialize;

use super::super::{Done, Session, account, table, ui};
use crate::explain::Exit;
use crate::harmless;
use crate::store::Moment;
use crate::store::records::Costs;
use crate::swarm::drafts::{self, Draft};
use crate::swarm::planner;

/// A draft, for programs.
#[derive(Serialize)]
pub(super) struct Row {
    name: String,
    goal: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// `ready`, `approved`, `at-work` or `empty`.
    state: &'static str,
    /// Why what was answered last is no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    wrong: Option<String>,
    tasks: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    feedback: Vec<String>,
    costs: Costs,
    created: Moment,
    updated: Moment,
}

impl Row {
    /// What is known of one.
    pub(super) fn of(draft: &Draft, is_approved: bool, is_busy: bool) -> Row {
        let record = draft.record.clone();
        Row {
            state: match (is_busy, &draft.plan, is_approved) {
                (true, ..) => "at-work",
                (false, None, _) => "empty",
                (false, Some(_), true) => "approved",
                (false, Some(_), false) => "ready",
            },
            tasks: draft.plan.as_ref().map_or(0, |plan| plan.found.plan.spots().count()),
            costs: record.past_costs.plus(record.costs),
            name: record.name,
            goal: record.goal,
            from: record.from,
            agent: record.agent,
            model: record.model,
            wrong: record.wrong,
            session: record.session,
            feedback: record.feedback,
            created: record.created,
            updated: record.updated,
        }
    }
}

#[derive(Serialize)]
struct Answer {
    drafts: Vec<Row>,
}

pub(super) fn run(session: &Session) -> Done {
    let project = session.project()?;
    let mut rows = Vec::new();
    for record in drafts::list(&project)? {
        match planner::catch_up(&project, &record.name) {
            Ok((draft, is_busy)) => {
                rows.push(Row::of(&draft, drafts::is_approved(&project, &draft), is_busy));
            }
            Err(e) => session.ui.warn(format!("draft '{}': {}", record.name, harmless::line(&e.to_string()))),
        }
    }
    if session.ui.json {
        session.ui.object(Answer { drafts: rows });
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        session.ui.say("there is no draft of a plan");
        session.ui.hint("have one made: git proq plan --ai \"payments by card\"");
        return Ok(Exit::Done);
    }
    let lines = rows.iter().map(|row| {
        vec![
            row.name.clone(),
            row.state.to_owned(),
            row.tasks.to_string(),
            harmless::line(&row.agent),
            row.costs.cost.map_or_else(|| "-".to_owned(), account::money),
            ui::span(crate::store::now().since(row.updated)),
            harmless::line(row.goal.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()),
        ]
    });
    let head = ["DRAFT", "STATE", "TASKS", "AGENT", "COST", "AGE", "GOAL"];
    session.ui.answer(table::render(&head, lines.collect()));
    for row in rows.iter().filter(|row| row.wrong.is_some()) {
        let why = harmless::line(row.wrong.as_deref().unwrap_or_default());
        session.ui.say(format!("{}: what was answered last is no plan: {why}", row.name));
    }
    Ok(Exit::Done)
}
