//! Path of the running program, with which git-proq starts itself again.

use std::path::{Path, PathBuf};

use proq_lib::lane;

/// Returns the path of the running program, to start it again as a supervisor. If another program replaced
/// the file since the start, the path of the new file is returned.
pub(crate) fn current_program_path() -> std::io::Result<PathBuf> {
    let program_path = std::env::current_exe()?;
    // Linux appends " (deleted)" to the path of a program whose file was replaced while it ran.
    let replacement =
        program_path.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replacement.filter(|_| !program_path.exists()).unwrap_or(program_path))
}

/// Returns the path of the running program for a command that needs no repository.
pub(crate) fn require_program_path() -> Result<PathBuf, lane::Error> {
    current_program_path().map_err(lane::Error::io("read", Path::new("git-proq")))
}
