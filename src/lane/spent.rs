//! Owns what the runs of a lane took. What else a run's record tells of that is added up here, and shown by whoever shows it.

use serde::Serialize;

use super::{Error, Project};
use crate::store::records::{Cost, LaneRecord, RunRecord, Tokens};
use crate::store::{Record, now};

/// What all runs of a lane took together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Spent {
    /// How many there were.
    pub(crate) runs: u32,
    /// How long they ran, one that is under way up to now.
    pub(crate) seconds: u64,
    /// What they used; none when no agent has told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Tokens>,
    /// What they cost, as far as that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Cost>,
}

/// Adds up the runs of a lane.
///
/// # Errors
/// When a run's record cannot be read.
pub(crate) fn spent<P>(project: &Project, lane: &LaneRecord<P>) -> Result<Spent, Error> {
    let mut out = Spent::default();
    for attempt in 1..=lane.attempt {
        let path = project.store.layout().run_record(&lane.name, attempt);
        let Some(run) = RunRecord::find(&path)? else { continue };
        // One whose supervisor was killed has no end, and does not go on.
        let end = run.ended.or_else(|| (attempt == lane.attempt && lane.state.is_claimed()).then(now));
        out.runs += 1;
        if let Some(used) = run.account.tokens {
            out.tokens = Some(out.tokens.unwrap_or_default().plus(used));
        }
        if let Some(cost) = run.account.cost {
            out.cost = Some(out.cost.map_or(cost, |sum| sum.plus(cost)));
        }
        out.seconds += end.map_or(0, |end| end.since(run.started).as_secs());
    }
    Ok(out)
}
