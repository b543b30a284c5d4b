//! Environment variables that check commands get, and which of them can affect a result.

use std::ffi::{OsStr, OsString};

use proq_base::process::command_builder::inherited_vars;
use proq_base::process::strays::{RUN_CONTEXT_VARS, RUN_MARK_VAR};

/// Variables that identify a terminal or session and do not affect a command's result. Checks do not get
/// them.
const SESSION_VARIABLES: &[&str] = &[
    "_",
    "COLUMNS",
    "GPG_TTY",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STY",
    "TMUX",
    "TMUX_PANE",
    "VTE_VERSION",
    "WINDOWID",
    "WINDOWPATH",
    "XDG_SEAT",
    "XDG_SESSION_ID",
    "XDG_SESSION_PATH",
    "XDG_VTNR",
];

/// Prefixes of further session variables.
const SESSION_PREFIXES: &[&str] =
    &["ALACRITTY_", "ITERM_", "KITTY_", "KONSOLE_", "TERM_", "WEZTERM_", "XDG_MENU_", "XDG_SEAT_"];

/// Variables that git-proq sets for its child processes and that do not affect a command's result.
const UNCACHED_VARIABLES: &[&str] = &["PROQ_GIT_HOOK", "PROQ_VERIFY", RUN_MARK_VAR];

/// Prefix of variables that git-proq's own tests set.
const TEST_VARIABLE_PREFIX: &str = "PROQ_TEST_";

/// Returns the environment variables of this process that a check gets, sorted by name.
pub(crate) fn check_environment() -> Vec<(OsString, OsString)> {
    let mut env: Vec<_> =
        inherited_vars(RUN_CONTEXT_VARS).filter(|(name, _)| !is_session_variable(name)).collect();
    env.sort();
    env
}

fn is_session_variable(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    SESSION_VARIABLES.contains(&name.as_ref()) || SESSION_PREFIXES.iter().any(|p| name.starts_with(p))
}

/// Returns whether a variable of a check can affect its result.
pub(crate) fn affects_result(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !UNCACHED_VARIABLES.contains(&name.as_ref()) && !name.starts_with(TEST_VARIABLE_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_session_variables_and_keys_on_the_rest() {
        for name in [
            "PATH",
            "CI",
            "DISPLAY",
            "TERM",
            "SSH_AUTH_SOCK",
            "GIT_AUTHOR_NAME",
            "PROQ_FAST",
            "XDG_DATA_DIRS",
        ] {
            assert!(!is_session_variable(name.as_ref()) && affects_result(name.as_ref()), "{name}");
        }
        for name in ["PWD", "SHLVL", "TERM_PROGRAM", "SSH_TTY", "TMUX_PANE", "XDG_SESSION_ID"] {
            assert!(is_session_variable(name.as_ref()), "{name}");
        }
        for name in ["PROQ_RUN", "PROQ_TEST_NOW"] {
            assert!(!is_session_variable(name.as_ref()) && !affects_result(name.as_ref()), "{name}");
        }
    }
}
