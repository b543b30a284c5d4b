//! Owns the hidden command that a hook of a lane's fence is: `_hook FILE ARGS…`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::agent;

/// What the shims of a fence pass first.
const WORD: &str = "_hook";

/// Answers git, if it has started this program as a hook. That comes before all else: it is asked for every ref that moves.
pub(super) fn answer_git() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next().as_deref() != Some(WORD.as_ref()) {
        return None;
    }
    let shim = words.next().unwrap_or_default();
    let args: Vec<OsString> = words.collect();
    // What it tells of is handed out now, and not with the next command.
    crate::event::set_program(std::env::current_exe().ok(), false);
    let answer = std::env::current_dir().map(|dir| agent::answer(&dir, Path::new(&shim), &args));
    match answer {
        Ok(Ok(answer)) => {
            for line in answer.words {
                super::ui::part(&format!("{line}\n"));
            }
            Some(ExitCode::from(answer.code))
        }
        Ok(Err(e)) => {
            super::ui::part(&format!("git-proq: the repository's own hook could not be run: {e}\n"));
            Some(ExitCode::FAILURE)
        }
        // Git has no folder either.
        Err(_) => Some(ExitCode::SUCCESS),
    }
}
