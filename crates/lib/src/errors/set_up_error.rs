//! Errors of a lane's set-up.

use std::path::PathBuf;

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;
use proq_base::process::limited_process::ExitOutcome;

/// Error of a lane's set-up.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SetUpError {
    /// Commands that came with the repository are not approved by the user.
    #[error("cannot set up the lane: you have not approved lane.setup of {}: {}", settings_file.display(), commands.join("; "))]
    #[decision]
    #[hint("read and approve them: git proq approve")]
    #[hint("or add --no-setup to skip them")]
    Unapproved {
        /// Settings file that names the commands.
        settings_file: PathBuf,
        /// Command lines.
        commands: Vec<String>,
    },
    /// A command failed or timed out.
    #[error("cannot set up lane '{name}': `{command}` failed ({ended}){}{}", output_suffix(last_output), undone_suffix(*is_rolled_back))]
    #[exit(Agent)]
    #[hint("read its output: git proq logs {name} --setup")]
    #[hint(
        if matches!(ended, ExitOutcome::TimedOut(_)),
        "raise the time limit: git config proq.lane.setupLimit 30m"
    )]
    #[hint(else, "or add --no-setup to skip it")]
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

/// Returns the last line of output as a clause after a colon; empty if there is none.
fn output_suffix(last_output: &str) -> String {
    if last_output.is_empty() { String::new() } else { format!(": {last_output}") }
}

/// Returns the clause that no lane was created; empty where the lane existed before.
fn undone_suffix(is_rolled_back: bool) -> &'static str {
    if is_rolled_back { "; the lane was not created" } else { "" }
}
