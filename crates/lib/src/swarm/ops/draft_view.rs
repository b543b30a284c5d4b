//! Drafts as they are shown: each as a row, and one with its plan.

use std::path::Path;
use std::time::Duration;

use proq_plan::plan_diff::PlanChange;
use proq_plan::plan_source::LoadedPlan;
use proq_plan::schedule::options::BatchOptions;
use proq_store::base::clock::{Moment, now};
use proq_store::paths::path_form;
use proq_store::records::draft::RunCosts;
use serde::Serialize;

use super::named_plan::NamedPlan;
use super::plan_view::PlanView;
use crate::lane::Project;
use crate::ops::error::Error;
use crate::swarm::planner::draft_error::DraftError;
use crate::swarm::planner::draft_session::RefreshedDraft;
use crate::swarm::planner::drafts::Draft;
use crate::swarm::planner::{draft_session, drafts};

/// A draft without its plan, in the form of the JSON output.
#[derive(Debug, Clone, Serialize)]
pub struct DraftRow {
    /// Name of the draft.
    pub name: String,
    /// Goal of the plan.
    pub goal: String,
    /// File that the plan was written from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Agent that writes the plan.
    pub agent: String,
    /// Requested model of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// State of the draft: `ready`, `approved`, `at-work` or `empty`.
    pub state: &'static str,
    /// Reason why the agent's last answer is not a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "wrong")]
    pub rejection: Option<String>,
    /// Number of tasks in the plan; 0 without a plan.
    pub tasks: usize,
    /// Session of the agent's conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Feedback that the user gave, oldest first.
    pub feedback: Vec<String>,
    /// Usage of all runs.
    pub costs: RunCosts,
    /// Creation time of the draft.
    pub created: Moment,
    /// Time of the last change.
    pub updated: Moment,
    /// Time since the last change.
    #[serde(skip)]
    pub age: Duration,
}

impl DraftRow {
    fn from_draft(draft: &Draft, is_approved: bool, is_busy: bool) -> DraftRow {
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
            age: now().duration_since(record.updated),
        }
    }
}

/// All drafts, the one changed last first. It serializes to the JSON output.
#[derive(Debug, Clone, Serialize)]
pub struct DraftList {
    /// The drafts.
    pub drafts: Vec<DraftRow>,
}

/// Reads all drafts. A draft that cannot be read gives a warning and is left out.
///
/// # Errors
/// Fails when the folder of drafts cannot be read.
pub fn list_drafts(project: &Project) -> Result<DraftList, Error> {
    let mut rows = Vec::new();
    for record in drafts::list_drafts(project)? {
        match draft_session::refresh_draft(project, &record.name) {
            Ok(RefreshedDraft { draft, is_agent_running }) => {
                let is_approved = drafts::is_approved(&project.repo, &draft);
                rows.push(DraftRow::from_draft(&draft, is_approved, is_agent_running));
            }
            Err(e) => {
                let reason = proq_base::terminal_text::escape_line(&e.to_string());
                project.listener.warn(format!("draft '{}': {reason}", record.name));
            }
        }
    }
    Ok(DraftList { drafts: rows })
}

/// Returns the name of the draft that a request means: the only source or, without a source, the only draft.
///
/// # Errors
/// Fails if the draft is unknown, or if none was named and the number of drafts is not one.
pub fn resolve_draft(project: &Project, plan: &NamedPlan) -> Result<String, DraftError> {
    if let Some(name) = plan.sources.first() {
        return Ok(drafts::read_draft(&project.store, name)?.record.name);
    }
    let mut names: Vec<String> =
        drafts::list_drafts(project)?.into_iter().map(|record| record.name).collect();
    match names.len() {
        0 => Err(DraftError::NoDrafts),
        1 => Ok(names.swap_remove(0)),
        _ => Err(DraftError::AmbiguousDraft { names }),
    }
}

/// Returns the draft, after recording a new answer of its agent.
///
/// # Errors
/// [`DraftError::AgentRunning`], or an error when the draft cannot be read.
pub(super) fn read_idle_draft(project: &Project, name: &str) -> Result<Draft, DraftError> {
    match draft_session::refresh_draft(project, name)? {
        RefreshedDraft { draft, is_agent_running: false } => Ok(draft),
        RefreshedDraft { is_agent_running: true, .. } => {
            Err(DraftError::AgentRunning { name: name.to_owned() })
        }
    }
}

/// A draft with its plan. It serializes to the JSON output: the plan as for any other source, and the draft's
/// own data.
#[derive(Serialize)]
pub struct DraftView {
    /// The draft's own data.
    #[serde(rename = "draft")]
    pub row: DraftRow,
    /// Changes from the plan before; empty for a new draft.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<PlanChange>,
    /// Path of the file that the plan was written to.
    #[serde(rename = "saved", skip_serializing_if = "Option::is_none")]
    pub saved_path: Option<String>,
    /// The plan.
    #[serde(flatten)]
    pub plan: PlanView,
    /// Whether the user has approved this plan.
    #[serde(skip)]
    pub is_approved: bool,
}

impl DraftView {
    /// Computes the view of a draft.
    ///
    /// # Errors
    /// [`DraftError::NoPlan`]; otherwise as [`PlanView::compute`].
    pub(super) fn compute(
        project: &Project,
        draft: &Draft,
        options: &BatchOptions,
    ) -> Result<DraftView, Error> {
        let is_busy = draft_session::is_agent_busy(project, &draft.record)?;
        let is_approved = drafts::is_approved(&project.repo, draft);
        let sources = vec![draft.record.name.clone()];
        Ok(DraftView {
            plan: PlanView::compute(project, draft_plan(draft)?.clone(), sources, options)?,
            row: DraftRow::from_draft(draft, is_approved, is_busy),
            changes: Vec::new(),
            saved_path: None,
            is_approved,
        })
    }

    /// Reads the draft of this name and computes its view.
    ///
    /// # Errors
    /// [`DraftError::UnknownDraft`], [`DraftError::NoPlan`]; otherwise as [`PlanView::compute`].
    pub fn read(project: &Project, name: &str, options: &BatchOptions) -> Result<DraftView, Error> {
        DraftView::compute(project, &drafts::read_draft(&project.store, name)?, options)
    }

    /// Returns whether an agent is writing the draft now.
    pub fn is_busy(&self) -> bool {
        self.row.state == "at-work"
    }

    /// Sets the file that the plan was written to.
    pub(super) fn set_saved_path(&mut self, path: &Path) {
        self.saved_path = Some(path_form::to_text(path));
    }
}

/// Returns the plan of a draft.
///
/// # Errors
/// [`DraftError::NoPlan`].
fn draft_plan(draft: &Draft) -> Result<&LoadedPlan, DraftError> {
    let (name, why) = (&draft.record.name, &draft.record.invalid_answer_reason);
    let plan = draft.plan.as_ref().map(|plan| &plan.loaded);
    plan.ok_or_else(|| DraftError::NoPlan { name: name.clone(), why: why.clone() })
}
