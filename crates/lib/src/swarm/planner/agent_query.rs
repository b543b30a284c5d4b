//! Runs in which an agent answers with JSON: choice of the agent, start in a detached lane, follow-up messages
//! and answer.

use proq_base::lane_name::LaneName;
use proq_store::Store;
use proq_store::base::clock::Moment;
use proq_store::base::record::Record;
use proq_store::records::lane::{AnyLane, LanePurpose};
use proq_store::records::lane_state::LaneState;
use proq_store::records::run::RunRecord;

use super::draft_error::DraftError;
use crate::agent::command::agent_command::{AgentCommand, RunOptions};
use crate::agent::control::send_message;
use crate::agent::launch::start_supervisor;
use crate::agent::profiles::profile::Profile;
use crate::agent::profiles::profile_catalog;
use crate::agent::supervise::answer::MAX_ANSWER_LEN;
use crate::lane::Project;
use crate::session::read_only;
use crate::session::read_only::{GuestLanePlan, GuestLaneRequest, ReadLocation};
use crate::{agent, lane};

/// Returns the requested agent, or the first installed one by name that can be restricted to reading. An
/// agent that can resume a conversation is preferred.
///
/// # Errors
/// Fails with [`DraftError::NoAgent`] when no such agent is installed.
pub fn choose_read_only_agent(project: &Project, requested: Option<&str>) -> Result<String, DraftError> {
    if let Some(named) = requested {
        return Ok(named.to_owned());
    }
    let dir = project.repo.command_dir();
    let can_read_only = |profile: &Profile| profile.permission.read.is_some() && !profile.program.is_empty();
    let profiles = profile_catalog::load_profiles(&project.layers)?;
    let capable: Vec<(String, Profile)> =
        profiles.into_iter().filter(|(_, profile)| can_read_only(profile)).collect();
    let installed: Vec<&(String, Profile)> =
        capable.iter().filter(|(_, profile)| profile.find_program(dir).is_ok()).collect();
    let chosen = installed.iter().find(|(_, profile)| profile.can_resume()).or(installed.first());
    match chosen {
        Some((name, _)) => Ok(name.clone()),
        None => Err(DraftError::NoAgent { supported: capable.into_iter().map(|(name, _)| name).collect() }),
    }
}

/// A request to a read-only agent: which agent answers, for which purpose, on which commit.
#[derive(Clone, Copy)]
pub struct AgentQuery<'a> {
    /// Repository that the agent reads, with its store and settings.
    pub project: &'a Project,
    /// Profile name of the agent.
    pub agent: &'a str,
    /// Requested model; none for the profile's default.
    pub model: Option<&'a str>,
    /// Purpose of the run.
    pub purpose: LanePurpose,
    /// Revision that the agent reads; none for what is checked out.
    pub revision: Option<&'a str>,
}

/// Result of a finished run.
#[derive(Debug)]
pub(crate) enum AgentReply {
    /// The agent answered.
    Answer {
        /// Text of the answer.
        text: String,
    },
    /// The run ended without an answer.
    NoAnswer {
        /// Reason why there is no answer.
        reason: String,
    },
}

impl<'a> AgentQuery<'a> {
    /// Builds and checks the agent's command before anything is created.
    ///
    /// # Errors
    /// Fails when the agent is not installed, or its profile has no way to keep it from changing files.
    pub fn build_command(&self, prompt: &str) -> Result<AgentCommand, agent::Error> {
        let options = RunOptions {
            purpose: Some(self.purpose),
            model: self.model.map(ToOwned::to_owned),
            ..RunOptions::default()
        };
        AgentCommand::from_profile(
            self.project,
            self.agent,
            prompt,
            self.project.repo.command_dir(),
            &options,
        )
    }

    /// Plans the read-only lane of the query, without creating it. The lane gets this name, or one derived
    /// from the prompt.
    ///
    /// # Errors
    /// Fails when the name is taken, or there is no commit yet.
    pub fn plan_lane<'p>(&self, name: Option<&str>, prompt: &'p str) -> Result<GuestLanePlan<'p>, lane::Error>
    where
        'a: 'p,
    {
        let name = name.map(LaneName::parse).transpose()?;
        let (agent, purpose) = (self.agent.to_owned(), self.purpose);
        read_only::plan_guest_lane(
            self.project,
            GuestLaneRequest {
                name,
                prompt: prompt.into(),
                agent,
                purpose,
                location: ReadLocation::Detached(self.revision),
            },
        )
    }

    /// Creates the lane and starts the conversation. `on_created` receives the lane before the agent starts.
    ///
    /// # Errors
    /// Fails when the lane cannot be created or the agent cannot be started.
    pub fn start(
        &self,
        plan: &GuestLanePlan<'_>,
        command: &AgentCommand,
        on_created: impl FnOnce(&AnyLane) -> Result<(), DraftError>,
    ) -> Result<AnyLane, DraftError> {
        let (lane, lock) = read_only::create_guest_lane(self.project, plan, &[])?;
        on_created(&lane)?;
        Ok(start_supervisor::launch(self.project, &lane, lock, command)?)
    }

    /// Sends a follow-up message in the lane's conversation. If the agent cannot continue it, sends
    /// `full_prompt` in a new conversation instead.
    ///
    /// # Errors
    /// Fails when the agent cannot be started.
    pub(crate) fn send_follow_up(
        &self,
        lane: &AnyLane,
        message: &str,
        full_prompt: impl FnOnce() -> Result<String, DraftError>,
    ) -> Result<AnyLane, DraftError> {
        // Whether a lane left by a killed process has a conversation is known only after this check.
        let result = send_message::find_recipient(self.project, lane, Some(message))
            .and_then(|_| send_message::send_message(self.project, lane, Some(message)));
        match result {
            Ok(_) => Ok(self.project.any_lane(&lane.name)?),
            Err(agent::Error::NoSession { .. }) => self.start_new_conversation(lane, &full_prompt()?),
            Err(e) => Err(e.into()),
        }
    }

    /// Sends a prompt in a new conversation in the same lane.
    ///
    /// # Errors
    /// Fails when the agent cannot be started.
    pub(crate) fn start_new_conversation(&self, lane: &AnyLane, prompt: &str) -> Result<AnyLane, DraftError> {
        let command = self.build_command(prompt)?;
        let (lane, lock) = self.project.lock_any_idle_lane(&lane.name)?;
        Ok(start_supervisor::launch_with_prompt(self.project, &lane, lock, &command, Some(prompt))?)
    }
}

/// Returns the lane of this name, if it is the lane that was created at `created`.
pub(super) fn find_lane(
    store: &Store,
    name: &LaneName,
    created: Option<Moment>,
) -> Result<Option<AnyLane>, lane::Error> {
    let candidate = AnyLane::load_if_exists(&store.layout().lane_record(name))?;
    Ok(candidate.filter(|lane| created.is_some_and(|moment| lane.created == moment && lane.is_detached())))
}

/// Reads the result of a lane's last run, which must have finished.
///
/// # Errors
/// Fails when the answer cannot be read.
pub(crate) fn read_reply(store: &Store, lane: &AnyLane, state: LaneState) -> Result<AgentReply, lane::Error> {
    let answer = match state {
        LaneState::Done => read_only::run_answer(&store.layout().lane(&lane.name), lane.last_run)?,
        _ => None,
    };
    let no_answer =
        || AgentReply::NoAnswer { reason: lane.detail.clone().unwrap_or_else(|| state.to_string()) };
    Ok(answer.map_or_else(no_answer, |text| AgentReply::Answer { text }))
}

/// Returns whether an answer was so long that its end was cut off.
pub(super) fn is_answer_truncated(text: &str) -> bool {
    text.len() >= MAX_ANSWER_LEN / 2 && text.trim_end().ends_with('…')
}

/// Returns whether the last run resumed a conversation and failed before any tool call: the agent may no
/// longer have that conversation.
pub fn failed_to_resume(store: &Store, lane: &AnyLane) -> bool {
    let run = RunRecord::load_if_exists(&store.layout().run_record(&lane.name, lane.last_run)).ok().flatten();
    run.is_some_and(|run| {
        use proq_base::run_class::RunClass::{Crashed, Failed};
        run.resumes_session && matches!(run.class, Some(Failed | Crashed)) && run.summary.tool_calls == 0
    })
}

/// Returns the agent's session id of a lane's last run.
pub(super) fn last_session(store: &Store, lane: &AnyLane) -> Option<String> {
    let run = RunRecord::load_if_exists(&store.layout().run_record(&lane.name, lane.last_run)).ok().flatten();
    run.and_then(|run| run.summary.session)
}
