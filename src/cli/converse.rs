//! Owns following a conversation with an agent that has to answer in a form of its own: told of its mistakes, it may try again.

use super::{Failure, Session, follow};
use crate::harmless;
use crate::lane::Project;
use crate::store::records::{AnyLane, LaneState};
use crate::swarm::planner::Taken;

/// How many times more an agent is asked.
const MORE: u32 = 2;

/// What is made of an answer, and how the agent is asked again.
pub(super) trait Answers {
    /// Who is asked.
    fn agent(&self) -> &str;
    /// What an answer has to be, as in "a plan".
    fn what(&self) -> &'static str;
    /// Makes something of what a run came to.
    fn take(&mut self, lane: &AnyLane, state: LaneState) -> Result<Taken, Failure>;
    /// Asks again; none where that is of no use.
    fn again(&mut self, lane: &AnyLane, taken: &Taken) -> Result<Option<AnyLane>, Failure>;
}

/// Follows the run to its end, and those after it, until there is an answer or nobody is asked any more. What came of the last
/// one, and its lane.
pub(super) fn converse(
    session: &Session,
    project: &Project,
    lane: AnyLane,
    answers: &mut dyn Answers,
) -> Result<(AnyLane, Taken), Failure> {
    let mut lane = lane;
    let mut left = MORE;
    loop {
        let (ended, state) = follow::to_end(session, project, &lane)?;
        let taken = answers.take(&ended, state)?;
        if left == 0 || matches!(taken, Taken::Plan) {
            return Ok((ended, taken));
        }
        left -= 1;
        let Some(next) = answers.again(&ended, &taken)? else { return Ok((ended, taken)) };
        let (agent, what) = (answers.agent(), answers.what());
        session.ui.say(match &taken {
            Taken::Wrong { why, .. } => {
                format!("what {agent} answered is not {what}, it is asked again: {}", harmless::line(why))
            }
            Taken::Nothing { why } => {
                format!("{agent} could not go on, it is asked anew: {}", harmless::line(why))
            }
            Taken::Plan => String::new(),
        });
        lane = next;
    }
}
