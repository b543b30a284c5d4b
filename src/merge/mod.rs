//! Owns landing: which lanes may, stacked in memory, moved in one step; conflicts captured, the base untouched.

mod arrange;
mod collect;
mod conflict;
mod error;
mod fit;
mod group;
mod hooks;
mod land;
mod message;
mod order;
mod outcome;
mod plan;
mod request;
mod run;
mod stack;

pub(crate) use error::Error;
pub(crate) use order::Order;
pub use outcome::{Outcome, Report, Verdict};
pub(crate) use plan::{Line, Plan};
pub(crate) use request::Request;
pub(crate) use run::run;
