//! Costs of a lane: the sum over the records of its runs. Displaying them is left to the callers.

use std::time::Duration;

use proq_store::Store;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::draft::RunCosts;
use proq_store::records::lane::LaneRecord;
use proq_store::records::run::RunRecord;

use crate::lane::Error;

/// Returns the sum of the costs of all runs of a lane.
///
/// # Errors
/// Fails if a run's record cannot be read.
pub(crate) fn total_costs<P>(store: &Store, lane: &LaneRecord<P>) -> Result<RunCosts, Error> {
    let mut out = RunCosts::default();
    for run_number in RunNumber::first().through(lane.last_run) {
        let path = store.layout().run_record(&lane.name, run_number);
        let Some(run) = RunRecord::load_if_exists(&path)? else { continue };
        // A run whose supervisor was killed has no end time, and is not running any more.
        let end = run.ended.or_else(|| (run_number == lane.last_run && lane.state().is_claimed()).then(now));
        out = out.plus(RunCosts {
            runs: 1,
            duration: end.map_or(Duration::ZERO, |end| end.duration_since(run.started)),
            tokens: run.summary.tokens,
            cost: run.summary.cost,
        });
    }
    Ok(out)
}
