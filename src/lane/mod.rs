//! Owns lanes: their names and states, making and removing them, and what is known of them.

mod base;
mod checkout;
mod create;
mod error;
mod evidence;
mod leftovers;
mod list;
mod name;
mod place;
mod project;
mod remove;
mod snaps;
mod stray;
mod trash;

pub(crate) use base::{Base, resolve as resolve_base};
pub(crate) use checkout::Checkout;
pub(crate) use create::{NewLane, Plan, create, plan};
pub(crate) use error::Error;
pub(crate) use evidence::{Evidence, gather as gather_evidence, look as look_at};
pub(crate) use leftovers::{Leftovers, commit_leftovers};
pub(crate) use list::{View, effective_state, stray_worktrees, views};
pub(crate) use name::Name;
pub(crate) use place::{not_kept_out, prepare as keep_out};
pub(crate) use project::Project;
pub(crate) use remove::{Removed, Why, refuse, remove};
pub(crate) use stray::{remove_stray, retire_registration};
pub(crate) use trash::empty_expired;
