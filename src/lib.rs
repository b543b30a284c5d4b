//! `git-proq`: run several coding agents on one repository at the same time, without losing work.
//!
//! Programs call the use cases that the commands call: [`ops`] changes something, [`board`] returns what is
//! shown. The commands of `git proq` add arguments, questions and output; some of them, such as `doctor`, also
//! reach below these two. [`Proq`] has a method per use case:
//!
//! ```no_run
//! use git_proq::Proq;
//! use git_proq::ops::start::spawn::request::SpawnRequest;
//!
//! let proq = Proq::open(".")?;
//! for spawned in proq.spawn(&SpawnRequest::agent("claude", "implement payments"))?.lanes {
//!     proq.wait(&spawned.into_started()?.name)?;
//! }
//! for lane in proq.merge_all()?.report.lanes {
//!     println!("{}: {:?}", lane.lane, lane.result);
//! }
//! # Ok::<(), git_proq::Error>(())
//! ```
//!
//! A use case runs in the thread that calls it. Another thread cancels it by the token that its reporter
//! returns ([`Reporter::cancellation`]), with the effect of Ctrl-C on the command.

mod cli;

use crate::cli::app::program;
pub use proq_lib::board;
pub use proq_lib::facade::Proq;
pub use proq_lib::lane::Project;
pub use proq_lib::ops::error::Error;
pub use proq_lib::ops::reporter::{Reporter, SilentReporter};
#[doc(hidden)]
pub use proq_lib::probe;
pub use proq_lib::types;

/// Use cases: what a person can do with lanes and batches, each as a request, a plan and an outcome.
///
/// A module per use case. Its request is plain data; `plan` reads the repository, changes nothing, and
/// returns the changes to be made or the refusal; `execute` makes exactly these changes, refuses if the
/// repository has moved since, and returns the outcome. The outcome, or its type in [`crate::board`], serializes to the
/// command's JSON output.
pub mod ops {
    pub use proq_lib::ops::*;
    pub use proq_lib::swarm::ops as batches;
}

/// Runs the program with its command-line arguments and returns its exit code.
#[must_use]
pub fn main() -> std::process::ExitCode {
    program::main()
}
