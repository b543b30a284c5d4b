//! Owns landing: which lanes may, stacked in memory, checked, moved in one step; conflicts captured, the base untouched.

mod arrange;
mod collect;
mod conflict;
mod error;
mod failed;
mod fit;
mod greens;
mod group;
mod hooks;
mod land;
mod message;
mod order;
mod outcome;
mod plan;
mod request;
mod run;
mod runs;
mod search;
mod slot;
mod stack;
mod verify;

pub(crate) use error::Error;
pub(crate) use order::Order;
pub use outcome::{Check, Checks, Outcome, Report, Verdict};
pub(crate) use plan::{Line, Plan};
pub(crate) use request::Request;
pub(crate) use run::run;
