//! Owns when git is asked for a graph of commits: once a day at most, by one process.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use super::Project;
use crate::fault;
use crate::store::make_private;

/// Before that it is not asked again, whatever came of it.
const DAY: Duration = Duration::from_hours(24);

/// Has one written in the background, where a long history has none and that was not tried lately. It only makes other commands
/// faster, so nothing is said of what goes wrong.
pub(crate) fn have_commit_graph(project: &Project) {
    let tried = project.store.layout().graph_tried();
    let at = tried.metadata().and_then(|meta| meta.modified()).ok();
    let is_old = at.is_some_and(|at| at.elapsed().is_ok_and(|age| age >= DAY));
    if at.is_some() && !is_old || !project.repo.lacks_commit_graph() {
        return;
    }
    if is_old {
        drop(std::fs::remove_file(&tried));
    }
    fault::point("graph.lacks");
    if tried.parent().is_none_or(|folder| make_private(folder).is_err()) {
        return;
    }
    // Who makes the file is the one to ask.
    if let Ok(mut file) = OpenOptions::new().write(true).create_new(true).open(&tried) {
        drop(writeln!(file, "{}", std::process::id()));
        drop(project.repo.begin_commit_graph());
    }
}
