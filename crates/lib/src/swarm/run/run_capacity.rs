//! Capacity for runs over all batches and lanes (`agent.max_running`).

use proq_plan::schedule::event::ScheduleEvent;

use super::runner::Runner;
use crate::lane::state::lane_state::effective_state;
use crate::swarm::Error;
use crate::swarm::batch::log::EventFacts;

impl Runner<'_> {
    /// Returns the maximum number of concurrent runs over all batches and lanes; none for no limit.
    fn run_limit(&self) -> Option<usize> {
        self.project.settings.max_running
    }

    /// Returns whether the main loop has to check capacity regularly: runs wait to start, or a limit on runs
    /// is set.
    pub(super) fn must_poll_capacity(&self) -> bool {
        !self.pending_starts.is_empty() || self.run_limit().is_some()
    }

    /// Returns the number of running agents in lanes that are not this batch's.
    fn count_other_runs(&self) -> Result<usize, Error> {
        let mut count = 0;
        for lane in self.project.all_lanes()? {
            let is_own = lane.batch.as_ref().is_some_and(|in_batch| in_batch.batch == *self.batch.id());
            if !is_own && lane.state().is_claimed() && effective_state(self.project, &lane)?.0.is_busy() {
                count += 1;
            }
        }
        Ok(count)
    }

    /// Reports the current capacity to the scheduler if it has changed.
    pub(super) fn refresh_capacity(&mut self) -> Result<(), Error> {
        let capacity = match self.run_limit() {
            None => None,
            Some(limit) => Some(limit.saturating_sub(self.count_other_runs()?)),
        };
        if capacity != self.log_summary.run_capacity {
            self.pending_events
                .push_back((ScheduleEvent::CapacityChanged { capacity }, EventFacts::default()));
            self.process_pending_events()?;
        }
        Ok(())
    }

    /// Returns whether one more run may start now. The caller holds the lock under which runs of batches
    /// start.
    pub(super) fn has_capacity(&self) -> Result<bool, Error> {
        let Some(limit) = self.run_limit() else { return Ok(true) };
        Ok(self.count_other_runs()? + self.watched_runs.len() < limit)
    }
}
