//! Owns what a landing is asked for with, and what it has to work with.

use crate::git::Oid;
use crate::store::Limit;
use crate::store::records::LaneRecord;

/// What a landing is asked for with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// Lanes by name, in this order.
    pub(crate) lanes: &'a [String],
    /// Every eligible lane, oldest first.
    pub(crate) all: bool,
    /// Another branch than each lane's own base.
    pub(crate) onto: Option<&'a str>,
    /// Lanes that failed or were stopped too, when named.
    pub(crate) force: bool,
    /// Keep landed lanes.
    pub(crate) keep: bool,
    /// Only say what would happen.
    pub(crate) dry_run: bool,
    /// How long to wait in the queue.
    pub(crate) patience: Limit,
}

/// A lane that may land.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Its record.
    pub(super) lane: LaneRecord,
    /// The commit that will land.
    pub(super) tip: Oid,
    /// The branch it lands on.
    pub(super) onto: String,
}
