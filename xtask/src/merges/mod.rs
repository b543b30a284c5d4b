//! Owns `cargo xtask merges`: the merge engine held against git, on made-up merges and on those of real histories.

mod crew;
mod fuzz;
mod real;
mod replay;

use std::process::ExitCode;

use crate::merging::Outcome;

/// Hold the merge engine against git
///
/// What no path of needs a decision is merged in process; the tree must be the one that git makes. Ends with 1 when
/// something differs.
#[derive(Debug, clap::Subcommand)]
#[command(verbatim_doc_comment)]
pub(crate) enum Task {
    Fuzz(fuzz::Args),
    Replay(replay::Args),
}

/// Runs one of them.
pub(crate) fn main(task: &Task) -> ExitCode {
    let good = match task {
        Task::Fuzz(args) => fuzz::run(args),
        Task::Replay(args) => replay::run(args),
    };
    match good {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

/// A seed for a run that was given none.
fn seed() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    now.as_secs() * 1000 + u64::from(now.subsec_millis())
}

/// How many of a whole, in hundredths.
fn percent(some: usize, all: usize) -> usize {
    (100 * some).checked_div(all).unwrap_or(0)
}

/// A folder for this run alone.
fn folder() -> Outcome<std::path::PathBuf> {
    Ok(crate::place::folder("proq-merges-", "proq-merges-")?)
}
