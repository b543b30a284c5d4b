//! The `git proq list --everywhere` command: the lanes of every repository in which the user has created one.

use std::path::{Path, PathBuf};

use proq_base::diagnostics::Listener;
use proq_base::explain::Exit;
use proq_git as git;
use proq_lib::lane::Project;
use proq_store::paths::path_form;
use proq_store::repository::repositories::{RepositoryList, is_gone as is_repository_gone};
use serde::Serialize;
use serde_json::Value;

use super::lane_list::summary;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure;
use crate::cli::invocation::failure::Failure;

/// JSON record of one repository.
#[derive(Serialize)]
struct RepositoryRow {
    /// The main checkout, or the repository itself if it is bare.
    #[serde(with = "path_form")]
    path: PathBuf,
    /// The output of `git proq list --json` in the repository.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    list: Option<Value>,
    /// The reason why the repository cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct EverywhereOutput {
    repositories: Vec<RepositoryRow>,
}

pub(crate) fn run(context: &CommandContext, all: bool) -> CommandResult {
    let list = RepositoryList::open_for_user();
    let known = list.as_ref().map_or(Ok(Vec::new()), RepositoryList::git_dirs)?;
    let (removed, present): (Vec<PathBuf>, Vec<PathBuf>) =
        known.into_iter().partition(|dir| is_repository_gone(dir));
    if let (false, Some(list)) = (removed.is_empty(), &list)
        && let Err(e) = list.prune()
    {
        context.ui.warn(format!("the list of repositories was not written: {e}"));
    }
    let mut rows = Vec::new();
    let mut exit = Exit::Success;
    for (n, git_dir) in present.iter().enumerate() {
        match list_repository(context, git_dir, all, n == 0) {
            Ok(row) => rows.push(row),
            Err(failure) => {
                exit = failure.0.exit();
                let error = Some(failure.0.to_string());
                if !context.ui.json {
                    failure::print_failure(&failure, false);
                }
                rows.push(RepositoryRow { path: git_dir.clone(), list: None, error });
            }
        }
    }
    if context.ui.json {
        context.ui.print_json(EverywhereOutput { repositories: rows });
    } else if present.is_empty() {
        context.ui.status("no repository with lanes is known; each is from its next lane on");
        context.ui.hint("git proq spawn claude \"what to do\"");
    }
    Ok(exit)
}

/// Reads the lanes of one repository, and prints them at once unless the output is JSON.
fn list_repository(
    context: &CommandContext,
    git_dir: &Path,
    all: bool,
    is_first: bool,
) -> Result<RepositoryRow, Failure> {
    let project = Project::open(git_dir, Listener::silent())?;
    // The `GIT_DIR` variable would select the same repository for every row.
    if project.repo.common_dir() != git_dir {
        return Err(
            git::Error::NoRepository { dir: git_dir.to_owned(), named_by_git_dir_variable: false }.into()
        );
    }
    let path = project.repo.command_dir().to_owned();
    if context.ui.json {
        let answer = summary::list_json(&project, all)?;
        return Ok(RepositoryRow { path, list: Some(answer), error: None });
    }
    if !is_first {
        context.ui.print_line("");
    }
    context.ui.print_line(console::style(path.display()).bold().to_string());
    context.ui.print_line(summary::list_table(&project, all)?.unwrap_or_else(|| "no lanes".to_owned()));
    Ok(RepositoryRow { path, list: None, error: None })
}
