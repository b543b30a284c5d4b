//! Owns running a batch: the process around the scheduler, which does what that decides and tells it what comes of it.
//!
//! [`Runner`] is a loop over what it hears. Each event goes to the log first, then to the scheduler, and then the actions are
//! carried out, in their order. What takes long is done by threads, which answer by a message: one waits for each run's lock,
//! one lands, one for each conflict watches over whoever resolves it. So a kill at any moment leaves either an event that was
//! written, or nothing; and what was begun of an action is found again by its evidence: a lane by the place in the batch that its
//! record names, a run by task and attempt, a landing by its proof.

mod agents;
mod begin;
mod checks;
mod claims;
mod closing;
mod conflicts;
mod evidence;
mod history;
mod known;
mod land_all;
mod landing;
mod lanes;
mod packets;
mod progress;
mod repairs;
mod room;
mod runner;
mod taken_back;
mod told;
mod verify;
mod warm;
mod wishes;

pub(crate) use begin::{resume, start};
pub(crate) use closing::{note_landed, still_noted};
pub(crate) use history::{History, Landing, Obstacle, Remark, Run, runs_of};
pub(crate) use known::Known;
pub(crate) use land_all::{
    OVER, Unlanded, clean_up, drop_landing_lane, first_open, how_to_land, landed_by, landing_ahead,
    landing_lane, require_base, require_met, require_none_open, unlanded,
};
pub(crate) use packets::packet_of;
pub(crate) use progress::{Lane as LaneAt, Picture, SPENT, Task as TaskAt};
pub(crate) use runner::run;
pub(crate) use taken_back::has_taken_back;
pub(crate) use wishes::ask;
