//! The lanes of every repository in which the user has created one.

use std::path::{Path, PathBuf};

use proq_base::diagnostics::Listener;
use proq_base::explain::Exit;
use proq_git as git;
use proq_store::paths::path_form;
use proq_store::repository::repositories::{RepositoryList, is_gone};
use serde::Serialize;

use super::rows::list_output::{ListOutput, to_output};
use super::rows::load_list::{ListRequest, load_list};
use crate::lane::Project;
use crate::ops::error::Error;

/// JSON record of one repository.
#[derive(Debug, Serialize)]
pub struct RepositoryRow {
    /// The main checkout, or the repository itself if it is bare.
    #[serde(with = "path_form")]
    pub path: PathBuf,
    /// The list of the repository's lanes.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub list: Option<ListOutput>,
    /// The reason why the repository cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// JSON output: all known repositories.
#[derive(Debug, Serialize)]
pub struct EverywhereOutput {
    /// The repositories, in the order in which they became known.
    pub repositories: Vec<RepositoryRow>,
}

/// The repositories that are known to have had lanes.
#[derive(Debug)]
pub struct KnownRepositories {
    /// Git folders of those that exist.
    pub git_dirs: Vec<PathBuf>,
    /// Reason why those that are gone could not be removed from the list; none if they were, or if none is gone.
    pub prune_error: Option<String>,
}

impl KnownRepositories {
    /// Reads the user's list of repositories, and removes from it those that are gone.
    ///
    /// # Errors
    /// Fails when the list exists and cannot be read.
    pub fn load() -> Result<KnownRepositories, Error> {
        let Some(list) = RepositoryList::open_for_user() else {
            return Ok(KnownRepositories { git_dirs: Vec::new(), prune_error: None });
        };
        let (removed, git_dirs): (Vec<PathBuf>, Vec<PathBuf>) =
            list.git_dirs()?.into_iter().partition(|dir| is_gone(dir));
        let prune_error = if removed.is_empty() { None } else { list.prune().err().map(|e| e.to_string()) };
        Ok(KnownRepositories { git_dirs, prune_error })
    }

    /// Lists the lanes of each repository. A repository that cannot be read has the reason in its row, and the
    /// exit code is that of the last such error.
    #[must_use]
    pub fn list_lanes(&self, request: ListRequest<'_>) -> (EverywhereOutput, Exit) {
        let mut exit = Exit::Success;
        let load = |path: &PathBuf| {
            RepositoryRow::load(path, request).unwrap_or_else(|e| {
                exit = e.0.exit();
                RepositoryRow { path: path.clone(), list: None, error: Some(e.0.to_string()) }
            })
        };
        (EverywhereOutput { repositories: self.git_dirs.iter().map(load).collect() }, exit)
    }
}

impl RepositoryRow {
    /// Lists the lanes of the repository with this git folder.
    fn load(git_dir: &Path, request: ListRequest<'_>) -> Result<RepositoryRow, Error> {
        let project = open_repository(git_dir)?;
        let list = to_output(&project, &load_list(&project, request, &mut |_| {})?);
        Ok(RepositoryRow { path: project.repo.command_dir().to_owned(), list: Some(list), error: None })
    }
}

/// Opens the repository with this git folder.
///
/// # Errors
/// Fails when the folder is no repository, or when the variable `GIT_DIR` selects another one.
pub fn open_repository(git_dir: &Path) -> Result<Project, Error> {
    let project = Project::open(git_dir, Listener::silent())?;
    if project.repo.common_dir() != git_dir {
        return Err(
            git::Error::NoRepository { dir: git_dir.to_owned(), named_by_git_dir_variable: false }.into()
        );
    }
    Ok(project)
}
