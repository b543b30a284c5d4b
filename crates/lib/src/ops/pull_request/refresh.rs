//! Refresh of the last known status of lanes' requests.

use std::time::{Duration, Instant};

use proq_base::lane_name::LaneName;
use proq_store::base::record::Record;
use proq_store::records::lane::LaneRecord;
use proq_store::records::pull_request::{PullRequest, PullRequestState, PullRequestStatus};

use super::forge::Forge;
use super::forge_error::ForgeError;
use super::forge_output::ReportedRequest;
use crate::lane::Project;
use crate::lane::inspection::pull_request_status::pull_request_status;

/// Number of requests that are read at the same time.
const MAX_PARALLEL: usize = 8;

/// Reads the requests of lanes on their forges, within `limit` altogether, and stores what the forges report.
/// A request that is known to be merged is not read again. Returns the lanes whose requests cannot be read.
pub fn refresh_requests<'a, P: 'a>(
    project: &Project,
    lanes: impl IntoIterator<Item = &'a LaneRecord<P>>,
    limit: Duration,
) -> Vec<(LaneName, ForgeError)> {
    let started = Instant::now();
    let is_final = |lane: &LaneRecord<P>| {
        pull_request_status(project, lane).is_some_and(|status| status.state == PullRequestState::Merged)
    };
    let requests: Vec<(&LaneName, &PullRequest)> = lanes
        .into_iter()
        .filter(|lane| !is_final(lane))
        .filter_map(|lane| Some((&lane.name, lane.pull_request.as_ref()?)))
        .collect();
    let mut failures = Vec::new();
    for group in requests.chunks(MAX_PARALLEL) {
        let rest = limit.saturating_sub(started.elapsed());
        let forges: Vec<_> = group.iter().map(|(_, request)| forge_of_request(project, request)).collect();
        let results: Vec<Result<ReportedRequest, ForgeError>> = std::thread::scope(|scope| {
            let read = |(forge, number): (Result<Forge, ForgeError>, u64)| {
                scope.spawn(move || forge?.read_request(number, rest))
            };
            let numbers = group.iter().map(|(_, request)| request.number);
            let threads: Vec<_> = forges.into_iter().zip(numbers).map(read).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        for ((lane, _), result) in group.iter().zip(results) {
            match result {
                Ok(reported) => store_status(project, lane, &reported.status),
                Err(e) => failures.push(((*lane).clone(), e)),
            }
        }
    }
    failures
}

/// Finds the program of a recorded request.
pub(super) fn forge_of_request(project: &Project, request: &PullRequest) -> Result<Forge, ForgeError> {
    let action = format!("read {} {}", request.program.request_noun(), request.number);
    Forge::find(project, request.program, request.repository.clone(), &action)
}

/// Stores the status of a lane's request. The forge has it too, so a failed write only makes it older.
pub(super) fn store_status(project: &Project, lane: &LaneName, status: &PullRequestStatus) {
    let path = project.store.layout().pull_request_status(lane);
    if path.parent().is_some_and(std::path::Path::exists) {
        drop(status.save_unsynced(&path));
    }
}
