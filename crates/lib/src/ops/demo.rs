//! The repository of a demonstration: created from a folder of files, outside of any user's settings.

use std::path::Path;

use proq_git::program::command::Program;
use proq_store::paths::layout::Layout;

use super::error::Error;

/// Creates a git repository with branch `main` in a folder, and commits all files of the folder. `env` holds
/// names and values of environment variables for git.
///
/// # Errors
/// Fails when there is no git, or when git fails.
pub fn create_repository(dir: &Path, message: &str, env: &[(&str, &str)]) -> Result<(), Error> {
    let program = Program::find()?;
    for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-qm", message]] {
        let command = program.command_in(dir).args(args);
        drop(env.iter().fold(command, |command, (key, value)| command.env(key, value)).mutating().run()?);
    }
    Ok(())
}

/// Returns whether the repository whose main checkout is `dir` has records of git-proq.
pub fn has_lane_state(dir: &Path) -> bool {
    Layout::new(&dir.join(".git")).root().exists()
}
