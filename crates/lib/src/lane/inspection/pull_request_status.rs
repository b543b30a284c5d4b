//! Last known status of the pull or merge request of a lane.

use proq_git::CommitId;
use proq_store::base::record::Record;
use proq_store::records::lane::LaneRecord;
use proq_store::records::pull_request::{PullRequestState, PullRequestStatus};

use crate::lane::Project;

/// Returns the last known status of a lane's request, from the store; none without a request, and before the
/// first report of its forge. A file that cannot be read counts as none.
#[must_use]
pub fn pull_request_status<P>(project: &Project, lane: &LaneRecord<P>) -> Option<PullRequestStatus> {
    let request = lane.pull_request.as_ref()?;
    let path = project.store.layout().pull_request_status(&lane.name);
    let status = PullRequestStatus::load_if_exists(&path).ok().flatten()?;
    (status.number == request.number).then_some(status)
}

/// Request of a lane that was merged on its forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedRequest {
    /// The request, such as `pull request #7`.
    pub name: String,
    /// Newest commit of the lane that was merged.
    pub head: CommitId,
}

/// Returns the request of a lane that was merged on its forge, by merge, squash or rebase.
#[must_use]
pub fn merged_request<P>(project: &Project, lane: &LaneRecord<P>) -> Option<MergedRequest> {
    let status = pull_request_status(project, lane)?;
    let request = lane.pull_request.as_ref()?;
    let name = format!("{} {}", request.program.request_noun(), request.number_text());
    let head = status.head.filter(|_| status.state == PullRequestState::Merged)?;
    Some(MergedRequest { name, head })
}
