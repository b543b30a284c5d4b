//! Missing dependencies of a plan: an agent finds them, and the user approves them.

use proq_base::terminal_text;
use proq_plan::plan_source::LoadedPlan;
use proq_store::records::draft::ProposalsRecord;
use proq_store::records::lane::{AnyLane, LanePurpose};
use proq_store::records::lane_state::LaneState;

use super::conversation::{AnswerHandler, FollowRun, follow_until_answered};
use super::dependencies::Dependencies;
use super::named_plan::NamedPlan;
use crate::lane::Project;
use crate::ops::error::Error;
use crate::ops::refusal::{Refusal, refuse_in_lane};
use crate::ops::reporter::{Progress, Question, Reporter};
use crate::swarm::planner::agent_query::AgentQuery;
use crate::swarm::planner::draft_error::DraftError;
use crate::swarm::planner::draft_session::AnswerOutcome;
use crate::swarm::planner::missing_needs;
use crate::swarm::planner::missing_needs::MissingNeedsSearch;
use crate::swarm::planner::proposed_needs;

/// Request for the dependencies that are missing in a plan.
#[derive(Debug, Clone, Default)]
pub struct FindNeedsRequest {
    /// The plan.
    pub plan: NamedPlan,
    /// The agent that searches.
    pub agent: String,
    /// Model of the agent.
    pub model: Option<String>,
    /// Whether the agent is prompted even if its earlier answer is known.
    pub refresh: bool,
    /// Whether the caller approves what the agent finds.
    pub is_approved: bool,
    /// Lane in which the caller works, if any.
    pub calling_lane: Option<String>,
}

/// A search for missing dependencies that would be made, or an earlier one whose answer is used.
pub struct FindNeedsPlan<'a> {
    request: &'a FindNeedsRequest,
    search: MissingNeedsSearch<'a>,
    loaded: LoadedPlan,
    /// The answer that is used.
    known: Option<ProposalsRecord>,
    /// The lane of a search whose answer is not read yet.
    pending_lane: Option<AnyLane>,
}

/// The missing dependencies of a plan.
pub struct FoundNeeds<'a> {
    /// All dependencies of the plan, the missing ones among them.
    pub dependencies: Dependencies,
    request: &'a FindNeedsRequest,
}

/// Missing dependencies that were approved.
pub struct ApprovedNeeds {
    /// Their number with its noun, such as `2 dependencies`.
    pub needs: String,
    /// The record of their search, with its agent and cost.
    pub record: ProposalsRecord,
}

/// Reads the plan, and what an agent has found for its tasks before.
///
/// # Errors
/// Fails when the plan is invalid, and in a lane if the result is approved in advance.
pub fn plan<'a>(project: &'a Project, request: &'a FindNeedsRequest) -> Result<FindNeedsPlan<'a>, Error> {
    if request.is_approved {
        refuse_in_lane(request.calling_lane.as_deref())?;
    }
    let loaded = request.plan.read_without_proposals(project)?;
    let search = request.search(project, &loaded, request.model.as_deref())?;
    let saved = search.load_record()?.filter(|_| !request.refresh);
    let pending_lane =
        saved.as_ref().map(|record| search.lane_with_pending_answer(record)).transpose()?.flatten();
    let known = saved.filter(|record| record.is_answer_read && pending_lane.is_none());
    Ok(FindNeedsPlan { request, search, loaded, known, pending_lane })
}

/// Deletes the missing dependencies that were found in a plan. Returns whether there were any.
///
/// # Errors
/// Fails when the plan is invalid, or the record cannot be removed.
pub fn forget(project: &Project, plan: &NamedPlan) -> Result<bool, Error> {
    Ok(missing_needs::delete_proposals(project, &plan.read_without_proposals(project)?.plan)?)
}

impl FindNeedsRequest {
    /// Prepares the search in a plan.
    fn search<'a>(
        &'a self,
        project: &'a Project,
        loaded: &LoadedPlan,
        model: Option<&'a str>,
    ) -> Result<MissingNeedsSearch<'a>, DraftError> {
        let query =
            AgentQuery { project, agent: &self.agent, model, purpose: LanePurpose::Answer, revision: None };
        MissingNeedsSearch::new(query, &loaded.plan)
    }
}

impl<'a> FindNeedsPlan<'a> {
    /// Has the agent search, unless its answer is known.
    ///
    /// # Errors
    /// Fails when the agent cannot be started or does not answer in the required form.
    pub fn execute(
        self,
        project: &Project,
        reporter: &dyn Reporter,
        follow: FollowRun<'_>,
    ) -> Result<FoundNeeds<'a>, Error> {
        let _scope = reporter.enter_cancellation();
        let FindNeedsPlan { request, search, loaded, known, pending_lane } = self;
        let record = if let Some(record) = known {
            reporter.progress(Progress::NeedsKnown { agent: &record.agent, at: record.changed_at });
            record
        } else {
            let lane = pending_lane.map_or_else(|| search.start(), Ok)?;
            let agent = request.agent.as_str();
            reporter.progress(Progress::SearchingNeeds { agent, lane: &lane.name });
            let mut handler =
                NeedsAnswerHandler { search: &search, agent, loaded, rejected_needs: Vec::new() };
            let (lane, outcome) = follow_until_answered(lane, &mut handler, reporter, follow)?;
            let rejected = handler.rejected_needs;
            read_result(project, &search, agent, &lane, outcome, &rejected)?
        };
        let loaded = proposed_needs::with_proposals(request.plan.read_silently(project)?, &record).0;
        Ok(FoundNeeds { dependencies: Dependencies::new(loaded, record.is_approved), request })
    }
}

/// Returns the saved proposals of an agent that has answered, and removes its lane.
fn read_result(
    project: &Project,
    search: &MissingNeedsSearch<'_>,
    agent: &str,
    lane: &AnyLane,
    outcome: AnswerOutcome,
    rejected_needs: &[String],
) -> Result<ProposalsRecord, Error> {
    if let AnswerOutcome::Invalid { reason, .. } | AnswerOutcome::NoAnswer { reason } = outcome {
        let file = project.store.layout().run_answer(&lane.name, lane.last_run);
        return Err(DraftError::InvalidAnswer {
            agent: agent.to_owned(),
            expected: NeedsAnswerHandler::EXPECTED_ANSWER,
            reason: terminal_text::escape_line(&reason),
            answer_file: Some(file).filter(|file| file.exists()),
            lane: lane.name.clone(),
            is_draft: false,
        }
        .into());
    }
    for reason in rejected_needs {
        project.listener.warn(format!("not taken: {}", terminal_text::escape_line(reason)));
    }
    if let Err(e) = search.remove_lane(lane) {
        // A leftover lane does no harm.
        project.listener.warn(terminal_text::escape_line(&e.to_string()));
    }
    Ok(search.load_record()?.ok_or(DraftError::NoDrafts)?)
}

impl FoundNeeds<'_> {
    /// Returns whether missing dependencies were found that are not approved yet.
    pub fn is_open(&self) -> bool {
        let Dependencies { loaded, are_proposals_approved, .. } = &self.dependencies;
        !are_proposals_approved && !loaded.approved_needs.is_empty()
    }

    /// Approves the missing dependencies, if the caller has approved them in advance or the reporter's person
    /// agrees. From then on, plans use them.
    ///
    /// # Errors
    /// [`DraftError::ApprovalRequired`] without a person; otherwise fails when the record cannot be written.
    pub fn approve(&self, project: &Project, reporter: &dyn Reporter) -> Result<ApprovedNeeds, Error> {
        let FindNeedsRequest { plan, agent, is_approved, .. } = self.request;
        let search = self.request.search(project, &plan.read_silently(project)?, None)?;
        let record = search.load_record()?.ok_or(DraftError::NoDrafts)?;
        let needs = match record.needs.len() {
            1 => "1 dependency".to_owned(),
            n => format!("{n} dependencies"),
        };
        if !is_approved && !reporter.can_prompt_user() {
            return Err(DraftError::ApprovalRequired {
                question: format!("{needs} of {agent}'s may be used"),
                approve_command: format!("git proq deps --agent {agent} --yes {}", plan.sources.join(" ")),
            }
            .into());
        }
        if !is_approved && !reporter.confirm(Question::UseProposedNeeds { agent, needs: &needs }) {
            return Err(Refusal::Declined.into());
        }
        Ok(ApprovedNeeds { needs, record: search.approve(record)? })
    }
}

/// Handler of the agent's answers: checks each proposed dependency against the plan.
struct NeedsAnswerHandler<'m, 'a> {
    search: &'m MissingNeedsSearch<'a>,
    agent: &'m str,
    loaded: LoadedPlan,
    /// Dependencies in the last answer that were rejected, each as a line with the reason.
    rejected_needs: Vec<String>,
}

impl NeedsAnswerHandler<'_, '_> {
    /// What the agent must answer with.
    const EXPECTED_ANSWER: &'static str = "a list of dependencies";
}

impl AnswerHandler for NeedsAnswerHandler<'_, '_> {
    fn agent_name(&self) -> &str {
        self.agent
    }

    fn expected_answer(&self) -> &'static str {
        Self::EXPECTED_ANSWER
    }

    fn process_answer(&mut self, lane: &AnyLane, state: LaneState) -> Result<AnswerOutcome, DraftError> {
        let (outcome, rejected) = self.search.record_answer(lane, state, self.loaded.clone())?;
        self.rejected_needs = rejected;
        Ok(outcome)
    }

    fn retry(&mut self, lane: &AnyLane, outcome: &AnswerOutcome) -> Result<Option<AnyLane>, DraftError> {
        match outcome {
            AnswerOutcome::Invalid { reason, answer } => {
                Ok(Some(self.search.reject_answer(lane, answer, reason)?))
            }
            _ => Ok(None),
        }
    }
}
