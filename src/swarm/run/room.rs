//! Owns room for runs over all batches and lanes (`agent.max_running`).

use super::runner::Runner;
use crate::lane::effective_state;
use crate::swarm::Error;
use crate::swarm::batch::Facts;
use crate::swarm::schedule::Event;

impl Runner<'_> {
    /// How many runs there may be at the same time, of whichever batch or lane.
    fn most(&self) -> Option<usize> {
        self.project.settings.max_running
    }

    /// Whether what is to start waits for others to end.
    pub(super) fn is_short_of_room(&self) -> bool {
        !self.starting.is_empty() || self.most().is_some()
    }

    /// How many agents are at work in lanes that are not this batch's.
    fn others(&self) -> Result<usize, Error> {
        let mut count = 0;
        for lane in self.project.every_lane()? {
            let own = lane.batch.as_ref().is_some_and(|of| of.batch == self.batch.id());
            if !own && lane.state.is_claimed() && effective_state(self.project, &lane)?.0.is_busy() {
                count += 1;
            }
        }
        Ok(count)
    }

    /// Tells the scheduler how much room there is, if that is another one than it knows of.
    pub(super) fn look_for_room(&mut self) -> Result<(), Error> {
        let room = match self.most() {
            None => None,
            Some(most) => Some(most.saturating_sub(self.others()?)),
        };
        if room != self.known.room {
            self.due.push_back((Event::Slots { room }, Facts::default()));
            self.take_due()?;
        }
        Ok(())
    }

    /// Whether one more run may start now. The caller holds the lock under which runs of batches start.
    pub(super) fn has_room(&self) -> Result<bool, Error> {
        let Some(most) = self.most() else { return Ok(true) };
        Ok(self.others()? + self.watched.len() < most)
    }
}
