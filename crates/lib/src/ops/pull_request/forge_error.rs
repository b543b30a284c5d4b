//! Errors of the programs that speak to a forge.

use std::time::Duration;

use proq_base::explain::{Explain, list_lines, shell_quote};
use proq_store::records::pull_request::ForgeProgram;

/// Number of output lines of a failed program that an error quotes.
const MAX_QUOTED_LINES: usize = 5;

/// Reason why a forge did not answer.
#[derive(Debug, thiserror::Error, Explain)]
pub enum ForgeError {
    /// The program is not installed.
    #[error("cannot {action}: {program} is not installed")]
    #[hint("install it: {}", install_command(*program))]
    NotInstalled {
        /// What the program was to do, as a verb with its object.
        action: String,
        /// The program.
        program: ForgeProgram,
    },
    /// The user is not logged in.
    #[error("cannot {action}: {program} is not logged in{}", host.as_ref().map(|host| format!(" to {host}")).unwrap_or_default())]
    #[hint("log in: {}", login_command(*program, host.as_deref()))]
    LoggedOut {
        /// What the program was to do.
        action: String,
        /// The program.
        program: ForgeProgram,
        /// Host of the forge, if it is known.
        host: Option<String>,
    },
    /// The program did not end in time.
    #[error("cannot {action}: {program} did not answer within {} s", limit.as_secs())]
    TimedOut {
        /// What the program was to do.
        action: String,
        /// The program.
        program: ForgeProgram,
        /// The time limit.
        limit: Duration,
    },
    /// The program failed.
    #[error("cannot {action}: {program} failed ({exit}):{}", list_lines(output))]
    Failed {
        /// What the program was to do.
        action: String,
        /// The program.
        program: ForgeProgram,
        /// Exit of the program, as text.
        exit: String,
        /// Last lines of its output.
        output: Vec<String>,
    },
    /// The program answered with an issue of another number, or of another repository.
    #[error("cannot {action}: {program} answered with {found}; nothing was made")]
    OtherIssue {
        /// What the program was to do.
        action: String,
        /// The program.
        program: ForgeProgram,
        /// What was found, and how it differs from what was requested.
        found: String,
    },
    /// The program printed something else than it is documented to.
    #[error("cannot {action}: cannot read the output of {program}: {reason}")]
    #[hint("see which version it is: {program} --version")]
    Unreadable {
        /// What the program was to do.
        action: String,
        /// The program.
        program: ForgeProgram,
        /// Why the output cannot be read.
        reason: String,
    },
}

/// Returns the last lines of a program's output that have text.
pub(super) fn quoted_lines(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    match lines.len() {
        0 => vec!["it printed nothing".to_owned()],
        count => {
            lines[count.saturating_sub(MAX_QUOTED_LINES)..].iter().map(|line| (*line).to_owned()).collect()
        }
    }
}

/// Returns the command that installs a program on this system.
fn install_command(program: ForgeProgram) -> String {
    match cfg!(target_os = "macos") {
        true => format!("brew install {program}"),
        false => format!("sudo apt-get install {program}"),
    }
}

/// Returns the command that logs in to a host.
fn login_command(program: ForgeProgram, host: Option<&str>) -> String {
    let host = host.map(|host| format!(" --hostname {}", shell_quote(host))).unwrap_or_default();
    format!("{program} auth login{host}")
}
