//! Delivery of the messages that were sent to a lane during a run: another run delivers them.

use proq_base::explain::describe_with_causes;
use proq_base::run_class::RunClass;
use proq_store::records::lane_state::RunState;

use super::retry_state::RetryState;
use super::state::Supervisor;
use crate::agent::Error;
use crate::agent::command::fresh_conversation::RestartCounter;
use crate::agent::launch::prepare_run;
use crate::agent::launch::run_spec::RunSpec;
use crate::agent::supervise::classify::{RunClassifier, RunOutcome};
use crate::event::log;
use crate::lane::messages::inbox::Inbox;

impl Supervisor<'_> {
    /// Returns whether the lane's inbox holds a message for the conversation of a run.
    pub(crate) fn has_messages(&self, spec: &RunSpec) -> bool {
        Inbox::new(&self.project.store, &self.lane.name).has_messages_for(spec.conversation)
    }

    /// Writes the result of a run that a run with the waiting messages follows, and resets the retry state.
    /// If the messages cannot be delivered, writes nothing and returns the reason.
    pub(crate) fn finish_before_message_run(
        &mut self,
        finished_run: &RunClassifier<'_>,
        verdict: &RunOutcome,
    ) -> Result<Option<String>, Error> {
        if let Err(e) =
            prepare_run::check_messages_deliverable(self.project, &self.lane, finished_run.spec.conversation)
        {
            return Ok(Some(describe_undelivered(&e)));
        }
        self.retry_state = RetryState::default();
        self.restart_counter = RestartCounter::default();
        self.lane = self.write_with_retries(|| {
            finished_run.write_interim_outcome(verdict, log::EventName::MessageDelivered, RunState::Running)
        })?;
        Ok(None)
    }

    /// Prepares the run that delivers the waiting messages. If it cannot be prepared, ends the lane with the
    /// verdict of its last run and returns `None`.
    pub(crate) fn prepare_message_run(&mut self, spec: &RunSpec) -> Result<Option<RunSpec>, Error> {
        match prepare_run::prepare_message_run(self.project, &self.lane, spec.conversation) {
            Ok(message_spec) => Ok(Some(message_spec)),
            Err(e) => {
                self.end_with_last_verdict(&describe_undelivered(&e))?;
                Ok(None)
            }
        }
    }
}

/// Returns whether messages may be delivered after a run. It must have ended well or by its agent giving up,
/// accept messages, and resolve no conflict.
pub(crate) fn can_receive_messages(spec: &RunSpec, verdict: &RunOutcome) -> bool {
    let ended_well = matches!(verdict.state, RunState::Done | RunState::NoChange);
    let agent_gave_up = matches!(verdict.class, RunClass::Failed | RunClass::Refused | RunClass::MaxTurns);
    (ended_well || agent_gave_up) && !spec.resolves_conflict && spec.accepts_messages
}

pub(crate) fn describe_undelivered(e: &Error) -> String {
    let reason = describe_with_causes(e);
    format!(
        "cannot send the queued messages: {}",
        reason.strip_suffix("; nothing was created").unwrap_or(&reason)
    )
}
