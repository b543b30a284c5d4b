//! Owns starting and ending programs that are not git: agents, checks, and this program itself.

mod child;
mod converse;
mod descriptors;
mod error;
mod group;
mod hear;
mod identity;
mod lean;
mod pass_on;
mod strays;
mod wake;
mod watched;

pub(crate) use child::{Spawned, Start, inherited};
pub(crate) use converse::Answered;
pub(crate) use error::Error;
pub(crate) use group::{
    ask_group, die_of, end_group, end_holders, group_lives, leave_session, signal_process,
};
pub(crate) use hear::{Heard, Hearing};
pub(crate) use identity::{birth_of, has_ended, is_ancestor, is_same, lives};
pub(crate) use lean::let_go_of_code;
pub(crate) use pass_on::PassOn;
pub(crate) use strays::{MARK, OF_A_RUN, adopt_orphans, end_marked, end_strays};
pub(crate) use wake::{hear_wakes, wake};
pub use watched::Ended;
pub(crate) use watched::Watched;

/// Finds a program as a shell would: on `PATH`, or at a path relative to `dir`.
pub(crate) fn find(program: &str, dir: &std::path::Path) -> Result<std::path::PathBuf, Error> {
    which::which_in(program, std::env::var_os("PATH"), dir)
        .map_err(|_| Error::NotFound { program: program.to_owned() })
}
