//! Owns agents: how each kind is started, who watches it, and how it is stopped.

mod error;
mod follow_up;
mod job;
mod launch;
mod profile;
mod stop;
mod supervisor;
mod wait;

pub(crate) use error::Error;
pub(crate) use follow_up::{Because, land_by_itself};
pub(crate) use job::Job;
pub(crate) use launch::{launch, launch_to_resolve, require};
pub(crate) use profile::profiles;
pub(crate) use stop::stop;
pub(crate) use supervisor::supervise;
pub(crate) use wait::{Until, Waited, wait, wait_for};
