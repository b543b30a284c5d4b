//! Missing dependencies of a plan: the conversation in which an agent searches for them, and the record of
//! its proposals.

use std::path::PathBuf;

use proq_plan::plan::Plan;
use proq_plan::plan_source::LoadedPlan;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::records::draft::{ProposalsRecord, ProposedNeed, RunCosts};
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;

use super::agent_query::{AgentQuery, AgentReply};
use super::answer_json::parse_needs;
use super::draft_error::DraftError;
use super::draft_session::AnswerOutcome;
use super::{agent_query, prompt, proposed_needs};
use crate::lane;
use crate::lane::removal::remove_lane::RemovalReason;
use crate::lane::state::lane_state::effective_state;
use crate::operation::run_operation::operate;
use crate::run::lane_costs;
use crate::session::read_only;

/// A search by an agent for dependencies that are missing among the tasks of a plan.
pub struct MissingNeedsSearch<'a> {
    query: AgentQuery<'a>,
    /// File with the proposals for exactly these tasks.
    record_path: PathBuf,
    prompt: String,
}

impl<'a> MissingNeedsSearch<'a> {
    /// Prepares the search for missing dependencies among the tasks of a plan, in the plan as its source
    /// states it.
    ///
    /// # Errors
    /// [`DraftError::NoDrafts`] when git cannot hash the tasks.
    pub fn new(query: AgentQuery<'a>, plan: &Plan) -> Result<MissingNeedsSearch<'a>, DraftError> {
        let record_path = proposed_needs::proposals_path(query.project, plan).ok_or(DraftError::NoDrafts)?;
        Ok(MissingNeedsSearch { query, record_path, prompt: prompt::needs_prompt(plan) })
    }

    /// Reads the record of earlier proposals for these tasks; none if there is none.
    ///
    /// # Errors
    /// Fails when the record cannot be read.
    pub fn load_record(&self) -> Result<Option<ProposalsRecord>, DraftError> {
        Ok(ProposalsRecord::load_if_exists(&self.record_path)?)
    }

    /// Starts the search in a new lane, whether or not there are earlier proposals.
    ///
    /// # Errors
    /// Fails when the agent cannot be started.
    pub fn start(&self) -> Result<AnyLane, DraftError> {
        let command = self.query.build_command(&self.prompt)?;
        let plan = self.query.plan_lane(None, &self.prompt)?;
        self.query.start(&plan, &command, |lane| {
            let (lane, lane_created) = (Some(lane.name.clone()), Some(lane.created));
            let record = match self.load_record()? {
                // Earlier proposals count until there are new ones.
                Some(previous) => ProposalsRecord { lane, lane_created, ..previous },
                None => ProposalsRecord {
                    agent: self.query.agent.to_owned(),
                    lane,
                    lane_created,
                    is_answer_read: false,
                    is_approved: false,
                    changed_at: now(),
                    needs: Vec::new(),
                    costs: RunCosts::default(),
                },
            };
            Ok(record.save(&self.record_path)?)
        })
    }

    /// Returns the lane of the search while the agent is running or has an answer that is not read yet; none
    /// if no answer will come from it.
    ///
    /// # Errors
    /// Fails when the lane's record cannot be read.
    pub fn lane_with_pending_answer(&self, record: &ProposalsRecord) -> Result<Option<AnyLane>, DraftError> {
        let Some(name) = &record.lane else { return Ok(None) };
        let Some(lane) = agent_query::find_lane(&self.query.project.store, name, record.lane_created)? else {
            return Ok(None);
        };
        let (state, detail) = effective_state(self.query.project, &lane)?;
        let may_have_answer = state.is_busy() || state == LaneState::Done;
        Ok(may_have_answer.then_some(AnyLane { detail, ..lane }))
    }

    /// Sends the agent the reason why its answer cannot be used, and requests a new answer.
    ///
    /// # Errors
    /// Fails when the agent cannot be started.
    pub fn reject_answer(&self, lane: &AnyLane, answer: &str, reason: &str) -> Result<AnyLane, DraftError> {
        let full_prompt = || Ok(prompt::full_rejection_prompt(&self.prompt, answer, reason));
        self.query.send_follow_up(lane, &prompt::rejection_prompt(reason), full_prompt)
    }

    /// Reads the answer of a finished run and saves the dependencies that fit the plan. The second value
    /// describes those that do not fit.
    ///
    /// # Errors
    /// Fails when the answer cannot be read or the record cannot be written.
    pub fn record_answer(
        &self,
        lane: &AnyLane,
        state: LaneState,
        found: LoadedPlan,
    ) -> Result<(AnswerOutcome, Vec<String>), DraftError> {
        let answer = match agent_query::read_reply(&self.query.project.store, lane, state)? {
            AgentReply::NoAnswer { reason } => return Ok((AnswerOutcome::NoAnswer { reason }, Vec::new())),
            AgentReply::Answer { text } => text,
        };
        let raw_needs = match parse_needs(&answer) {
            Ok(raw_needs) => raw_needs,
            Err(reason) => return Ok((AnswerOutcome::Invalid { reason, answer }, Vec::new())),
        };
        let (needs, rejected) = proposed_needs::select_valid_needs(found, self.query.agent, raw_needs);
        let was_approved = |previous: &ProposalsRecord| {
            let need_pairs = |needs: &[ProposedNeed]| -> Vec<(String, String)> {
                needs.iter().map(|need| (need.task.clone(), need.needs.clone())).collect()
            };
            previous.is_approved && need_pairs(&previous.needs) == need_pairs(&needs)
        };
        let approved = needs.is_empty() || self.load_record()?.as_ref().is_some_and(was_approved);
        let record = ProposalsRecord {
            agent: self.query.agent.to_owned(),
            lane: None,
            lane_created: None,
            is_answer_read: true,
            is_approved: approved,
            changed_at: now(),
            needs,
            costs: lane_costs::total_costs(&self.query.project.store, lane)?,
        };
        record.save(&self.record_path)?;
        Ok((AnswerOutcome::Accepted, rejected))
    }

    /// Removes the lane of the search. The conversation stays in the history.
    ///
    /// # Errors
    /// Fails when the lane cannot be removed.
    pub fn remove_lane(&self, lane: &AnyLane) -> Result<(), DraftError> {
        operate(self.query.project, "deps", |op| {
            read_only::remove_guest_lane(op, lane, RemovalReason::Cleanup).map(drop)
        })?;
        Ok(())
    }

    /// Approves the proposals: from now on they are used for exactly these tasks.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub fn approve(&self, record: ProposalsRecord) -> Result<ProposalsRecord, DraftError> {
        let record = ProposalsRecord { is_approved: true, changed_at: now(), ..record };
        record.save(&self.record_path)?;
        Ok(record)
    }
}

/// Deletes the proposals for the tasks of a plan. Returns whether there were any.
///
/// # Errors
/// Fails when the record cannot be removed.
pub fn delete_proposals(project: &lane::Project, plan: &Plan) -> Result<bool, DraftError> {
    let Some(record_path) = proposed_needs::proposals_path(project, plan) else { return Ok(false) };
    match std::fs::remove_file(&record_path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(lane::Error::io("remove", &record_path)(e).into()),
    }
}
