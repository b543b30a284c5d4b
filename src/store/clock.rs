//! Owns the time of day, and the one way a test can set it.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// Names the variable that stands in for the clock under test.
const CLOCK: &str = "PROQ_TEST_NOW";

/// A point in time: kept exactly, shown to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(Timestamp);

/// The present moment.
pub(crate) fn now() -> Moment {
    let set = std::env::var(CLOCK).ok().and_then(|text| text.parse().ok());
    Moment(set.unwrap_or_else(Timestamp::now))
}

impl Moment {
    /// How long ago `earlier` was; zero when it lies ahead.
    pub(crate) fn since(self, earlier: Moment) -> Duration {
        let seconds = self.0.as_second() - earlier.0.as_second();
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    /// The moment that long ago.
    pub(crate) fn before(self, span: Duration) -> Moment {
        Moment(self.0.checked_sub(span).unwrap_or(Timestamp::MIN))
    }

    /// Whether it lies that far back. What lies ahead, as when a clock has jumped, does not.
    pub(crate) fn is_older_than(self, span: Duration) -> bool {
        let now = now();
        self <= now && now.since(self) >= span
    }

    /// Reads the form that [`Moment::compact`] writes.
    pub(super) fn from_compact(text: &str) -> Option<Moment> {
        let civil = jiff::civil::DateTime::strptime("%Y%m%d-%H%M%S", text).ok()?;
        Some(Moment(civil.to_zoned(TimeZone::UTC).ok()?.timestamp()))
    }

    /// A form that sorts and that is safe in a file name and a ref: `20261121-024457`.
    pub(crate) fn compact(self) -> String {
        self.0.strftime("%Y%m%d-%H%M%S").to_string()
    }
}

impl Moment {
    /// The hour and minute where the user is; with the day before them unless that is today.
    pub(crate) fn on_the_wall(self) -> String {
        static ZONE: OnceLock<TimeZone> = OnceLock::new();
        let zone = ZONE.get_or_init(TimeZone::system).clone();
        let (here, today) = (self.0.to_zoned(zone.clone()), now().0.to_zoned(zone));
        let form = if here.date() == today.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
        here.strftime(form).to_string()
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.strftime("%Y-%m-%dT%H:%M:%SZ").fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_compact_and_reads_back() {
        let moment: Moment = Moment("2026-11-21T02:44:57Z".parse().unwrap());
        assert_eq!(moment.compact(), "20261121-024457");
        let later: Moment = Moment("2026-11-21T02:46:00Z".parse().unwrap());
        assert_eq!(later.since(moment), Duration::from_secs(63));
        assert_eq!(moment.since(later), Duration::ZERO);
        assert_eq!(later.before(Duration::from_secs(63)), moment);
        assert_eq!(Moment::from_compact("20261121-024457"), Some(moment));
        assert_eq!(Moment::from_compact("20261321-024457"), None);
    }

    #[test]
    fn what_lies_ahead_is_never_old() {
        let hour = Duration::from_hours(1);
        assert!(now().before(hour).is_older_than(hour));
        assert!(!now().before(hour).is_older_than(hour * 2));
        let ahead = Moment(Timestamp::now().checked_add(hour * 10).unwrap());
        assert!(!ahead.is_older_than(Duration::ZERO) && !ahead.is_older_than(hour));
    }
}
