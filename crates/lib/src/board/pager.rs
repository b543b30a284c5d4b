//! The user's pager, as git chooses it.

use std::path::Path;

use proq_base::interrupt;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::find_executable::find_executable;
use proq_git::program::command::Program;

/// Shows a text in the pager that git would use: `GIT_PAGER`, `core.pager`, `PAGER` or `less -FRX`. Returns whether
/// it was shown: not if the pager is `cat` or empty, or cannot be started.
#[must_use]
pub fn show_in_pager(dir: &Path, text: &[u8]) -> bool {
    let setting = Program::find().and_then(|git| git.command_in(dir).args(["var", "GIT_PAGER"]).run());
    let Ok(setting) = setting else { return false };
    let pager = String::from_utf8_lossy(&setting.stdout).trim().to_owned();
    let Ok(shell) = find_executable("sh", dir) else { return false };
    if matches!(pager.as_str(), "" | "cat") {
        return false;
    }
    // Ctrl-C is for the pager.
    interrupt::defer_signals();
    let defaults = [("LESS", "FRX"), ("LV", "-c")];
    let unset = defaults.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let variables = unset.map(|(name, value)| (name.into(), value.into()));
    let command = CommandBuilder::new(&shell, dir).args(["-c", pager.as_str()]).envs(variables);
    command.run_as_pager(text).is_ok_and(|status| status.code() != Some(COMMAND_NOT_FOUND))
}

/// Exit code of a shell that does not find a command.
const COMMAND_NOT_FOUND: i32 = 127;
