//! Automatic end of a run: it takes too long, makes no progress, costs too much, or keeps running after the
//! agent reported that it is done.

use std::time::{Duration, Instant};

use proq_base::money::NanoDollars;

/// Limits of a run. None means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum duration of the run.
    pub time: Option<Duration>,
    /// Maximum time without progress.
    pub stall: Option<Duration>,
    /// Maximum cost.
    pub budget: Option<NanoDollars>,
    /// Maximum time between the agent's final message and its exit.
    pub linger: Duration,
}

/// Reason why git-proq stopped a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// A user or a program requested it.
    Requested,
    /// The run took longer than allowed.
    TimeLimit,
    /// The run made no progress for too long.
    Stall,
    /// The run cost more than allowed.
    OverBudget,
    /// The agent reported that it is done, and did not exit.
    DoneButRunning,
    /// The agent repeated the same output over and over.
    RepeatedOutput,
    /// The agent's context reached its limit.
    ContextFull,
    /// The agent's window was closed.
    WindowClosed,
    /// The supervisor could no longer watch the run.
    WatchFailed,
}

/// Clock of one run, which computes its deadlines.
#[derive(Debug)]
pub(crate) struct RunClock {
    limits: Limits,
    started: Instant,
    /// Time of the last progress.
    last_progress: Instant,
    /// Time when the agent reported that it is done.
    done_since: Option<Instant>,
}

impl RunClock {
    /// Creates the clock of a run that starts at `now`.
    pub fn start(limits: Limits, now: Instant) -> RunClock {
        RunClock { limits, started: now, last_progress: now, done_since: None }
    }

    /// Records progress of the run.
    pub(crate) fn record_progress(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// Returns the time since the last progress.
    pub(crate) fn idle_time(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.last_progress)
    }

    /// Records whether the agent has reported that it is done. Another turn may start after that.
    pub(crate) fn set_done(&mut self, is_done: bool, now: Instant) {
        self.done_since = is_done.then(|| self.done_since.unwrap_or(now));
    }

    /// Returns whether `cost` exceeds the budget. An unknown cost does not.
    pub(crate) fn exceeds_budget(&self, cost: Option<NanoDollars>) -> bool {
        self.limits.budget.zip(cost).is_some_and(|(budget, cost)| cost > budget)
    }

    /// Returns whether nothing is left of the budget. An unknown cost counts as less than the budget.
    pub(crate) fn is_budget_used_up(&self, cost: Option<NanoDollars>) -> bool {
        self.limits.budget.zip(cost).is_some_and(|(budget, cost)| cost >= budget)
    }

    /// Returns the next deadline, and the reason to stop the run if nothing happens before it. None without
    /// limits.
    pub(crate) fn next_deadline(&self) -> Option<(Instant, StopCause)> {
        let time = self.limits.time.map(|limit| (self.started + limit, StopCause::TimeLimit));
        let stall = self.limits.stall.map(|limit| (self.last_progress + limit, StopCause::Stall));
        let linger = self.done_since.map(|since| (since + self.limits.linger, StopCause::DoneButRunning));
        // A run whose agent is done is not stalled.
        let stall = stall.filter(|_| linger.is_none());
        [linger, time, stall].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

/// Waits until a deadline. Waits forever without one.
pub async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn new_clock(limits: Limits) -> (RunClock, Instant) {
        let now = Instant::now();
        (RunClock::start(limits, now), now)
    }

    #[test]
    fn has_no_deadline_without_limits() {
        assert_eq!(new_clock(Limits::default()).0.next_deadline(), None);
    }

    #[test]
    fn returns_the_earliest_deadline() {
        let limits = Limits { time: Some(5 * MINUTE), stall: Some(2 * MINUTE), ..Limits::default() };
        let (mut clock, start) = new_clock(limits);
        assert_eq!(clock.next_deadline(), Some((start + 2 * MINUTE, StopCause::Stall)));
        clock.record_progress(start + MINUTE);
        assert_eq!(clock.next_deadline(), Some((start + 3 * MINUTE, StopCause::Stall)));
        clock.record_progress(start + 4 * MINUTE);
        assert_eq!(clock.next_deadline(), Some((start + 5 * MINUTE, StopCause::TimeLimit)));
    }

    #[test]
    fn allows_linger_time_after_the_agent_is_done() {
        let limits = Limits { stall: Some(MINUTE / 4), linger: MINUTE / 2, ..Limits::default() };
        let (mut clock, start) = new_clock(limits);
        clock.set_done(true, start + MINUTE);
        clock.set_done(true, start + 2 * MINUTE);
        assert_eq!(clock.next_deadline(), Some((start + MINUTE + MINUTE / 2, StopCause::DoneButRunning)));
        clock.set_done(false, start + 2 * MINUTE);
        assert_eq!(clock.next_deadline(), Some((start + MINUTE / 4, StopCause::Stall)));
    }

    #[test]
    fn exceeds_budget_only_with_known_cost() {
        let (clock, _) = new_clock(Limits { budget: Some(NanoDollars::new(1_000)), ..Limits::default() });
        assert!(
            !clock.exceeds_budget(None)
                && !clock.exceeds_budget(Some(NanoDollars::new(1_000)))
                && clock.exceeds_budget(Some(NanoDollars::new(1_001)))
        );
    }
}
