//! Owns what the runs of a lane took. What else a run's record tells of that is added up here, and shown by whoever shows it.

use super::{Error, Project};
use crate::store::records::{Costs, LaneRecord, RunRecord};
use crate::store::{Record, now};

/// Adds up the runs of a lane.
///
/// # Errors
/// When a run's record cannot be read.
pub(crate) fn spent<P>(project: &Project, lane: &LaneRecord<P>) -> Result<Costs, Error> {
    let mut out = Costs::default();
    for attempt in 1..=lane.attempt {
        let path = project.store.layout().run_record(&lane.name, attempt);
        let Some(run) = RunRecord::find(&path)? else { continue };
        // One whose supervisor was killed has no end, and does not go on.
        let end = run.ended.or_else(|| (attempt == lane.attempt && lane.state.is_claimed()).then(now));
        out = out.plus(Costs {
            runs: 1,
            seconds: end.map_or(0, |end| end.since(run.started).as_secs()),
            tokens: run.account.tokens,
            cost: run.account.cost,
        });
    }
    Ok(out)
}
