//! `cargo xtask merges`: comparison of the merge engine with git, on generated merges and on those of real
//! histories.

mod end_to_end;
mod fuzz;
mod replay;
mod workers;

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

/// Runs the chosen task.
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

/// Returns a seed for a run without `--seed`.
fn seed_from_clock() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    now.as_secs() * 1000 + u64::from(now.subsec_millis())
}

/// Returns `some` as a percentage of `all`.
fn percent(some: usize, all: usize) -> usize {
    (100 * some).checked_div(all).unwrap_or(0)
}

/// Creates a folder for this run.
fn create_folder() -> Outcome<std::path::PathBuf> {
    Ok(crate::run_env::create_folder("proq-merges-", "proq-merges-")?)
}
