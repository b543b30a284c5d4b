//! `git-proq`: several coding agents on one repository at once, without losing work.

mod agent;
mod cli;
mod config;
mod event;
mod explain;
mod git;
mod interrupt;
mod lane;
mod merge;
mod note;
mod preview;
mod process;
mod store;

/// Runs the program with the arguments it was started with, and returns its exit code.
#[must_use]
pub fn main() -> std::process::ExitCode {
    cli::main()
}
