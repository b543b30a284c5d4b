//! The hidden `_hook FILE ARGS…` command, which git runs as a hook of a lane's git guard.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::agent;

/// First argument that the hook scripts of the git guard pass.
const HOOK_COMMAND: &str = "_hook";

/// Runs as a git hook and returns the exit code, if git started this process as one. Checked before anything
/// else, because git runs the hook for every ref update.
pub(super) fn run_git_hook() -> Option<ExitCode> {
    let mut argv = std::env::args_os().skip(1);
    if argv.next().as_deref() != Some(HOOK_COMMAND.as_ref()) {
        return None;
    }
    let shim = argv.next().unwrap_or_default();
    let args: Vec<OsString> = argv.collect();
    // Events of the hook are delivered now, not with the next command.
    crate::event::set_program_info(std::env::current_exe().ok(), false);
    let outcome = std::env::current_dir().map(|dir| agent::run_hook(&dir, Path::new(&shim), &args));
    match outcome {
        Ok(Ok(outcome)) => {
            for line in outcome.messages {
                super::ui::print_inline(&format!("{line}\n"));
            }
            Some(ExitCode::from(outcome.exit_code))
        }
        Ok(Err(e)) => {
            super::ui::print_inline(&format!("git-proq: the repository's own hook could not be run: {e}\n"));
            Some(ExitCode::FAILURE)
        }
        // Without a current folder, git cannot work either.
        Err(_) => Some(ExitCode::SUCCESS),
    }
}
