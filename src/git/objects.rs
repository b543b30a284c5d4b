//! Owns a throw-away object directory, so that looking ahead leaves nothing behind in the repository.

use std::path::{Path, PathBuf};

use super::{Command, Error, Repo};

/// A folder that new objects go to and that is removed when dropped. Nothing made in it may ever land.
#[derive(Debug)]
#[must_use]
pub(crate) struct ThrowAway {
    dir: PathBuf,
    real: PathBuf,
}

impl ThrowAway {
    /// Uses `dir`, which is made here.
    pub(crate) fn new(repo: &Repo, dir: &Path) -> Result<ThrowAway, Error> {
        std::fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
        Ok(ThrowAway { dir: dir.to_owned(), real: repo.common_dir().join("objects") })
    }

    /// Sends the new objects of a call here, if there is a here.
    pub(super) fn apply(here: Option<&ThrowAway>, call: Command) -> Command {
        match here {
            None => call,
            Some(here) => call
                .env("GIT_OBJECT_DIRECTORY", &here.dir)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &here.real),
        }
    }
}

impl Drop for ThrowAway {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.dir));
    }
}
