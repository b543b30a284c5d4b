//! Conversation about a plan draft: an agent writes a plan and changes it on feedback, and its valid answers
//! become the draft's plan.

use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_plan::toml_plan;
use proq_plan::toml_plan::write::plan_to_toml;
use proq_store::Store;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::draft::DraftRecord;
use proq_store::records::lane::{AnyLane, LanePurpose};
use proq_store::records::lane_state::LaneState;

use super::agent_query::{AgentQuery, AgentReply};
use super::answer_json::parse_plan;
use super::draft_error::DraftError;
use super::drafts::Draft;
use super::prompt::SourceFile;
use super::{agent_query, drafts, prompt};
use crate::agent::command::agent_command::AgentCommand;
use crate::lane;
use crate::lane::Project;
use crate::lane::state::lane_state::effective_state;
use crate::run::lane_costs;
use crate::session::read_only::GuestLanePlan;

/// Maximum number of draft names that are tried where another process takes a name first.
const MAX_NAME_ATTEMPTS: u32 = 10;

/// A plan draft together with the conversation of its agent.
pub struct DraftSession<'a> {
    project: &'a Project,
    /// The draft's record.
    pub record: DraftRecord,
}

/// Result of reading an agent's answer.
#[derive(Debug)]
pub enum AnswerOutcome {
    /// The answer is valid and was saved.
    Accepted,
    /// The answer cannot be used.
    Invalid {
        /// Reason why the answer cannot be used.
        reason: String,
        /// Text of the answer.
        answer: String,
    },
    /// The run ended without an answer.
    NoAnswer {
        /// Reason why there is no answer.
        reason: String,
    },
}

/// A checked request for a new plan draft that has not been started.
#[derive(Debug, Clone)]
pub struct DraftRequest {
    /// Profile name of the agent.
    pub agent: String,
    model: Option<String>,
    goal: String,
    source_name: Option<String>,
    /// Prompt for the agent.
    pub prompt: String,
    /// Command of the agent.
    pub command: AgentCommand,
}

impl DraftRequest {
    /// Checks the request and writes its prompt.
    ///
    /// # Errors
    /// Fails when the agent is not installed or cannot be restricted to reading, or there is no commit to
    /// read.
    pub fn new(
        query: &AgentQuery<'_>,
        goal: &str,
        source_file: Option<&SourceFile>,
    ) -> Result<DraftRequest, DraftError> {
        let commit = query.plan_lane(None, goal)?.target.commit;
        let prompt = prompt::goal_prompt(&query.project.repo, commit, goal, source_file)?;
        let command = query.build_command(&prompt)?;
        Ok(DraftRequest {
            agent: query.agent.to_owned(),
            model: query.model.map(ToOwned::to_owned),
            goal: goal.to_owned(),
            source_name: source_file.map(|from| from.name.clone()),
            prompt,
            command,
        })
    }

    /// Creates the draft and starts the conversation with its agent.
    ///
    /// # Errors
    /// Fails when the draft cannot be created or the agent cannot be started.
    pub fn start(self, project: &Project) -> Result<(DraftSession<'_>, AnyLane), DraftError> {
        let (agent, model, source_name) = (&self.agent, self.model.as_deref(), self.source_name.as_deref());
        let mut attempts_left = MAX_NAME_ATTEMPTS;
        loop {
            let record =
                drafts::create_draft(project, &self.goal, (source_name, &self.prompt), (agent, model))?;
            let mut session = DraftSession { project, record };
            let query = session.build_query(agent, model);
            match session.start_in_new_lane(&query, &self.prompt, &self.command) {
                Ok(lane) => return Ok((session, lane)),
                Err(e) => {
                    // A draft whose lane was created is kept, so that its run can be inspected.
                    if session.record.lane_created.is_none() {
                        drafts::discard_draft(&project.store, &session.record.name)?;
                    }
                    attempts_left -= 1;
                    let is_name_taken = matches!(e, DraftError::Lane(lane::Error::NameTaken { .. }));
                    if !is_name_taken || session.record.lane_created.is_some() || attempts_left == 0 {
                        return Err(e);
                    }
                }
            }
        }
    }
}

impl<'a> DraftSession<'a> {
    /// Opens an existing draft.
    ///
    /// # Errors
    /// Fails when no draft has that name.
    pub fn open(project: &'a Project, name: &str) -> Result<DraftSession<'a>, DraftError> {
        Ok(DraftSession { project, record: drafts::read_draft(&project.store, name)?.record })
    }

    /// Returns the file with the prompt that first requested the draft.
    fn initial_prompt_path(&self) -> PathBuf {
        Layout::draft_prompt(&self.project.store.layout().plan_draft(&self.record.name))
    }

    /// Returns the lane of the draft's conversation; none if the lane has been removed.
    ///
    /// # Errors
    /// Fails when the lane's record cannot be read.
    pub fn lane(&self) -> Result<Option<AnyLane>, DraftError> {
        Ok(find_lane(&self.project.store, &self.record)?)
    }

    /// Creates the draft's lane, records it in the draft, and starts the agent.
    fn start_in_new_lane(
        &mut self,
        query: &AgentQuery<'_>,
        prompt: &str,
        command: &AgentCommand,
    ) -> Result<AnyLane, DraftError> {
        let plan: GuestLanePlan<'_> = query.plan_lane(Some(&self.record.name), prompt)?;
        let (project, name) = (self.project, self.record.name.clone());
        let mut updated = None;
        let lane = query.start(&plan, command, |lane| {
            updated = Some(drafts::update_record(project, &name, |record| {
                record.past_costs = record.past_costs.plus(std::mem::take(&mut record.costs));
                record.lane_created = Some(lane.created);
                record.last_read_run = RunNumber::NONE;
            })?);
            Ok(())
        });
        if let Some(record) = updated {
            self.record = record;
        }
        lane
    }

    /// Sends feedback on the draft's plan, or requests a plan where there is none. Uses the same conversation
    /// as long as the agent can continue it.
    ///
    /// # Errors
    /// Fails with [`DraftError::AgentRunning`] while the agent is running, and when the agent cannot be started.
    pub fn send_feedback(&mut self, text: &str) -> Result<AnyLane, DraftError> {
        let agent = self.record.agent.clone();
        let model = self.record.model.clone();
        let query = self.build_query(&agent, model.as_deref());
        let lane = match self.lane()? {
            Some(lane) if effective_state(self.project, &lane)?.0.is_busy() => {
                return Err(DraftError::AgentRunning { name: lane.name.into() });
            }
            Some(lane) if lane.last_run != RunNumber::NONE => {
                query.send_follow_up(&lane, &prompt::feedback_prompt(text), || self.restart_prompt(text))?
            }
            Some(lane) => query.start_new_conversation(&lane, &self.restart_prompt(text)?)?,
            None => {
                let full_prompt = self.restart_prompt(text)?;
                let command = query.build_command(&full_prompt)?;
                self.start_in_new_lane(&query, &full_prompt, &command)?
            }
        };
        self.record = drafts::update_record(self.project, &self.record.name, |record| {
            record.feedback.push(text.to_owned());
        })?;
        Ok(lane)
    }

    /// Sends the last feedback once more in a new conversation, for an agent that could not continue the old
    /// one.
    ///
    /// # Errors
    /// Fails when the agent cannot be started.
    pub fn retry_feedback(&self, lane: &AnyLane) -> Result<AnyLane, DraftError> {
        let query = self.build_query(&self.record.agent, self.record.model.as_deref());
        let text = self.record.feedback.last().cloned().unwrap_or_default();
        query.start_new_conversation(lane, &self.restart_prompt(&text)?)
    }

    /// Sends the agent the reason why its answer cannot be used, and requests a new answer.
    ///
    /// # Errors
    /// Fails when the agent cannot be started.
    pub fn reject_answer(&self, lane: &AnyLane, answer: &str, reason: &str) -> Result<AnyLane, DraftError> {
        let query = self.build_query(&self.record.agent, self.record.model.as_deref());
        let full_prompt = || Ok(prompt::full_rejection_prompt(&self.initial_prompt()?, answer, reason));
        query.send_follow_up(lane, &prompt::rejection_prompt(reason), full_prompt)
    }

    /// Returns a query to this agent for a plan, on what is checked out.
    fn build_query<'n>(&self, agent: &'n str, model: Option<&'n str>) -> AgentQuery<'n>
    where
        'a: 'n,
    {
        AgentQuery { project: self.project, agent, model, purpose: LanePurpose::Plan, revision: None }
    }

    /// Reads the prompt with which the draft was first requested.
    fn initial_prompt(&self) -> Result<String, DraftError> {
        let file = self.initial_prompt_path();
        Ok(proq_base::regular_file::read_store_text(&file).map_err(lane::Error::io("read", &file))?)
    }

    /// Returns a prompt for a new conversation: the initial prompt, the current plan, the earlier feedback,
    /// and `text`.
    fn restart_prompt(&self, text: &str) -> Result<String, DraftError> {
        let draft = drafts::read_draft(&self.project.store, &self.record.name)?;
        let plan = draft.plan.as_ref().map(|drafted| &drafted.loaded.plan);
        let feedback = &draft.record.feedback;
        // The current feedback may already be the last entry of the record.
        let earlier = feedback.strip_suffix(&[text.to_owned()]).unwrap_or(feedback);
        Ok(prompt::full_feedback_prompt(&self.initial_prompt()?, plan, earlier, text))
    }

    /// Reads the answer of a finished run and saves it as the draft's plan if it is valid.
    ///
    /// # Errors
    /// Fails when the answer cannot be read or the draft cannot be written.
    pub fn record_answer(&mut self, lane: &AnyLane, state: LaneState) -> Result<AnswerOutcome, DraftError> {
        let (plan, outcome) = match agent_query::read_reply(&self.project.store, lane, state)? {
            AgentReply::NoAnswer { reason } => (None, AnswerOutcome::NoAnswer { reason }),
            AgentReply::Answer { text } => match answer_to_toml(&text) {
                Ok(plan) => (Some(plan), AnswerOutcome::Accepted),
                Err(reason) => (None, AnswerOutcome::Invalid { reason, answer: text }),
            },
        };
        let rejection = match &outcome {
            AnswerOutcome::Accepted => None,
            AnswerOutcome::Invalid { reason, .. } | AnswerOutcome::NoAnswer { reason } => {
                Some(reason.clone())
            }
        };
        let (costs, session) = (
            lane_costs::total_costs(&self.project.store, lane)?,
            agent_query::last_session(&self.project.store, lane),
        );
        self.record =
            drafts::save_plan(self.project, &self.record.name, lane.last_run, plan.as_deref(), |record| {
                record.invalid_answer_reason = rejection;
                record.costs = costs;
                record.session = session.or(record.session.take());
            })?;
        Ok(outcome)
    }

    /// Returns the file with the agent's answer of its last run, if it exists.
    pub fn answer_file(&self, lane: &AnyLane) -> Option<PathBuf> {
        let file = self.project.store.layout().run_answer(&lane.name, lane.last_run);
        Some(file).filter(|file| file.exists())
    }
}

/// Draft, and whether its agent is still running.
pub struct RefreshedDraft {
    /// The draft, with the agent's answer if it has ended.
    pub draft: Draft,
    /// Whether the agent is still running.
    pub is_agent_running: bool,
}

/// Reads a draft, after recording the agent's answer if a new one exists.
///
/// # Errors
/// Fails when no draft has that name, or it cannot be read.
pub fn refresh_draft(project: &Project, name: &str) -> Result<RefreshedDraft, DraftError> {
    let mut session = DraftSession::open(project, name)?;
    let mut is_agent_running = false;
    if let Some(lane) = session.lane()? {
        let (state, detail) = effective_state(project, &lane)?;
        is_agent_running = state.is_busy();
        if !is_agent_running && lane.last_run > session.record.last_read_run {
            session.record_answer(&AnyLane { detail, ..lane }, state)?;
        }
    }
    Ok(RefreshedDraft { draft: drafts::read_draft(&project.store, name)?, is_agent_running })
}

/// Returns the lane of a draft's conversation, which has the draft's name; none if the lane has been removed.
fn find_lane(store: &Store, record: &DraftRecord) -> Result<Option<AnyLane>, lane::Error> {
    match LaneName::parse(&record.name) {
        Ok(name) => agent_query::find_lane(store, &name, record.lane_created),
        Err(_) => Ok(None),
    }
}

/// Returns whether the agent of a draft is running.
///
/// # Errors
/// Fails when the record of the draft's lane cannot be read.
pub fn is_agent_busy(project: &Project, record: &DraftRecord) -> Result<bool, DraftError> {
    match find_lane(&project.store, record)? {
        Some(lane) => Ok(effective_state(project, &lane)?.0.is_busy()),
        None => Ok(false),
    }
}

/// Converts an agent's answer to the TOML form in which a draft's plan is saved.
fn answer_to_toml(text: &str) -> Result<String, String> {
    let parsed = parse_plan(text).map_err(|reason| match agent_query::is_answer_truncated(text) {
        true => "it is too long, and its end was cut off: make it shorter than 48 KB".to_owned(),
        false => reason,
    })?;
    let plan = plan_to_toml(&parsed.plan);
    // A saved plan has to be readable again.
    toml_plan::read(&"$".into(), &plan).map_err(|e| e.to_string())?;
    Ok(plan)
}
