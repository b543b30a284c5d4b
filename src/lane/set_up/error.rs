//! Owns what can go wrong while a lane is got ready.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::explain::{Exit, Explain};
use crate::process::Ended;

/// The way round.
const WITHOUT: &str = "or leave them out: git proq spawn --no-setup …";

/// An error about a lane's set-up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// Commands that came with the repository and that nobody has approved.
    #[error("{} has lane.setup commands that you have not approved: {}; nothing was made", path.display(), commands.join("; "))]
    Unapproved {
        /// The settings file.
        path: PathBuf,
        /// Their lines.
        commands: Vec<String>,
    },
    /// A command failed.
    #[error("'{command}' failed while lane '{name}' was got ready ({ended}){}{}", said(last), undone(*taken_back))]
    Failed {
        /// The lane.
        name: String,
        /// The line.
        command: String,
        /// How it ended.
        ended: Ended,
        /// The last line that it wrote, if it wrote any.
        last: String,
        /// Whether the lane, which was new, is taken back.
        taken_back: bool,
    },
}

fn said(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!(": {last}") }
}

fn undone(taken_back: bool) -> &'static str {
    if taken_back { "; no new lane was made" } else { "" }
}

impl Explain for SetUpError {
    fn is_decision(&self) -> bool {
        matches!(self, SetUpError::Unapproved { .. })
    }

    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            SetUpError::Unapproved { .. } => {
                vec!["let them run: git proq approve".into(), WITHOUT.into()]
            }
            SetUpError::Failed { name, ended, .. } => {
                let longer = matches!(ended, Ended::TimedOut(_));
                let longer = longer.then(|| "give them longer: git config proq.lane.setupLimit 30m".into());
                let log = format!("see what it wrote: git proq logs {name} --setup").into();
                [log].into_iter().chain(longer).chain([WITHOUT.into()]).collect()
            }
        }
    }

    fn exit(&self) -> Exit {
        match self {
            SetUpError::Unapproved { .. } => Exit::Refused,
            SetUpError::Failed { .. } => Exit::Agent,
        }
    }
}
