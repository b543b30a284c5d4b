//! Generated merges: histories that cover what a merge can meet, with git as the reference for the merge
//! engine.

mod compare;
mod contents;
mod generate;
mod git;
mod import;
mod paths;
mod setup;
mod side_edits;
mod tree;

pub(crate) use compare::{
    CHUNK, ChunkResult, ChunkSetup, Tally, compare_answer, compare_chunk, compare_exact,
};
pub(crate) use git::{GitOracle, GitVerdict, exit_reason, git, write_commit_graph};

/// Error of the harness itself, which ends the run. A difference between the engine and git is not an error.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Returns an error with this message.
fn fail<T>(message: impl Into<String>) -> Outcome<T> {
    Err(message.into().into())
}
