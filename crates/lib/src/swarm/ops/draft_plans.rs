//! Drafts that an agent writes, and changes on feedback.

use proq_base::terminal_text;
use proq_plan::plan::Plan;
use proq_plan::plan_diff::diff_plans;
use proq_plan::schedule::options::BatchOptions;
use proq_store::Store;
use proq_store::records::lane::{AnyLane, LanePurpose};
use proq_store::records::lane_state::LaneState;
use serde::{Serialize, Serializer};

use super::conversation::{AnswerHandler, FollowRun, follow_until_answered};
use super::draft_view::{DraftView, read_idle_draft, resolve_draft};
use super::named_plan::NamedPlan;
use super::plan_file::OutputFile;
use crate::lane::Project;
use crate::lane::inspection::evidence::changed_file_names;
use crate::ops::error::Error;
use crate::ops::reporter::{Progress, Reporter};
use crate::swarm::planner::agent_query::AgentQuery;
use crate::swarm::planner::draft_error::DraftError;
use crate::swarm::planner::draft_session::{AnswerOutcome, DraftRequest, DraftSession};
use crate::swarm::planner::prompt::SourceFile;
use crate::swarm::planner::{agent_query, drafts};

/// What becomes of a plan that an agent has written.
#[derive(Debug, Clone, Default)]
pub struct DraftUse {
    /// File that the plan is written to as well.
    pub target: Option<OutputFile>,
    /// Options with which the plan is simulated.
    pub options: BatchOptions,
}

/// Request for a new draft.
#[derive(Debug, Clone, Default)]
pub struct MakeDraftRequest {
    /// Goal of the plan.
    pub goal: String,
    /// File that the plan follows.
    pub source_file: Option<SourceFile>,
    /// The agent; none for the first that is installed and can be kept from changing files.
    pub agent: Option<String>,
    /// Model of the agent.
    pub model: Option<String>,
    /// What becomes of the plan.
    pub draft_use: DraftUse,
}

/// An agent that would write a draft. It serializes to the JSON output of a dry run.
pub struct MakeDraftPlan {
    /// The agent's command and prompt.
    pub request: DraftRequest,
    draft_use: DraftUse,
}

impl Serialize for MakeDraftPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct DryRunOutput<'a> {
            agent: &'a str,
            command: String,
            prompt: &'a str,
            dry_run: bool,
        }
        let DraftRequest { agent, prompt, command, .. } = &self.request;
        let command = command.display_command_line();
        DryRunOutput { agent, command, prompt, dry_run: true }.serialize(serializer)
    }
}

/// Request to change a draft.
#[derive(Debug, Clone, Default)]
pub struct ChangeDraftRequest {
    /// The draft; no source for the only one.
    pub plan: NamedPlan,
    /// Feedback on the draft's plan.
    pub feedback: String,
    /// What becomes of the plan.
    pub draft_use: DraftUse,
}

/// A draft that its agent would change.
pub struct ChangeDraftPlan {
    draft_name: String,
    previous_plan: Option<Plan>,
    feedback: String,
    draft_use: DraftUse,
}

/// A draft after its agent has answered. It serializes to the JSON output.
#[derive(Serialize)]
pub struct DraftOutcome {
    /// The draft.
    #[serde(flatten)]
    pub view: DraftView,
    /// Whether the draft had a plan before.
    #[serde(skip)]
    pub had_plan: bool,
    /// The file that the plan was written to, as it was given.
    #[serde(skip)]
    pub output_file: Option<String>,
}

/// Chooses the agent and writes its prompt. Warns of uncommitted changes, which the agent does not see.
///
/// # Errors
/// Fails when no suitable agent is installed, or there is no commit to read.
pub fn plan_new(project: &Project, request: &MakeDraftRequest) -> Result<MakeDraftPlan, Error> {
    let agent = &agent_query::choose_read_only_agent(project, request.agent.as_deref())?;
    let model = request.model.as_deref();
    let query = AgentQuery { project, agent, model, purpose: LanePurpose::Plan, revision: None };
    let draft_request = DraftRequest::new(&query, &request.goal, request.source_file.as_ref())?;
    if let Some(worktree) = project.repo.current_worktree()
        && let Some(names) = changed_file_names(&project.repo, worktree)?
    {
        project.listener.warn(format!("the plan is made without your uncommitted changes ({names})"));
    }
    Ok(MakeDraftPlan { request: draft_request, draft_use: request.draft_use.clone() })
}

/// Finds the draft and checks that its agent is idle.
///
/// # Errors
/// Fails when the draft cannot be found, or while its agent runs.
pub fn plan_change(project: &Project, request: &ChangeDraftRequest) -> Result<ChangeDraftPlan, Error> {
    let draft_name = resolve_draft(project, &request.plan)?;
    let draft = read_idle_draft(project, &draft_name)?;
    Ok(ChangeDraftPlan {
        draft_name,
        previous_plan: draft.plan.map(|plan| plan.loaded.plan),
        feedback: request.feedback.clone(),
        draft_use: request.draft_use.clone(),
    })
}

impl MakeDraftPlan {
    /// Creates the draft, and has the agent write its plan.
    ///
    /// # Errors
    /// Fails when the agent cannot be started or does not answer with a plan, or the file cannot be written.
    pub fn execute(
        self,
        project: &Project,
        reporter: &dyn Reporter,
        follow: FollowRun<'_>,
    ) -> Result<DraftOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        let (session, lane) = self.request.start(project)?;
        project.register_repository();
        let DraftSession { record, .. } = &session;
        reporter.progress(Progress::DraftRequested {
            name: &record.name,
            agent: &record.agent,
            is_new: true,
        });
        await_draft(project, session, lane, None, &self.draft_use, reporter, follow)
    }
}

impl ChangeDraftPlan {
    /// Sends the feedback, and has the agent change the plan.
    ///
    /// # Errors
    /// [`DraftError::AgentRunning`]; otherwise as [`MakeDraftPlan::execute`].
    pub fn execute(
        self,
        project: &Project,
        reporter: &dyn Reporter,
        follow: FollowRun<'_>,
    ) -> Result<DraftOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        let name = &self.draft_name;
        let mut session = DraftSession::open(project, name)?;
        let lane = session.send_feedback(&self.feedback)?;
        reporter.progress(Progress::DraftRequested { name, agent: &session.record.agent, is_new: false });
        let previous = self.previous_plan.as_ref();
        await_draft(project, session, lane, previous, &self.draft_use, reporter, follow)
    }
}

/// Handler of the agent's answers, for a new draft and for a change.
struct DraftAnswerHandler<'m, 'a> {
    session: &'m mut DraftSession<'a>,
    store: &'a Store,
    /// Whether the conversation was already restarted once.
    was_restarted: bool,
}

impl AnswerHandler for DraftAnswerHandler<'_, '_> {
    fn agent_name(&self) -> &str {
        &self.session.record.agent
    }

    fn expected_answer(&self) -> &'static str {
        "a plan"
    }

    fn process_answer(&mut self, lane: &AnyLane, state: LaneState) -> Result<AnswerOutcome, DraftError> {
        self.session.record_answer(lane, state)
    }

    fn retry(&mut self, lane: &AnyLane, outcome: &AnswerOutcome) -> Result<Option<AnyLane>, DraftError> {
        match outcome {
            AnswerOutcome::Invalid { reason, answer } => {
                Ok(Some(self.session.reject_answer(lane, answer, reason)?))
            }
            // The agent may have lost the conversation.
            AnswerOutcome::NoAnswer { .. }
                if !self.was_restarted && agent_query::failed_to_resume(self.store, lane) =>
            {
                self.was_restarted = true;
                Ok(Some(self.session.retry_feedback(lane)?))
            }
            _ => Ok(None),
        }
    }
}

/// Follows the conversation until the agent answers with a plan, and writes the plan to the requested file.
fn await_draft<'a>(
    project: &'a Project,
    mut session: DraftSession<'a>,
    first_lane: AnyLane,
    previous_plan: Option<&Plan>,
    draft_use: &DraftUse,
    reporter: &dyn Reporter,
    follow: FollowRun<'_>,
) -> Result<DraftOutcome, Error> {
    let mut handler =
        DraftAnswerHandler { session: &mut session, store: &project.store, was_restarted: false };
    let (lane, outcome) = follow_until_answered(first_lane, &mut handler, reporter, follow)?;
    if let AnswerOutcome::Invalid { reason, .. } | AnswerOutcome::NoAnswer { reason } = outcome {
        return Err(DraftError::InvalidAnswer {
            agent: session.record.agent.clone(),
            expected: "a plan",
            reason: terminal_text::escape_line(&reason),
            answer_file: session.answer_file(&lane),
            lane: lane.name,
            is_draft: true,
        }
        .into());
    }
    let draft = drafts::read_draft(&project.store, &session.record.name)?;
    let saved_path =
        draft_use.target.as_ref().map(|target| target.write_draft(project, &draft)).transpose()?;
    let mut view = DraftView::compute(project, &draft, &draft_use.options)?;
    if let Some(previous) = previous_plan {
        view.changes = diff_plans(previous, view.plan.plan());
    }
    if let Some(path) = saved_path {
        view.set_saved_path(&path);
    }
    let output_file = draft_use.target.as_ref().map(|target| target.display_name.clone());
    Ok(DraftOutcome { view, had_plan: previous_plan.is_some(), output_file })
}
