//! Messages to lanes' agents.

use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_store::records::lane::AnyLane;
use serde::Serialize;

use super::error::Error;
use crate::agent::control::send_message;
use crate::agent::control::send_message::Recipient;
use crate::lane::Project;
use crate::lane::messages::attached_files::MessageFiles;

/// Message to send.
#[derive(Debug, Clone)]
pub struct SendRequest {
    /// Lane whose agent gets the message.
    pub lane: AnyLane,
    /// Text of the message; none to deliver only the messages that wait.
    pub text: Option<String>,
    /// Files of which the agent gets copies, as absolute paths. They need a text.
    pub attachments: Vec<PathBuf>,
}

/// Message with its recipient.
#[derive(Debug, Clone)]
pub struct SendPlan<'r> {
    request: &'r SendRequest,
    recipient: Recipient,
}

/// Result or forecast of sending a message.
#[derive(Debug, Serialize)]
pub struct SendOutcome {
    /// Name of the lane.
    pub lane: LaneName,
    /// Name of the agent.
    pub agent: String,
    /// Id of the agent's session; null until the agent has reported it.
    pub session: Option<String>,
    /// Whether the message waits for the end of the agent's turn.
    pub queued: bool,
    /// Word for the state of the lane.
    pub state: String,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Whether the agent leaves a window of tmux, which no longer exists.
    #[serde(skip)]
    pub leaves_window: bool,
    /// Record of the lane, read after sending.
    #[serde(skip)]
    pub record: AnyLane,
}

/// Finds the recipient of a message, and warns if its last run has exceeded the budget.
///
/// # Errors
/// Those of [`send_message::find_recipient`].
pub fn plan<'r>(project: &Project, request: &'r SendRequest) -> Result<SendPlan<'r>, Error> {
    let recipient = send_message::find_recipient(project, &request.lane, request.text.as_deref())?;
    if let Some(warning) = &recipient.budget_warning {
        project.listener.warn(warning);
    }
    Ok(SendPlan { request, recipient })
}

impl SendPlan<'_> {
    /// Returns what [`SendPlan::execute`] would do.
    ///
    /// # Errors
    /// Fails if the lane cannot be read.
    pub fn forecast(self, project: &Project) -> Result<SendOutcome, Error> {
        let sent = send_message::SendOutcome::predict(project, &self.request.lane)?;
        self.into_outcome(project, sent, true)
    }

    /// Sends the message together with copies of its attachments. The copies are retained only if sending
    /// succeeds. The recipient is determined again under the lock of the lane's run.
    ///
    /// # Errors
    /// Those of [`send_message::send_message`]; nothing was sent then.
    pub fn execute(self, project: &Project) -> Result<SendOutcome, Error> {
        let SendRequest { lane, text, attachments } = self.request;
        let copies = MessageFiles::copy(&project.store, &lane.name, attachments)?;
        let text = text.as_deref().map(|text| copies.append_to(text)).transpose()?;
        let sent = send_message::send_message(project, lane, text.as_deref())?;
        copies.retain();
        self.into_outcome(project, sent, false)
    }

    fn into_outcome(
        self,
        project: &Project,
        sent: send_message::SendOutcome,
        dry_run: bool,
    ) -> Result<SendOutcome, Error> {
        let record = project.any_lane(&self.request.lane.name)?;
        Ok(SendOutcome {
            lane: record.name.clone(),
            agent: self.recipient.agent,
            session: self.recipient.session,
            queued: sent == send_message::SendOutcome::Queued,
            state: record.state().to_string(),
            dry_run,
            leaves_window: self.recipient.was_interactive,
            record,
        })
    }
}
