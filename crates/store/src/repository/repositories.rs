//! List of the user's repositories that have lanes: a single file outside of all repositories.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proq_base::diagnostics::Listener;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::base::record::Record;
use crate::locks::lock::{LockGuard, WaitLimit, acquire_file_lock};

/// Timeout for another process that writes the list. It is short because the list is only a convenience.
const LIST_LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Handle of the file that lists the user's repositories with lanes.
#[derive(Debug, Clone)]
pub struct RepositoryList {
    /// Path of the file that has the list.
    file: PathBuf,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct RepositoryListFile {
    /// Repositories, oldest entry first.
    #[serde(default)]
    repository: Vec<RepositoryEntry>,
}

/// Repository on the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RepositoryEntry {
    /// Git directory that all worktrees of the repository share.
    #[serde(with = "crate::paths::path_form")]
    git_dir: PathBuf,
}

impl Record for RepositoryListFile {
    const FORMAT: u32 = 1;
}

impl RepositoryList {
    /// Opens the list of the current user. None where the home folder is unknown.
    pub fn open_for_user() -> Option<RepositoryList> {
        let state_dir = std::env::var_os("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|dir| dir.is_absolute())
            .or_else(|| std::env::home_dir().map(|home| home.join(".local/state")))?;
        Some(RepositoryList::in_state_dir(&state_dir))
    }

    /// Opens the list below a folder for state.
    fn in_state_dir(state_dir: &Path) -> RepositoryList {
        RepositoryList { file: state_dir.join("git-proq/repositories.toml") }
    }

    /// Returns the git directories, oldest entry first.
    pub fn git_dirs(&self) -> Result<Vec<PathBuf>, Error> {
        let listed = RepositoryListFile::load_if_exists(&self.file)?.unwrap_or_default();
        Ok(listed.repository.into_iter().map(|entry| entry.git_dir).collect())
    }

    /// Adds a repository. Nothing is written when it is already on the list.
    pub fn add(&self, git_dir: &Path) -> Result<(), Error> {
        if self.git_dirs()?.iter().any(|known| known == git_dir) {
            return Ok(());
        }
        self.update(|entries| {
            // Another process may have added it first.
            if entries.iter().all(|entry| entry.git_dir != git_dir) {
                entries.push(RepositoryEntry { git_dir: git_dir.to_owned() });
            }
        })
    }

    /// Removes the repositories that no longer exist from the list.
    pub fn prune(&self) -> Result<(), Error> {
        self.update(|entries| entries.retain(|entry| !is_gone(&entry.git_dir)))
    }

    /// Edits the list under its lock. Nothing is written when the edit changes nothing.
    fn update(&self, edit: impl FnOnce(&mut Vec<RepositoryEntry>)) -> Result<(), Error> {
        let _lock = self.lock()?;
        let mut listed = RepositoryListFile::load_if_exists(&self.file)?.unwrap_or_default();
        let before = listed.clone();
        edit(&mut listed.repository);
        if listed == before { Ok(()) } else { listed.save(&self.file) }
    }

    /// Acquires the lock of the list, waiting up to [`LIST_LOCK_TIMEOUT`].
    fn lock(&self) -> Result<LockGuard, Error> {
        let file = self.file.with_extension("lock");
        acquire_file_lock(
            &file,
            "the list of repositories",
            WaitLimit::AtMost(LIST_LOCK_TIMEOUT),
            &Listener::silent(),
        )
    }
}

/// Returns whether a repository no longer exists, as opposed to being unreachable.
pub fn is_gone(git_dir: &Path) -> bool {
    match git_dir.metadata() {
        Ok(meta) => !meta.is_dir(),
        Err(e) => matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_once_and_prunes_missing() {
        let dir = tempfile::tempdir().unwrap();
        let list = RepositoryList::in_state_dir(&dir.path().join("state"));
        assert_eq!(list.git_dirs().unwrap(), [""; 0].map(PathBuf::from));
        let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
        std::fs::create_dir(&one).unwrap();
        for git_dir in [&one, &two, &one] {
            list.add(git_dir).unwrap();
        }
        assert_eq!(list.git_dirs().unwrap(), [one.clone(), two]);
        list.prune().unwrap();
        assert_eq!(list.git_dirs().unwrap(), [one]);
    }

    #[test]
    fn adding_listed_repository_takes_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let list = RepositoryList::in_state_dir(dir.path());
        list.add(dir.path()).unwrap();
        let held = list.lock().unwrap();
        list.add(dir.path()).unwrap();
        drop(held);
    }

    #[test]
    fn newer_list_stays_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let list = RepositoryList::in_state_dir(dir.path());
        list.add(dir.path()).unwrap();
        std::fs::write(&list.file, "format = 2\n").unwrap();
        assert!(list.add(&dir.path().join("new")).is_err() && list.prune().is_err());
        assert_eq!(std::fs::read_to_string(&list.file).unwrap(), "format = 2\n");
    }
}
