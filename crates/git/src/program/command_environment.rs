//! Environment of git commands: the variables that they inherit, and those that git-proq removes or sets.

use super::injected_config;

/// Git variables that describe the user or the machine, not one repository. git-proq drops all other `GIT_*`
/// variables.
const KEPT_VARIABLES: &[&str] = &[
    "GIT_ASKPASS",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SSL_CAINFO",
    "GIT_TEMPLATE_DIR",
    "GIT_TEST_ASSUME_DIFFERENT_OWNER",
];

/// Prefixes of variables that git-proq passes on because they describe the user or the machine.
const KEPT_PREFIXES: &[&str] =
    &["GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_SSH", "GIT_TRACE"];

/// Removes from a command's environment every `GIT_*` variable that ties it to another repository. Also
/// removes the setting that injects the git guard's hooks into an agent's run.
pub(crate) fn scrub_environment(command: &mut std::process::Command) {
    for (key, _) in std::env::vars_os() {
        let Some(name) = key.to_str() else { continue };
        let kept = KEPT_VARIABLES.contains(&name) || KEPT_PREFIXES.iter().any(|p| name.starts_with(p));
        if name.starts_with("GIT_") && !kept {
            command.env_remove(name);
        }
    }
    // git-proq may do what an agent in a lane may not, because it has its own rules and journal.
    match injected_config::user_config_parameters() {
        Some(parameters) => command.env(injected_config::CONFIG_VARIABLE, parameters),
        None => command.env_remove(injected_config::CONFIG_VARIABLE),
    };
}

/// Sets a command's commit dates to the earliest date that git knows, if the clock shows an earlier one: `git
/// fsck` reports a commit of such a date as broken.
pub(crate) fn set_fallback_date(command: &mut std::process::Command) {
    if std::time::SystemTime::now() >= std::time::UNIX_EPOCH {
        return;
    }
    for variable in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        if std::env::var_os(variable).is_none() {
            command.env(variable, "@0 +0000");
        }
    }
}
