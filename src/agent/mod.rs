//! Owns agents: how each kind is started, who watches it, and how it is stopped.

mod activity;
mod catalogue;
mod error;
mod follow_up;
mod gate;
mod installed;
mod job;
mod launch;
mod outfit;
mod profile;
mod prompt;
mod stop;
#[cfg_attr(not(test), expect(dead_code, unused_imports, reason = "the supervisor does not read streams yet"))]
mod stream;
mod supervisor;
mod template;

pub(crate) use activity::{HookInput, hear};
pub(crate) use catalogue::profiles;
pub(crate) use error::Error;
pub(crate) use follow_up::{Because, land_by_itself};
pub(crate) use gate::checks_of;
pub(crate) use installed::{Installed, installed};
pub(crate) use job::{Asked, Job};
pub(crate) use launch::{launch, launch_to_resolve, require, wait};
pub(crate) use profile::{Permission, Profile};
pub(crate) use stop::stop;
pub(crate) use supervisor::supervise;
