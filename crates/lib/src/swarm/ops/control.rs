//! Pause and abort of a batch.

use proq_plan::schedule::action::BatchOutcome;
use proq_store::base::batch_id::BatchId;
use serde::Serialize;

use super::batch_lookup::{BatchState, find_batch_to_control};
use crate::lane::Project;
use crate::ops::error::Error;
use crate::swarm::batch::control_request::ControlRequestKind;
use crate::swarm::run::control_requests;
use crate::swarm::status::progress::outcome_word;

/// How a batch is halted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// What runs is ended and landed first; the batch can continue.
    Pause,
    /// Agents are requested to finish, or stopped at once if it is `hard`.
    Abort {
        /// Whether agents are stopped at once.
        hard: bool,
    },
}

/// Request to halt a batch.
#[derive(Debug, Clone)]
pub struct HaltRequest {
    /// Id of the batch or a prefix of it; none for the only unfinished batch.
    pub batch_name: Option<String>,
    /// How it is halted.
    pub halt: Halt,
}

/// What halting a batch would do. It serializes to the JSON output of a dry run.
#[derive(Debug, Clone, Serialize)]
pub struct HaltPlan {
    /// Id of the batch.
    pub batch: BatchId,
    /// State of the batch in a word.
    pub state: &'static str,
    /// Always true.
    dry_run: bool,
    /// Whether the batch is halted already, so that there is nothing to do.
    #[serde(skip)]
    pub is_halted: bool,
    #[serde(skip)]
    outcome: Option<BatchOutcome>,
    #[serde(skip)]
    halt: Halt,
}

/// A batch after it was halted. It serializes to the JSON output.
#[derive(Debug, Clone, Serialize)]
pub struct HaltOutcome {
    /// Id of the batch.
    pub batch: BatchId,
    /// State of the batch in a word.
    pub state: &'static str,
    /// Always false.
    dry_run: bool,
    /// Whether the batch was halted before, so that nothing was done.
    #[serde(skip)]
    pub was_halted: bool,
    /// Whether the batch has ended.
    #[serde(skip)]
    pub is_over: bool,
}

/// Finds the batch and its state.
///
/// # Errors
/// Fails when the batch cannot be found or read, or was cleaned up.
pub fn plan(project: &Project, request: &HaltRequest) -> Result<HaltPlan, Error> {
    let command = if request.halt == Halt::Pause { "pause" } else { "abort" };
    let batch = find_batch_to_control(project, request.batch_name.as_deref(), command)?.id;
    let BatchState { outcome, word: state } = BatchState::read(&project.store, &batch)?;
    let is_halted = outcome.is_some() || (request.halt == Halt::Pause && state == "paused");
    Ok(HaltPlan { batch, state, dry_run: true, is_halted, outcome, halt: request.halt })
}

impl HaltPlan {
    /// Returns how the batch has ended, in a word such as `aborted`; none while it is unfinished.
    #[must_use]
    pub fn outcome_word(&self) -> Option<&'static str> {
        self.outcome.map(outcome_word)
    }

    /// Sends the request to the batch's scheduler and returns once it has received it. Does nothing if the
    /// batch is halted.
    ///
    /// # Errors
    /// Fails when no scheduler can be started, or none processes the request in time.
    pub fn execute(self, project: &Project) -> Result<HaltOutcome, Error> {
        let HaltPlan { batch, is_halted: was_halted, halt, .. } = self;
        let kind = match halt {
            Halt::Pause => ControlRequestKind::Pause,
            Halt::Abort { hard } => ControlRequestKind::Abort { hard },
        };
        if !was_halted {
            control_requests::submit_requests(project, &batch, vec![kind])?;
        }
        let BatchState { outcome, word: state } = BatchState::read(&project.store, &batch)?;
        Ok(HaltOutcome { batch, state, dry_run: false, was_halted, is_over: outcome.is_some() })
    }
}
