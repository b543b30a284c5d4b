//! Owns landing: which lanes may, stacked in memory, moved in one step; conflicts captured, the base untouched.

mod collect;
mod conflict;
mod error;
mod fit;
mod hooks;
mod land;
mod message;
mod outcome;
mod request;
mod run;
mod stack;

pub(crate) use error::Error;
pub use outcome::{Outcome, Report, Verdict};
pub(crate) use request::Request;
pub(crate) use run::run;
