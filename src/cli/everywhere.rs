//! Owns `git proq list --everywhere`: the lanes of every repository in which the user has made one.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::{Done, Failure, Session, list, report};
use crate::explain::Exit;
use crate::git;
use crate::lane::Project;
use crate::note::Listener;
use crate::store::{Repositories, path_form, repository_is_gone};

/// One repository, for programs.
#[derive(Serialize)]
struct Row {
    /// Its main checkout, or itself where it is bare.
    #[serde(with = "path_form")]
    path: PathBuf,
    /// What `list --json` says there.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    list: Option<Value>,
    /// Why it cannot be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    repositories: Vec<Row>,
}

pub(super) fn run(session: &Session, all: bool) -> Done {
    let list = Repositories::of_user();
    let known = list.as_ref().map_or(Ok(Vec::new()), Repositories::all)?;
    let (gone, here): (Vec<PathBuf>, Vec<PathBuf>) =
        known.into_iter().partition(|dir| repository_is_gone(dir));
    if let (false, Some(list)) = (gone.is_empty(), &list)
        && let Err(e) = list.prune()
    {
        session.ui.warn(format!("the list of repositories was not written: {e}"));
    }
    let mut rows = Vec::new();
    let mut exit = Exit::Done;
    for (n, git_dir) in here.iter().enumerate() {
        match look(session, git_dir, all, n == 0) {
            Ok(row) => rows.push(row),
            Err(failure) => {
                exit = failure.0.exit();
                let error = Some(failure.0.to_string());
                if !session.ui.json {
                    report::show(&failure, false);
                }
                rows.push(Row { path: git_dir.clone(), list: None, error });
            }
        }
    }
    if session.ui.json {
        session.ui.object(Answer { repositories: rows });
    } else if here.is_empty() {
        session.ui.say("no repository with lanes is known; each is from its next lane on");
        session.ui.hint("git proq spawn claude \"what to do\"");
    }
    Ok(exit)
}

/// Looks at one repository, and shows it to a person at once.
fn look(session: &Session, git_dir: &Path, all: bool, first: bool) -> Result<Row, Failure> {
    let project = Project::open(git_dir, Listener::silent())?;
    // `GIT_DIR` names one for all.
    if project.repo.common_dir() != git_dir {
        return Err(git::Error::NoRepository { dir: git_dir.to_owned(), by_variable: false }.into());
    }
    let path = project.repo.home().to_owned();
    if session.ui.json {
        let answer = list::answer_of(&project, all)?;
        return Ok(Row { path, list: Some(answer), error: None });
    }
    if !first {
        session.ui.answer("");
    }
    session.ui.answer(console::style(path.display()).bold().to_string());
    session.ui.answer(list::table_of(&project, all)?.unwrap_or_else(|| "no lanes".to_owned()));
    Ok(Row { path, list: None, error: None })
}
