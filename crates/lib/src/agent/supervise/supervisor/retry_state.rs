//! State of the retries of a request to the agent, and a planned retry.

use std::time::Duration;

use proq_base::money::NanoDollars;
use proq_base::run_class::RunClass;
use proq_store::base::clock::{Moment, now};
use proq_stream::base::limit_reset::LimitReset;

use crate::agent::launch::run_spec::RunSpec;
use crate::agent::run::watch::RunExit;
use crate::lane;
use crate::run::rewind::LaneFingerprint;

/// Reason why no further run starts automatically.
pub(crate) const BUDGET_SPENT_REASON: &str =
    "it has used up its budget, so it does not continue automatically";

/// State of the retries since the last request to the agent (its task or messages).
#[derive(Default)]
pub(crate) struct RetryState {
    /// Classes of the failed runs that were retried.
    pub(crate) failed_classes: Vec<RunClass>,
    /// Cost of all runs of the request.
    pub spent: NanoDollars,
    /// Whether the last run used up the budget.
    pub is_budget_spent: bool,
    /// Time at which the usage limit that ended the last run resets.
    pub(crate) limit_reset_at: Option<Moment>,
}

impl RetryState {
    /// Records the cost of a run, whether it used up the budget, and when its usage limit resets.
    pub(crate) fn record_run(&mut self, spec: &RunSpec, ended: &RunExit) {
        let cost = ended.recorded_summary.cost.map(|cost| cost.amount).unwrap_or_default();
        self.spent = self.spent.saturating_add(cost);
        self.is_budget_spent = spec.limits.budget.is_some_and(|budget| cost >= budget);
        self.limit_reset_at = ended.summary.limit_reset.as_ref().and_then(|reset| match reset {
            LimitReset::At(time) => Moment::from_system_time(*time),
            LimitReset::After(span) => Some(now().saturating_add(*span)),
            LimitReset::TimeOfDay(clock) => {
                now().next_clock_time((clock.hour, clock.minute), clock.date, clock.zone.as_deref())
            }
        });
    }
}

/// A planned retry of a failed run.
pub struct Retry {
    /// Delay before the retry.
    pub(crate) delay: Duration,
    /// Tip and uncommitted files of the lane at the end of the run, captured before the failure is recorded.
    pub(crate) end_fingerprint: Result<Option<LaneFingerprint>, lane::Error>,
    /// End of the run's detail, which announces the retry.
    pub(crate) announcement: String,
}
