//! Path of the running program, and whether its hooks are disabled.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Path of the running program, and whether its hooks are disabled.
static PROGRAM_INFO: OnceLock<ProgramInfo> = OnceLock::new();

struct ProgramInfo {
    program_path: std::io::Result<PathBuf>,
    hooks_disabled: bool,
}

/// Sets the path of this program, or why it is unknown, and whether hooks are disabled.
pub fn set_program_info(program_path: std::io::Result<PathBuf>, hooks_disabled: bool) {
    drop(PROGRAM_INFO.set(ProgramInfo { program_path, hooks_disabled }));
}

/// Returns whether hooks are disabled: by `--no-hooks`, or by `PROQ_NO_HOOKS`, which is set for hooks.
pub fn are_hooks_disabled() -> bool {
    let is_disabled_by_env =
        std::env::var_os("PROQ_NO_HOOKS").is_some_and(|value| !value.is_empty() && value != "0");
    is_disabled_by_env || PROGRAM_INFO.get().is_some_and(|program| program.hooks_disabled)
}

/// Returns the path of this program; none in a program that only links git-proq, whose events stay due until
/// git-proq is next started.
///
/// # Errors
/// The error with which the operating system refused the path.
pub fn program_path() -> Option<Result<&'static Path, &'static std::io::Error>> {
    PROGRAM_INFO.get().map(|info| info.program_path.as_deref())
}
