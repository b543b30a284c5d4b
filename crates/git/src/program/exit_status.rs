//! How a program ended: by itself, by a signal, or because git-proq stopped it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Highest exit code that git itself uses, for a wrong command line. A higher code is a shell's report of a
/// signal.
const MAX_GIT_EXIT_CODE: i32 = 129;

/// Returns whether git, or a shell that ran it, was ended by a signal.
pub(crate) fn is_kill(status: ExitStatus) -> bool {
    status.signal().is_some() || status.code().is_some_and(|code| code > MAX_GIT_EXIT_CODE)
}

/// Describes how a program exited, or that git-proq killed it.
pub(super) fn describe_exit(killed: bool, status: ExitStatus) -> String {
    match killed {
        true => "it was stopped: it took too long, or the command was interrupted".to_owned(),
        false => describe_exit_status(status),
    }
}

/// Describes an exit status, a signal included.
pub(crate) fn describe_exit_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
