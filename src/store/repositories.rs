//! Owns the user's list of the repositories that have lanes: one file for all of them, outside of any.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::lock::take_file;
use super::{Error, Guard, Limit, Record};
use crate::note::Listener;

/// How long is waited for whoever writes the list just now. It is a convenience.
const PATIENCE: Duration = Duration::from_secs(2);

/// The list, by the file that keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Repositories {
    file: PathBuf,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Listed {
    #[serde(default)]
    repository: Vec<Entry>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// The git directory that all its worktrees share.
    #[serde(with = "crate::store::path_form")]
    git_dir: PathBuf,
}

impl Record for Listed {
    const FORMAT: u32 = 1;
}

impl Repositories {
    /// The list of whoever runs this program; none where nobody knows a home folder.
    pub(crate) fn of_user() -> Option<Repositories> {
        let state = std::env::var_os("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|dir| dir.is_absolute())
            .or_else(|| std::env::home_dir().map(|home| home.join(".local/state")))?;
        Some(Repositories::at(&state))
    }

    /// The list below a folder for state.
    fn at(state: &Path) -> Repositories {
        Repositories { file: state.join("git-proq/repositories.toml") }
    }

    /// The git directories, oldest first.
    pub(crate) fn all(&self) -> Result<Vec<PathBuf>, Error> {
        let listed = Listed::find(&self.file)?.unwrap_or_default();
        Ok(listed.repository.into_iter().map(|entry| entry.git_dir).collect())
    }

    /// Adds a repository. Nothing is written when it is there.
    pub(crate) fn add(&self, git_dir: &Path) -> Result<(), Error> {
        if self.all()?.iter().any(|known| known == git_dir) {
            return Ok(());
        }
        self.change(|entries| {
            // Somebody may have been faster.
            if entries.iter().all(|entry| entry.git_dir != git_dir) {
                entries.push(Entry { git_dir: git_dir.to_owned() });
            }
        })
    }

    /// Takes those off the list that are still gone.
    pub(crate) fn prune(&self) -> Result<(), Error> {
        self.change(|entries| entries.retain(|entry| !is_gone(&entry.git_dir)))
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Entry>)) -> Result<(), Error> {
        let _lock = self.lock()?;
        let mut listed = Listed::find(&self.file)?.unwrap_or_default();
        let before = listed.clone();
        change(&mut listed.repository);
        if listed == before { Ok(()) } else { listed.save(&self.file) }
    }

    fn lock(&self) -> Result<Guard, Error> {
        let file = self.file.with_extension("lock");
        take_file(&file, "the list of repositories", Limit::For(PATIENCE), &Listener::silent())
    }
}

/// Whether a repository is not there any more, rather than out of reach.
pub(crate) fn is_gone(git_dir: &Path) -> bool {
    match git_dir.metadata() {
        Ok(meta) => !meta.is_dir(),
        Err(e) => matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_listed_once_and_goes_when_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let list = Repositories::at(&dir.path().join("state"));
        assert_eq!(list.all().unwrap(), [""; 0].map(PathBuf::from));
        let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
        std::fs::create_dir(&one).unwrap();
        for git_dir in [&one, &two, &one] {
            list.add(git_dir).unwrap();
        }
        assert_eq!(list.all().unwrap(), [one.clone(), two]);
        list.prune().unwrap();
        assert_eq!(list.all().unwrap(), [one]);
    }

    #[test]
    fn one_that_is_listed_is_added_without_a_write() {
        let dir = tempfile::tempdir().unwrap();
        let list = Repositories::at(dir.path());
        list.add(dir.path()).unwrap();
        let held = list.lock().unwrap();
        list.add(dir.path()).unwrap();
        drop(held);
    }

    #[test]
    fn a_list_of_a_later_program_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let list = Repositories::at(dir.path());
        list.add(dir.path()).unwrap();
        std::fs::write(&list.file, "format = 2\n").unwrap();
        assert!(list.add(&dir.path().join("new")).is_err() && list.prune().is_err());
        assert_eq!(std::fs::read_to_string(&list.file).unwrap(), "format = 2\n");
    }
}
