//! Follow-up messages to a lane's agent: each is delivered in the existing conversation, at once or when the
//! agent's turn has ended.

use proq_base::lane_name::LaneName;
use proq_store as store;
use proq_store::base::clock::now;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use proq_store::records::message::MessageRecord;

use crate::agent::Error;
use crate::agent::command::conversation::{last_conversation_run, refuse_while_resolving};
use crate::agent::launch::prepare_run::build_message_command;
use crate::agent::launch::start_supervisor::launch_with_messages;
use crate::agent::profiles::profile::refuse_nul_byte;
use crate::agent::profiles::profile_catalog::find_profile;
use crate::event::log::EventName;
use crate::lane::Project;
use crate::lane::messages::inbox;
use crate::lane::messages::inbox::Inbox;
use crate::lane::state::lane_state::effective_state;

/// Outcome of sending a message: the agent starts on it now, or gets it after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// The agent continues with the message.
    Started,
    /// The message waits for the end of the agent's turn.
    Queued,
}

impl SendOutcome {
    /// Returns the outcome that sending a message now would have.
    pub fn predict(project: &Project, lane: &AnyLane) -> Result<SendOutcome, Error> {
        Ok(if effective_state(project, lane)?.0.is_busy() {
            SendOutcome::Queued
        } else {
            SendOutcome::Started
        })
    }
}

/// Agent and conversation that a message goes to.
#[derive(Debug, Clone)]
pub struct Recipient {
    /// Name of the agent.
    pub agent: String,
    /// Session to continue. An agent that has just started may not have named it yet.
    pub session: Option<String>,
    /// Conversation of the message, as the number of the run that started it.
    conversation: RunNumber,
    /// Whether the conversation ran in a window, which no longer exists.
    pub was_interactive: bool,
    /// Warning that the last run exceeded its budget, to show before the agent continues; none otherwise.
    pub budget_warning: Option<String>,
}

/// Finds the recipient of a message to a lane. Without `text`, the message is the oldest one that waits.
///
/// # Errors
/// Returns [`Error::NoSession`] when no conversation can be continued, and [`Error::NoMessageToSend`] when no
/// message waits.
pub fn find_recipient(project: &Project, lane: &AnyLane, text: Option<&str>) -> Result<Recipient, Error> {
    let queued = match text {
        Some(text) => {
            refuse_nul_byte(text)?;
            None
        }
        None => Some(oldest_message(project, lane)?),
    };
    refuse_while_resolving(project, lane)?;
    let state = effective_state(project, lane)?.0;
    if state == LaneState::Orphaned {
        return Err(Error::AgentWithoutSupervisor { lane: lane.name.clone() });
    }
    let no_session = || Error::NoSession {
        lane: lane.name.clone(),
        message: text.or_else(|| Some(&queued.as_ref()?.text)).unwrap_or_default().to_owned(),
        is_running: state.is_busy(),
    };
    let last_run = last_conversation_run(&project.store, lane, None)?;
    if let (Some(queued), Some(last_run)) = (&queued, &last_run)
        && state.is_busy()
        && last_run.conversation_number() != queued.conversation
    {
        return Err(Error::MessagesForOtherConversation {
            lane: lane.name.clone(),
            agent: queued.agent.clone(),
        });
    }
    let run = match &queued {
        Some(queued) => last_conversation_run(&project.store, lane, Some(queued.conversation))?,
        None => last_run,
    };
    let run = run.ok_or_else(no_session)?;
    if run.interactive && run.ended.is_none() && state.is_busy() {
        return Err(Error::AgentInWindow { lane: lane.name.clone() });
    }
    let profile = find_profile(&project.layers, &run.agent)?;
    if !profile.can_resume() {
        return Err(no_session());
    }
    if let Some(text) = text {
        profile.check_prompt(text)?;
    }
    let warning = run.exceeded_budget().zip(run.limits.budget).map(|((cost, allowed), again)| {
        format!("its last run has cost ${cost} of ${allowed}; another may cost ${again} again")
    });
    Ok(Recipient {
        conversation: run.conversation_number(),
        budget_warning: warning,
        was_interactive: run.interactive,
        agent: run.agent,
        session: run.summary.session,
    })
}

/// Returns the message that has waited longest for a lane's agent.
fn oldest_message(project: &Project, lane: &AnyLane) -> Result<MessageRecord, Error> {
    let oldest = Inbox::new(&project.store, &lane.name).read()?.into_iter().next();
    oldest.map(|queued| queued.record).ok_or_else(|| Error::NoMessageToSend { lane: lane.name.clone() })
}

/// Sends `text` to a lane's agent, or without it only the waiting messages. A refused message is not saved.
///
/// # Errors
/// Fails as [`find_recipient`] does, and when the agent cannot be started.
pub fn send_message(project: &Project, lane: &AnyLane, text: Option<&str>) -> Result<SendOutcome, Error> {
    let locks = project.store.locks();
    let name = LockName::Run(lane.name.clone());
    if queue_for_supervisor(project, &lane.name, text)? {
        return Ok(SendOutcome::Queued);
    }
    // The lock may be held by a supervisor that has made its last check, or by a landing or a removal. None
    // of them delivers messages.
    let lock = match locks.acquire(&name) {
        // Another run took the lock first.
        Err(store::Error::Locked { .. }) if queue_for_supervisor(project, &lane.name, text)? => {
            return Ok(SendOutcome::Queued);
        }
        lock => lock?,
    };
    if locks.is_held(&LockName::AgentAlive(lane.name.clone()))? {
        return Err(Error::AgentWithoutSupervisor { lane: lane.name.clone() });
    }
    let lane = project.close_crashed_run(project.any_lane(&lane.name)?)?;
    let recipient = find_recipient(project, &lane, text)?;
    let mut claimed = Inbox::new(&project.store, &lane.name).claim(recipient.conversation)?;
    let texts: Vec<&str> = claimed.texts().chain(text).collect();
    let (command, fitting) = build_message_command(project, &lane, recipient.conversation, &texts)?;
    let all_fit = fitting == texts.len();
    // From here on, only the start of the agent itself can fail.
    let new_message = match text {
        Some(text) => Some(add_to_inbox(project, &lane, &recipient, text)?),
        None => None,
    };
    let new_message_id = new_message.as_ref().map(|message| message.id.clone());
    claimed.messages.extend(new_message);
    claimed.messages.truncate(fitting);
    if let Err(e) = launch_with_messages(project, &lane, lock, command, &claimed) {
        if let Some(message_id) = new_message_id {
            Inbox::new(&project.store, &lane.name).retract(&message_id)?;
        }
        return Err(e);
    }
    Ok(if all_fit { SendOutcome::Started } else { SendOutcome::Queued })
}

/// Adds a message to the inbox if a supervisor of the lane's run will still check it, and returns whether it
/// does.
///
/// A supervisor makes its last check under the store's lock, and records there that the run has finished.
/// While this function holds that lock and the lane's record still has a run, the last check is yet to be
/// made.
fn queue_for_supervisor(project: &Project, name: &LaneName, text: Option<&str>) -> Result<bool, Error> {
    let locks = project.store.locks();
    let store = locks.acquire(&LockName::Store)?;
    let lane = project.any_lane(name)?;
    if !lane.state().is_claimed() || !locks.is_held(&LockName::Run(lane.name.clone()))? {
        return Ok(false);
    }
    let recipient = find_recipient(project, &lane, text)?;
    if let Some(text) = text {
        Inbox::new(&project.store, &lane.name).add(new_message_record(&lane, &recipient, text), &store)?;
        drop(store);
        let message = format!("lane '{}': a message waits until its agent's turn has ended", lane.name);
        project.emit(EventName::MessageWaits, Some(&lane), message);
    }
    Ok(true)
}

fn add_to_inbox(
    project: &Project,
    lane: &AnyLane,
    recipient: &Recipient,
    text: &str,
) -> Result<inbox::InboxMessage, Error> {
    let store: LockGuard = project.store.locks().acquire(&LockName::Store)?;
    // Under this lock, read the lane again: see `Inbox::put`.
    let lane = project.any_lane(&lane.name)?;
    Ok(Inbox::new(&project.store, &lane.name).add(new_message_record(&lane, recipient, text), &store)?)
}

fn new_message_record(lane: &AnyLane, recipient: &Recipient, text: &str) -> MessageRecord {
    MessageRecord {
        sent_at: now(),
        agent: recipient.agent.clone(),
        last_run: lane.last_run,
        conversation: recipient.conversation,
        session: recipient.session.clone(),
        text: text.to_owned(),
    }
}
