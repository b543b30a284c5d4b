//! The merge queue: who is landing lanes, and who waits for that.

use proq_store::base::clock::Moment;
use proq_store::locks::holder::LockHolder;
use proq_store::locks::merge_queue;
use proq_store::locks::merge_queue::QueueEntry;
use serde::Serialize;

use super::error::Error;
use crate::lane::Project;

/// The merge queue.
#[derive(Debug, Clone, Serialize)]
pub struct QueueOutcome {
    /// Landings in order; the first one is landing.
    pub queue: Vec<QueueRow>,
}

/// One landing in the merge queue. Fields are none if another version of git-proq wrote the entry.
#[derive(Debug, Clone, Serialize)]
pub struct QueueRow {
    /// Place in the queue, from 1.
    pub position: usize,
    /// State of the landing: `landing` for the first, `waiting` for the others.
    pub state: &'static str,
    /// Whether Ctrl-Z suspended the process. Landings behind it then wait.
    #[serde(rename = "stopped")]
    pub is_suspended: bool,
    /// Whether the landing takes every lane that is done (`--all`), not named lanes.
    pub all: bool,
    /// Names of the lanes.
    pub lanes: Vec<String>,
    /// Branch to land on, if it is one for all lanes.
    pub onto: Option<String>,
    /// Process id of the landing.
    pub pid: Option<u32>,
    /// Name of the host that the process runs on.
    pub host: Option<String>,
    /// Command line of the process.
    pub command: Option<String>,
    /// Time since which the process lands or waits.
    pub since: Option<Moment>,
    /// Lanes and target branch in words.
    #[serde(skip)]
    pub description: Option<String>,
    /// Whether the process runs on another host.
    #[serde(skip)]
    pub is_on_other_host: bool,
}

/// Lists the merge queue. Nothing is written.
///
/// # Errors
/// Fails when the queue cannot be read.
pub fn list(project: &Project) -> Result<QueueOutcome, Error> {
    let entries = merge_queue::queued_landings(project.store.locks())?;
    let queue = entries.into_iter().enumerate().map(|(index, entry)| queue_row(index, entry)).collect();
    Ok(QueueOutcome { queue })
}

fn queue_row(index: usize, entry: Option<QueueEntry>) -> QueueRow {
    let (request, holder) = entry.map(|entry| (entry.request, entry.holder)).unzip();
    let description = request.as_ref().map(merge_queue::LandingRequest::describe);
    let (lanes, onto) = request.map(|request| (request.lanes, request.onto)).unwrap_or_default();
    QueueRow {
        position: index + 1,
        state: if index == 0 { "landing" } else { "waiting" },
        is_suspended: holder.as_ref().is_some_and(LockHolder::is_suspended),
        all: holder.is_some() && lanes.is_empty(),
        lanes,
        onto,
        description,
        is_on_other_host: holder.as_ref().is_some_and(|h| !h.is_on_this_host()),
        pid: holder.as_ref().map(|h| h.pid),
        since: holder.as_ref().map(|h| h.since),
        host: holder.as_ref().map(|h| h.host.clone()),
        command: holder.map(|h| h.command),
    }
}
