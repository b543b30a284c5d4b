//! The merge queue: who lands lanes now, and who waits for that.

use proq_store::base::clock::Moment;
use proq_store::locks::holder::LockHolder;
use proq_store::locks::merge_queue::{self, LandingRequest, QueueEntry};
use serde::Serialize;

use crate::lane::Project;
use crate::ops::error::Error;

/// One process in the merge queue.
#[derive(Debug, Serialize)]
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
    /// Names that the landing was given.
    #[serde(rename = "lanes")]
    pub lane_texts: Vec<String>,
    /// Branch to land on, if one was given.
    pub onto: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// Host of the process.
    pub host: Option<String>,
    /// Command line of the process.
    pub command: Option<String>,
    /// Time since which the process lands or waits; `None` if another version of git-proq wrote the entry.
    pub since: Option<Moment>,
    /// Whether the process runs on this host.
    #[serde(skip)]
    pub is_local: bool,
    /// Lanes and branch of the landing, in words; `None` if another version of git-proq wrote the entry.
    #[serde(skip)]
    pub description: Option<String>,
}

/// The merge queue, from the process that lands now to the last that waits.
#[derive(Debug, Serialize)]
pub struct QueueOutput {
    /// The processes, in the order of their turns.
    pub queue: Vec<QueueRow>,
}

/// Reads the merge queue.
///
/// # Errors
/// Fails when the queue cannot be read.
pub fn read_queue(project: &Project) -> Result<QueueOutput, Error> {
    let entries = merge_queue::queued_landings(project.store.locks())?;
    Ok(QueueOutput { queue: entries.into_iter().enumerate().map(|(n, entry)| queue_row(n, entry)).collect() })
}

/// Returns the row of the n-th entry, counted from 0. The first one is landing.
fn queue_row(n: usize, entry: Option<QueueEntry>) -> QueueRow {
    let (request, holder) = entry.map(|entry| (entry.request, entry.holder)).unzip();
    let description = request.as_ref().map(LandingRequest::describe);
    let (lanes, onto) = request.map(|request| (request.lanes, request.onto)).unwrap_or_default();
    QueueRow {
        position: n + 1,
        state: if n == 0 { "landing" } else { "waiting" },
        is_suspended: holder.as_ref().is_some_and(LockHolder::is_suspended),
        all: holder.is_some() && lanes.is_empty(),
        lane_texts: lanes,
        onto,
        pid: holder.as_ref().map(|h| h.pid),
        since: holder.as_ref().map(|h| h.since),
        is_local: holder.as_ref().is_some_and(LockHolder::is_on_this_host),
        host: holder.as_ref().map(|h| h.host.clone()),
        command: holder.map(|h| h.command),
        description,
    }
}
