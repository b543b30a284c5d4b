//! Schedule of git's commit-graph writes: one process starts them, at most once a day.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use proq_base::fail_points;
use proq_store::base::atomic::create_private_dir;

use crate::lane::Project;

/// Time until the next attempt to write a commit graph, whether the last one succeeded or not.
const RETRY_INTERVAL: Duration = Duration::from_hours(24);

/// Starts writing a commit graph in the background, if a long history has none and the last attempt is old
/// enough. The graph only speeds up other commands, so errors are ignored.
pub fn start_commit_graph_if_due(project: &Project) {
    let marker = project.store.layout().commit_graph_attempt_marker();
    let attempted_at = marker.metadata().and_then(|meta| meta.modified()).ok();
    let is_expired = attempted_at.is_some_and(|at| at.elapsed().is_ok_and(|age| age >= RETRY_INTERVAL));
    if attempted_at.is_some() && !is_expired || !project.repo.lacks_commit_graph() {
        return;
    }
    if is_expired {
        drop(std::fs::remove_file(&marker));
    }
    fail_points::hit("graph.lacks");
    if marker.parent().is_none_or(|folder| create_private_dir(folder).is_err()) {
        return;
    }
    // The process that creates the marker file is the one to start git.
    if let Ok(mut file) = OpenOptions::new().write(true).create_new(true).open(&marker) {
        drop(writeln!(file, "{}", std::process::id()));
        drop(project.repo.start_writing_commit_graph());
    }
}
