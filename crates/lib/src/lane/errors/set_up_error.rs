//! Errors of a lane's set-up.

use std::borrow::Cow;
use std::path::PathBuf;

use proq_base::explain::{Exit, Explain};
use proq_base::lane_name::LaneName;
use proq_base::process::limited_process::ExitOutcome;

/// Hint for creating a lane without the commands.
const SKIP_COMMANDS_HINT: &str = "or leave them out: git proq spawn --no-setup …";

/// Error of a lane's set-up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// Commands that came with the repository are not approved by the user.
    #[error("{} has lane.setup commands that you have not approved: {}; nothing was made", path.display(), commands.join("; "))]
    Unapproved {
        /// Settings file that names the commands.
        path: PathBuf,
        /// Command lines.
        commands: Vec<String>,
    },
    /// A command failed or timed out.
    #[error("'{command}' failed while lane '{name}' was got ready ({ended}){}{}", output_suffix(last_output), undone_suffix(*is_rolled_back))]
    Failed {
        /// Name of the lane.
        name: LaneName,
        /// Command line.
        command: String,
        /// Exit status or timeout of the command.
        ended: ExitOutcome,
        /// Last line of the command's output; empty if there is none.
        last_output: String,
        /// Whether the creation of the lane is rolled back.
        is_rolled_back: bool,
    },
}

fn output_suffix(last_output: &str) -> String {
    if last_output.is_empty() { String::new() } else { format!(": {last_output}") }
}

fn undone_suffix(is_rolled_back: bool) -> &'static str {
    if is_rolled_back { "; no new lane was made" } else { "" }
}

impl Explain for SetUpError {
    fn is_decision(&self) -> bool {
        matches!(self, SetUpError::Unapproved { .. })
    }

    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            SetUpError::Unapproved { .. } => {
                vec!["let them run: git proq approve".into(), SKIP_COMMANDS_HINT.into()]
            }
            SetUpError::Failed { name, ended, .. } => {
                let longer = matches!(ended, ExitOutcome::TimedOut(_));
                let longer = longer.then(|| "give them longer: git config proq.lane.setupLimit 30m".into());
                let log = format!("see what it wrote: git proq logs {name} --setup").into();
                [log].into_iter().chain(longer).chain([SKIP_COMMANDS_HINT.into()]).collect()
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
