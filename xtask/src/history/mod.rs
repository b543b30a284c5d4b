//! Owns random histories: a person, lanes and git-proq work on one repository in any order, and a model says what must
//! come of each step.

mod bench;
mod choose;
mod expect;
mod land;
mod look;
mod model;
mod objects;
mod parts;
mod play;
mod shrink;
mod step;
mod undo;
mod visit;

pub(crate) use bench::{Bench, Tally};
pub(crate) use choose::choose;
pub(crate) use play::{RAW, play};
pub(crate) use shrink::shrink;

/// What can go wrong in the harness itself ends it; what it looks for is not an error of this kind.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// An error in words.
fn fail<T>(what: impl Into<String>) -> Outcome<T> {
    Err(what.into().into())
}
