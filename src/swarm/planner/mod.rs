//! Owns asking an agent for a plan, or for what is missing in one: what it is told, and what is made of what it says.

mod ask;
mod choose;
mod context;
mod json;
mod judging;
mod lenient;
mod making;
mod needs;
mod prompt;

pub(crate) use ask::{Asker, could_not_go_on};
pub(crate) use choose::choose;
pub(crate) use json::Said;
pub(crate) use judging::{Judged, Judging, Verdict, close as close_judging};
pub(crate) use making::{Making, Taken, Wanted, catch_up, is_busy};
pub(crate) use needs::{Missing, forget};
pub(crate) use prompt::FromFile;

use crate::store::Moment;
use crate::store::records::AnyLane;

/// Whether a lane is the one that was made then to be talked to.
fn lane_is(lane: &AnyLane, made: Moment) -> bool {
    lane.created == made && lane.looks_apart()
}
