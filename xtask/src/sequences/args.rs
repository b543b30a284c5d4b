//! Options of `cargo xtask states`.

use std::path::PathBuf;

/// Run sequences of commands on random states of a checkout
///
/// A state has several paths, each in one combination of HEAD, index, disk, ignore rules and attributes; all combinations
/// are dealt evenly. From each state one sequence runs: previews, switches by hand, a landing, also below a preview, a
/// snapshot's way back, undo and redo, a carried lane, a discard; every other one with .git/index.lock held at some command,
/// a quarter of them with a command killed where the system lets one be traced. Afterwards the checkout must be bit for bit
/// what the sequence says, nothing that was written may be out of reach, and no message may be git's own. Ends with 1 when
/// that is not so, or when a combination was never visited.
#[derive(Debug, Clone, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// How many states
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(super) count: usize,
    /// Chooses them; printed by every run
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Only the state of this number; its folder is kept
    #[arg(long, value_name = "I", requires = "seed")]
    pub(super) only: Option<usize>,
    /// Only this sequence; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(super) sequence: Vec<String>,
    /// How many at once; five times as many as there are processors by default, since held locks are waited for
    #[arg(long, value_name = "J")]
    pub(super) jobs: Option<usize>,
    /// Stop after so many failures
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) most: usize,
    /// Print failures as they were found, without making them smaller
    #[arg(long)]
    pub(super) no_shrink: bool,
    /// Print what each refusal says
    #[arg(long)]
    pub(super) refusals: bool,
    /// The program; by default it is built here first
    #[arg(long, value_name = "PATH")]
    pub(super) proq: Option<PathBuf>,
}
