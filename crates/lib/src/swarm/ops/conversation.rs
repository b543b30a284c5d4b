//! Conversation with an agent that must answer in a given form: it is prompted again with the errors in its
//! answer.

use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;

use crate::ops::error::Error;
use crate::ops::reporter::{Progress, Reporter};
use crate::swarm::planner::draft_error::DraftError;
use crate::swarm::planner::draft_session::AnswerOutcome;

/// Maximum number of further prompts after the first answer.
const MAX_RETRIES: u32 = 2;

/// Waits until the run of a lane has ended, and returns the lane as it is then and its state. The caller of a
/// use case may show the run while it waits.
pub type FollowRun<'a> = &'a dyn Fn(&AnyLane) -> Result<(AnyLane, LaneState), Error>;

/// Processing of an agent's answers, and of the next prompt after an unusable one.
pub(super) trait AnswerHandler {
    /// Returns the name of the agent that answers.
    fn agent_name(&self) -> &str;
    /// Returns a noun phrase for the expected answer, such as "a plan".
    fn expected_answer(&self) -> &'static str;
    /// Reads and checks the answer of a finished run.
    fn process_answer(&mut self, lane: &AnyLane, state: LaneState) -> Result<AnswerOutcome, DraftError>;
    /// Prompts the agent again and returns its lane; none if a retry is pointless.
    fn retry(&mut self, lane: &AnyLane, outcome: &AnswerOutcome) -> Result<Option<AnyLane>, DraftError>;
}

/// Follows a run and its retries until the agent gives a usable answer or no retry is left. Returns the last
/// lane and the outcome of its answer.
pub(super) fn follow_until_answered(
    first_lane: AnyLane,
    handler: &mut dyn AnswerHandler,
    reporter: &dyn Reporter,
    follow: FollowRun<'_>,
) -> Result<(AnyLane, AnswerOutcome), Error> {
    let mut lane = first_lane;
    let mut retries_left = MAX_RETRIES;
    loop {
        let (finished_lane, state) = follow(&lane)?;
        let outcome = handler.process_answer(&finished_lane, state)?;
        let (reason, has_answer) = match &outcome {
            AnswerOutcome::Invalid { reason, .. } if retries_left > 0 => (reason, true),
            AnswerOutcome::NoAnswer { reason } if retries_left > 0 => (reason, false),
            _ => return Ok((finished_lane, outcome)),
        };
        retries_left -= 1;
        let Some(next) = handler.retry(&finished_lane, &outcome)? else {
            return Ok((finished_lane, outcome));
        };
        let (agent, expected) = (handler.agent_name(), handler.expected_answer());
        reporter.progress(Progress::AnswerRejected { agent, expected, reason, has_answer });
        lane = next;
    }
}
