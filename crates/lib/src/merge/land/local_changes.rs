//! Search for the lanes of a landing that touch local changes of their base's checkout; the others can land
//! without them.

use proq_base::explain::{Explain, describe_with_causes};
use proq_git::repository::objects::TempObjectStore;

use super::branch_move::preflight;
use crate::lane;
use crate::merge::Error;
use crate::merge::stack::lane_stack::Stack;
use crate::merge::types::candidate::Candidate;
use crate::merge::types::outcome::LaneOutcome;
use crate::operation::journaled_operation::Operation;

/// Returns whether the error is about files in a checkout of the base, not about the checkout's state. Then
/// other lanes may be able to land.
pub(crate) fn is_file_obstacle(e: &Error) -> bool {
    use proq_git::Error::{LocalChanges, NotWritable, Obstructed};
    let is_obstructed = |e: &lane::Error| {
        matches!(e, lane::Error::Git(LocalChanges { .. } | Obstructed { .. } | NotWritable { .. }))
    };
    // With this error, the files are in the worktree of a lane that has the base checked out.
    matches!(e, Error::LaneOnBase { .. }) || matches!(e, Error::Lane(e) if is_obstructed(e))
}

/// Returns the lowest lane with which a stack cannot land because of files of a checkout of its base, and its
/// outcome. None if nothing keeps the stack from landing. The merge commits may exist in `temp_objects` only.
/// With `autostash`, changes that can be saved are no obstacle. Finds the lane by binary search.
///
/// # Errors
/// An obstacle that keeps every lane from landing.
pub(crate) fn lowest_obstructed_lane(
    op: &Operation<'_>,
    stack: &Stack,
    temp_objects: Option<&TempObjectStore>,
    autostash: bool,
) -> Result<Option<(Candidate, LaneOutcome)>, Error> {
    let preflight = |lane_count| preflight(op, stack, lane_count, temp_objects, autostash);
    let Err(mut error) = preflight(stack.applied_lanes.len()) else {
        return Ok(None);
    };
    if !is_file_obstacle(&error) {
        return Err(error);
    }
    // The lowest `landable` lanes can land; the lowest `blocked` lanes cannot.
    let (mut landable, mut blocked) = (0, stack.applied_lanes.len());
    while blocked - landable > 1 {
        let middle = landable.midpoint(blocked);
        match preflight(middle) {
            Ok(()) => landable = middle,
            Err(e) if is_file_obstacle(&e) => (blocked, error) = (middle, e),
            Err(e) => return Err(e),
        }
    }
    let candidate = stack.applied_lanes[blocked - 1].candidate.clone();
    let outcome = obstructed_outcome(&candidate, &stack.onto, &error);
    Ok(Some((candidate, outcome)))
}

/// Returns the refusal of a lane that cannot land because of files in a checkout of its base.
fn obstructed_outcome(candidate: &Candidate, onto: &str, error: &Error) -> LaneOutcome {
    // Other lanes of the same landing may change something, so that note would be wrong.
    let text = describe_with_causes(error).replace("; nothing was changed", "");
    LaneOutcome {
        hints: error.hints(),
        exit_code: Some(error.exit()),
        part_key: candidate.part_key(),
        ..LaneOutcome::refused(&candidate.lane.name, onto, text)
    }
}
