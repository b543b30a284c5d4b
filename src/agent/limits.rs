//! Owns when a run is ended although nobody asked: it takes too long, says nothing, costs too much, or does not end after it
//! has said that it is done.

use std::time::{Duration, Instant};

/// What a run may take. None: as much as it likes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// How long it may last.
    pub(crate) time: Option<Duration>,
    /// How long nothing may come of it.
    pub(crate) stall: Option<Duration>,
    /// What it may cost, in 1e-9 USD.
    pub(crate) budget: Option<u64>,
    /// How long it may go on after its last word.
    pub(crate) linger: Duration,
}

/// Why a run was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Somebody asked for it.
    Asked,
    /// It took longer than allowed.
    Time,
    /// Nothing came of it for too long.
    Stall,
    /// It cost more than allowed.
    Budget,
    /// It had said that it is done, and did not end.
    Lingering,
    /// It said the same over and over.
    Runaway,
    /// Its context is as full as it may get.
    Context,
    /// The window that it was in is gone.
    Closed,
    /// It could not be watched any more.
    Lost,
}

/// The clock of one run.
#[derive(Debug)]
pub(super) struct Clock {
    limits: Limits,
    started: Instant,
    /// When something came of it last.
    alive: Instant,
    /// When it said that it is done.
    over: Option<Instant>,
}

impl Clock {
    /// A run that starts `now`.
    pub(super) fn start(limits: Limits, now: Instant) -> Clock {
        Clock { limits, started: now, alive: now, over: None }
    }

    /// Something came of it.
    pub(super) fn alive(&mut self, now: Instant) {
        self.alive = now;
    }

    /// For how long nothing has come of it.
    pub(super) fn silent(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.alive)
    }

    /// Notes whether its last word has been said: another turn may begin after one.
    pub(super) fn set_over(&mut self, over: bool, now: Instant) {
        self.over = over.then(|| self.over.unwrap_or(now));
    }

    /// Whether `cost` is more than is allowed.
    pub(super) fn is_beyond(&self, cost: Option<u64>) -> bool {
        self.limits.budget.zip(cost).is_some_and(|(budget, cost)| cost > budget)
    }

    /// Whether nothing is left of what it may cost.
    pub(super) fn is_spent(&self, cost: Option<u64>) -> bool {
        self.limits.budget.zip(cost).is_some_and(|(budget, cost)| cost >= budget)
    }

    /// When to look next, and what it means when nothing has happened by then. None: never.
    pub(super) fn next(&self) -> Option<(Instant, Cause)> {
        let time = self.limits.time.map(|limit| (self.started + limit, Cause::Time));
        let stall = self.limits.stall.map(|limit| (self.alive + limit, Cause::Stall));
        let over = self.over.map(|since| (since + self.limits.linger, Cause::Lingering));
        // One that has said its last word is not stalled.
        let stall = stall.filter(|_| over.is_none());
        [over, time, stall].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn clock(limits: Limits) -> (Clock, Instant) {
        let now = Instant::now();
        (Clock::start(limits, now), now)
    }

    #[test]
    fn a_run_without_limits_is_never_looked_at() {
        assert_eq!(clock(Limits::default()).0.next(), None);
    }

    #[test]
    fn what_comes_first_counts() {
        let limits = Limits { time: Some(5 * MINUTE), stall: Some(2 * MINUTE), ..Limits::default() };
        let (mut clock, start) = clock(limits);
        assert_eq!(clock.next(), Some((start + 2 * MINUTE, Cause::Stall)));
        clock.alive(start + MINUTE);
        assert_eq!(clock.next(), Some((start + 3 * MINUTE, Cause::Stall)));
        clock.alive(start + 4 * MINUTE);
        assert_eq!(clock.next(), Some((start + 5 * MINUTE, Cause::Time)));
    }

    #[test]
    fn after_the_last_word_there_is_a_time_to_end_in() {
        let limits = Limits { stall: Some(MINUTE / 4), linger: MINUTE / 2, ..Limits::default() };
        let (mut clock, start) = clock(limits);
        clock.set_over(true, start + MINUTE);
        clock.set_over(true, start + 2 * MINUTE);
        assert_eq!(clock.next(), Some((start + MINUTE + MINUTE / 2, Cause::Lingering)));
        clock.set_over(false, start + 2 * MINUTE);
        assert_eq!(clock.next(), Some((start + MINUTE / 4, Cause::Stall)));
    }

    #[test]
    fn only_a_known_cost_can_be_too_much() {
        let (clock, _) = clock(Limits { budget: Some(1_000), ..Limits::default() });
        assert!(!clock.is_beyond(None) && !clock.is_beyond(Some(1_000)) && clock.is_beyond(Some(1_001)));
    }
}
