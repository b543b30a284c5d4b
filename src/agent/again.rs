//! Owns whether a run that failed is tried again, and when: by why it failed.

use std::time::Duration;

use crate::config::Settings;
use crate::store::records::RunClass;

/// How often, at most, and how patiently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// How often a run is tried again that the service would not or could not serve.
    pub(super) rate_limit: u32,
    /// How often one that ended without its last word.
    pub(super) crash: u32,
    /// How long to wait before the first further try of a run that the service would not serve; twice as long before each
    /// one after it.
    pub(super) backoff: Duration,
}

/// No wait between two tries is longer.
const LONGEST: Duration = Duration::from_mins(30);

/// After a crash, what was wrong may take a moment to pass.
const AFTER_CRASH: Duration = Duration::from_secs(2);

impl Patience {
    /// As the settings have it.
    pub(super) fn of(settings: &Settings) -> Patience {
        Patience {
            rate_limit: settings.rate_limit_retries,
            crash: settings.crash_retries,
            backoff: settings.backoff,
        }
    }

    /// The same for a run of a batch, which tries again itself: what is only waited for is waited for here.
    pub(super) fn of_batch(self) -> Patience {
        Patience { crash: 0, ..self }
    }

    /// How long to wait before the next try, when `former` runs of this task in a row have ended as they did, the last of them
    /// last. None when it is not tried again. Tries of each kind are counted apart.
    pub(super) fn wait(&self, former: &[RunClass]) -> Option<Duration> {
        let last = *former.last()?;
        let tries = u32::try_from(former.iter().filter(|class| **class == last).count()).unwrap_or(u32::MAX);
        let (most, wait) = match last {
            RunClass::RateLimited | RunClass::Unavailable => {
                let factor = 1_u32.checked_shl(tries - 1).unwrap_or(u32::MAX);
                (self.rate_limit, self.backoff.saturating_mul(factor).min(LONGEST))
            }
            RunClass::Crashed => (self.crash, AFTER_CRASH.min(self.backoff)),
            // Whatever is wrong there would be wrong again, and cost the same again.
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
        (tries <= most).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { rate_limit: 3, crash: 2, backoff: Duration::from_secs(30) };

    fn waits(class: RunClass) -> Vec<u64> {
        let mut former = Vec::new();
        std::iter::from_fn(|| {
            former.push(class);
            PATIENCE.wait(&former).map(|wait| wait.as_secs())
        })
        .collect()
    }

    #[test]
    fn each_kind_has_its_number_of_tries() {
        assert_eq!(waits(RunClass::RateLimited), [30, 60, 120]);
        assert_eq!(waits(RunClass::Unavailable), [30, 60, 120]);
        assert_eq!(waits(RunClass::Crashed), [2, 2]);
        for class in
            [RunClass::Done, RunClass::TokenLimit, RunClass::Auth, RunClass::Budget, RunClass::Stopped]
        {
            assert_eq!(waits(class), [0; 0], "{class}");
        }
    }

    #[test]
    fn kinds_are_counted_apart_and_no_wait_is_too_long() {
        use RunClass::{Crashed, RateLimited};
        let mixed = [RateLimited, Crashed, RateLimited, Crashed, Crashed];
        assert_eq!(PATIENCE.wait(&mixed), None);
        assert_eq!(PATIENCE.wait(&mixed[..4]), Some(Duration::from_secs(2)));
        let patient = Patience { rate_limit: 100, ..PATIENCE };
        assert_eq!(patient.wait(&[RateLimited; 99]), Some(LONGEST));
    }
}
