//! Search for a program on `PATH`.

use std::path::{Path, PathBuf};

use super::Error;

/// Finds a program as a shell would: on `PATH`, or at a path relative to `dir`.
pub fn find_executable(program: &str, dir: &Path) -> Result<PathBuf, Error> {
    which::which_in(program, std::env::var_os("PATH"), dir)
        .map_err(|_| Error::NotFound { program: program.to_owned() })
}
