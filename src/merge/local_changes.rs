//! Owns finding out which lanes of a landing touch local changes of their base's checkout: the others can land without them.

use super::Error;
use super::land::foresee;
use super::outcome::Outcome;
use super::request::Candidate;
use super::stack::Stack;
use crate::explain::{Explain, with_causes};
use crate::git::{self, ThrowAway};
use crate::lane::{self, Operation};

/// Whether files of a checkout keep a branch from moving, and not its state: then other lanes may be able to land.
pub(super) fn is_of_files(e: &Error) -> bool {
    use git::Error::{Obstructed, Overlap, Shut};
    let of_files =
        |e: &lane::Error| matches!(e, lane::Error::Git(Overlap { .. } | Obstructed { .. } | Shut { .. }));
    // There they are those of a lane which has the base checked out.
    matches!(e, Error::LaneOnBase { .. }) || matches!(e, Error::Lane(e) if of_files(e))
}

/// The lowest lane found with which a stack cannot land for the files of a checkout of its base, and what becomes of it. None when
/// nothing keeps the stack from landing. What was merged may lie in `into` only.
///
/// # Errors
/// What keeps every lane from landing.
pub(super) fn first_in_the_way(
    op: &Operation<'_>,
    stack: &Stack,
    into: Option<&ThrowAway>,
) -> Result<Option<(Candidate, Outcome)>, Error> {
    let Err(mut why) = foresee(op, stack, stack.steps.len(), into) else { return Ok(None) };
    if !is_of_files(&why) {
        return Err(why);
    }
    // As many of the lowest lanes can land, and with so many they cannot.
    let (mut free, mut kept) = (0, stack.steps.len());
    while kept - free > 1 {
        let middle = free.midpoint(kept);
        match foresee(op, stack, middle, into) {
            Ok(()) => free = middle,
            Err(e) if is_of_files(&e) => (kept, why) = (middle, e),
            Err(e) => return Err(e),
        }
    }
    let candidate = stack.steps[kept - 1].candidate.clone();
    let outcome = refused(&candidate, &stack.onto, &why);
    Ok(Some((candidate, outcome)))
}

fn refused(candidate: &Candidate, onto: &str, why: &Error) -> Outcome {
    // Other lanes of the same landing may change something.
    let text = with_causes(why).replace("; nothing was changed", "");
    Outcome {
        hints: why.hints().iter().map(ToString::to_string).collect(),
        exit: Some(why.exit()),
        part: candidate.key(),
        ..Outcome::refused(&candidate.lane.name, onto, text)
    }
}
