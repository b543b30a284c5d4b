//! Follows an agent that must answer in a given format, and prompts it again with the errors in its answer.

use proq_base::terminal_text;
use proq_lib::lane::Project;
use proq_lib::swarm::planner::draft_session::AnswerOutcome;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;

use super::follow_run;
use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;

/// Maximum number of further prompts after the first answer.
const MAX_RETRIES: u32 = 2;

/// Processing of an agent's answers, and of the next prompt after an unusable one.
pub(crate) trait AnswerHandler {
    /// Returns the name of the agent that answers.
    fn agent_name(&self) -> &str;
    /// Returns a noun phrase for the expected answer, such as "a plan".
    fn expected_answer(&self) -> &'static str;
    /// Reads and checks the answer of a finished run.
    fn process_answer(&mut self, lane: &AnyLane, state: LaneState) -> Result<AnswerOutcome, Failure>;
    /// Prompts the agent again and returns its lane; `None` if a retry is pointless.
    fn retry(&mut self, lane: &AnyLane, outcome: &AnswerOutcome) -> Result<Option<AnyLane>, Failure>;
}

/// Follows a run and its retries until the agent gives a usable answer or no retry is left. Returns the last
/// lane and the outcome of its answer.
pub(crate) fn follow_until_answered(
    context: &CommandContext,
    project: &Project,
    lane: AnyLane,
    handler: &mut dyn AnswerHandler,
) -> Result<(AnyLane, AnswerOutcome), Failure> {
    let mut lane = lane;
    let mut retries_left = MAX_RETRIES;
    loop {
        let (finished_lane, state) = follow_run::follow_quietly(context, project, &lane)?;
        let outcome = handler.process_answer(&finished_lane, state)?;
        if retries_left == 0 || matches!(outcome, AnswerOutcome::Accepted) {
            return Ok((finished_lane, outcome));
        }
        retries_left -= 1;
        let Some(next) = handler.retry(&finished_lane, &outcome)? else {
            return Ok((finished_lane, outcome));
        };
        let (agent, expected_answer) = (handler.agent_name(), handler.expected_answer());
        context.ui.status(match &outcome {
            AnswerOutcome::Invalid { reason, .. } => {
                format!(
                    "what {agent} answered is not {expected_answer}, it is asked again: {}",
                    terminal_text::escape_line(reason)
                )
            }
            AnswerOutcome::NoAnswer { reason } => {
                format!("{agent} could not go on, it is asked anew: {}", terminal_text::escape_line(reason))
            }
            AnswerOutcome::Accepted => String::new(),
        });
        lane = next;
    }
}
