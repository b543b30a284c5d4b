//! Owns made-up merges: histories with whatever a merge can meet, judged by git, held against the merge engine.

mod change;
mod files;
mod git;
mod held;
mod import;
mod made;
mod names;
mod setup;
mod text;

pub(crate) use git::{Judge, Said, git, why, write_graph};
pub(crate) use held::{CHUNK, Found, Place, Tally, compare_answer, compare_exact, hold};

/// What goes wrong in the harness itself ends it; what it looks for is not an error of this kind.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// An error in words.
fn fail<T>(what: impl Into<String>) -> Outcome<T> {
    Err(what.into().into())
}
