//! Retries of failed runs: whether a run is retried, and when, by the class of its failure.

use std::time::Duration;

use proq_base::config::settings::Settings;
use proq_base::run_class::RunClass;

/// Limits and waits for the retries of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryPolicy {
    /// Maximum number of retries of a run that a rate limit or an unavailable service ended.
    pub rate_limit_retries: u32,
    /// Maximum number of retries of a run that crashed.
    pub crash_retries: u32,
    /// Wait before the first retry of a run that a rate limit or an unavailable service ended. The wait
    /// doubles with each further retry.
    pub first_backoff: Duration,
}

/// Maximum wait between two tries.
const MAX_WAIT: Duration = Duration::from_mins(30);

/// Wait after a crash, whose cause may take a moment to pass.
const CRASH_WAIT: Duration = Duration::from_secs(2);

impl RetryPolicy {
    /// Creates the policy from the settings.
    pub(crate) fn from_settings(settings: &Settings) -> RetryPolicy {
        RetryPolicy {
            rate_limit_retries: settings.rate_limit_retries,
            crash_retries: settings.crash_retries,
            first_backoff: settings.backoff,
        }
    }

    /// Returns the policy for a run of a batch. The batch itself retries crashed runs, so only rate limits
    /// and an unavailable service are retried here.
    pub(crate) fn without_crash_retries(self) -> RetryPolicy {
        RetryPolicy { crash_retries: 0, ..self }
    }

    /// Returns the wait before the next try; none when the run is not retried. `past_classes` holds the exit
    /// classes of the consecutive failed runs, the latest one last. Tries of each class are counted
    /// separately.
    pub(crate) fn next_wait(&self, past_classes: &[RunClass]) -> Option<Duration> {
        let last_class = *past_classes.last()?;
        let tries = u32::try_from(past_classes.iter().filter(|class| **class == last_class).count())
            .unwrap_or(u32::MAX);
        let (max_retries, wait) = match last_class {
            RunClass::RateLimited | RunClass::Unavailable => {
                let factor = 1_u32.checked_shl(tries - 1).unwrap_or(u32::MAX);
                (self.rate_limit_retries, self.first_backoff.saturating_mul(factor).min(MAX_WAIT))
            }
            RunClass::Crashed => (self.crash_retries, CRASH_WAIT.min(self.first_backoff)),
            // The failure would recur, at the same cost.
            RunClass::Done
            | RunClass::Failed
            | RunClass::TokenLimit
            | RunClass::Auth
            | RunClass::MaxTurns
            | RunClass::Budget
            | RunClass::ContextFull
            | RunClass::Refused
            | RunClass::Interrupted
            | RunClass::Stalled
            | RunClass::Timeout
            | RunClass::Runaway
            | RunClass::GivenUp
            | RunClass::Stopped => return None,
        };
        (tries <= max_retries).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy =
        RetryPolicy { rate_limit_retries: 3, crash_retries: 2, first_backoff: Duration::from_secs(30) };

    fn wait_seconds(class: RunClass) -> Vec<u64> {
        let mut past_classes = Vec::new();
        std::iter::from_fn(|| {
            past_classes.push(class);
            POLICY.next_wait(&past_classes).map(|wait| wait.as_secs())
        })
        .collect()
    }

    #[test]
    fn each_class_has_its_own_retry_limit() {
        assert_eq!(wait_seconds(RunClass::RateLimited), [30, 60, 120]);
        assert_eq!(wait_seconds(RunClass::Unavailable), [30, 60, 120]);
        assert_eq!(wait_seconds(RunClass::Crashed), [2, 2]);
        for class in
            [RunClass::Done, RunClass::TokenLimit, RunClass::Auth, RunClass::Budget, RunClass::Stopped]
        {
            assert_eq!(wait_seconds(class), [0; 0], "{class}");
        }
    }

    #[test]
    fn counts_classes_separately_and_caps_wait() {
        use RunClass::{Crashed, RateLimited};
        let mixed = [RateLimited, Crashed, RateLimited, Crashed, Crashed];
        assert_eq!(POLICY.next_wait(&mixed), None);
        assert_eq!(POLICY.next_wait(&mixed[..4]), Some(Duration::from_secs(2)));
        let lenient = RetryPolicy { rate_limit_retries: 100, ..POLICY };
        assert_eq!(lenient.next_wait(&[RateLimited; 99]), Some(MAX_WAIT));
    }
}
