//! Owns what can go wrong with a landing, in the user's words.

use std::borrow::Cow;

use crate::explain::{Exit, Explain};
use crate::interrupt::Interrupted;
use crate::{git, lane, preview, store};

/// An error about a landing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The base moved again and again.
    #[error(
        "'{base}' could not be moved in {tries} tries: it, a lane or its worktree kept changing{}; nothing was moved",
        last.as_ref().map_or_else(String::new, |why| format!(", or is locked ({why})"))
    )]
    Restless {
        /// The base.
        base: String,
        /// How often it was tried.
        tries: u32,
        /// What git said last, if it was git that refused.
        last: Option<String>,
    },
    /// A worktree is in the middle of something that will move the base.
    #[error("a {what} of '{base}' is under way in {dir}; nothing was moved")]
    InUse {
        /// The base.
        base: String,
        /// What is under way.
        what: &'static str,
        /// Where.
        dir: String,
    },
    /// A landed change cannot be found on the base.
    #[error("lane '{lane}' was landed but its tip is not on '{base}'; it was kept")]
    Audit {
        /// The lane.
        lane: String,
        /// The base.
        base: String,
    },
    /// From a lane.
    #[error(transparent)]
    Lane(#[from] lane::Error),
    /// From a preview.
    #[error(transparent)]
    Preview(#[from] preview::Error),
    /// From git.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// From the store.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Error {
        Error::Store(interrupted.into())
    }
}

impl Explain for Error {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::Restless { .. } => vec![
                "try again; a lock file that nobody holds any more also does this: git status tells".into(),
            ],
            Error::InUse { what, .. } => {
                vec![format!("finish it there, or give it up: {}", git::give_up(what)).into()]
            }
            Error::Audit { .. } => vec!["please report this; look at: git log --graph --all".into()],
            Error::Lane(e) => e.hints(),
            Error::Preview(e) => e.hints(),
            Error::Git(e) => e.hints(),
            Error::Store(e) => e.hints(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::Audit { .. } => Exit::Bug,
            Error::Restless { .. } | Error::InUse { .. } => Exit::Refused,
            Error::Lane(e) => e.exit(),
            Error::Preview(e) => e.exit(),
            Error::Git(e) => e.exit(),
            Error::Store(e) => e.exit(),
        }
    }
}
