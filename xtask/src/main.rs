//! Tasks of this repository: `cargo xtask TASK`.
#![deny(clippy::undocumented_unsafe_blocks)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod checkout;
mod copy;
mod dice;
mod dist;
mod documents;
mod hints;
mod histories;
mod history;
mod merges;
mod merging;
mod promises;
mod run_env;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sequences;
mod states;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod sweep;

/// Tasks of this repository that are programs of their own.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    /// What to do.
    #[command(subcommand)]
    task: Task,
}

/// The tasks.
#[derive(Debug, Subcommand)]
enum Task {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    CrashSweep(sweep::args::Args),
    /// Kill git-proq at every system call that changes something (Linux on x86_64 only)
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    CrashSweep,
    Histories(histories::Args),
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    States(sequences::args::Args),
    /// Run sequences of commands on random states of a checkout (Linux on x86_64 only)
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    States,
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Rivals(sweep::rivals::Args),
    /// Kill git-proq and other tools at every call that changes something, side by side (Linux on x86_64 only)
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    Rivals,
    #[command(subcommand)]
    Merges(merges::Task),
    Promises(promises::Args),
    Documents(documents::Args),
    Hints(hints::Args),
    Dist(dist::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.task {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Task::States(args) => sequences::main(&args),
        Task::Histories(args) => histories::main(&args),
        Task::Merges(task) => merges::main(&task),
        Task::Promises(args) => promises::main(&args),
        Task::Documents(args) => documents::main(&args),
        Task::Hints(args) => hints::main(&args),
        Task::Dist(args) => dist::main(&args),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Task::CrashSweep(args) => sweep::main(&args),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Task::Rivals(args) => sweep::rivals::main(&args),
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
        Task::CrashSweep | Task::States | Task::Rivals => {
            eprintln!("error: this task shares the sweep's tracer, which works on Linux on x86_64 only");
            ExitCode::FAILURE
        }
    }
}
