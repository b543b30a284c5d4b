//! Pull requests of lanes: their refresh, and their state as text.

use std::time::Duration;

use proq_base::explain::Explain;
use proq_lib::lane::Project;
use proq_lib::ops::pull_request::refresh::refresh_requests;
use proq_lib::types::{LaneRecord, PullRequest, PullRequestState, PullRequestStatus, RemoteChecks};

use crate::cli::invocation::context::CommandContext;
use crate::cli::terminal::ui;

/// Time limit of the refresh of all requests that a command shows.
const REFRESH_LIMIT: Duration = Duration::from_secs(8);

/// Reads the requests of these lanes on their forges, if they have any. Warns of those that cannot be read.
pub(crate) fn refresh<P>(context: &CommandContext, project: &Project, lanes: &[LaneRecord<P>]) {
    if lanes.iter().all(|lane| lane.pull_request.is_none()) {
        return;
    }
    project.listener.progress("reading pull requests".to_owned());
    let failures = refresh_requests(project, lanes, REFRESH_LIMIT);
    project.listener.progress("");
    let mut hints = Vec::new();
    for (lane, failure) in &failures {
        context.ui.warn(format!("lane '{lane}': {failure}"));
        hints.extend(failure.hints());
    }
    hints.dedup();
    for hint in &hints {
        context.ui.hint(hint);
    }
}

/// Formats a request for a table: `#7 open ✓`, with a sign for its checks.
pub(crate) fn short_text(request: &PullRequest, status: Option<&PullRequestStatus>) -> String {
    let Some(status) = status else { return request.number_text() };
    let checks = match status.checks.filter(|_| status.state == PullRequestState::Open) {
        None => "",
        Some(RemoteChecks::Passed) => " ✓",
        Some(RemoteChecks::Failed) => " ✗",
        Some(RemoteChecks::Pending) => " …",
    };
    format!("{} {}{checks}", request.number_text(), status.word())
}

/// Formats a request in words: `#7 open, checks passed, read 3m ago`.
pub(crate) fn long_text(request: &PullRequest, status: Option<&PullRequestStatus>) -> String {
    let Some(status) = status else { return request.number_text() };
    let checks = status.checks.map(|checks| format!(", checks {checks}")).unwrap_or_default();
    format!("{} {}{checks}, read {}", request.number_text(), status.word(), ui::age(status.refreshed))
}
