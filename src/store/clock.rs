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

    /// The moment so many seconds after the beginning of 1970.
    pub(crate) fn at_second(seconds: i64) -> Option<Moment> {
        Timestamp::from_second(seconds).ok().map(Moment)
    }

    /// The moment that much later.
    pub(crate) fn after(self, span: Duration) -> Moment {
        Moment(self.0.checked_add(span).unwrap_or(Timestamp::MAX))
    }

    /// The next moment at which a clock shows this hour and minute, on this month and day where one is given, in the zone of this
    /// name or where the user is. One that has just passed is the next all the same: it was named before.
    pub(crate) fn next_at(
        self,
        (hour, minute): (i8, i8),
        date: Option<(i8, i8)>,
        zone: Option<&str>,
    ) -> Option<Moment> {
        const JUST_PASSED: Duration = Duration::from_mins(5);
        let zone = match zone {
            Some(name) => TimeZone::get(name).ok()?,
            None => TimeZone::system(),
        };
        let today = self.0.to_zoned(zone.clone()).date();
        let days = match date {
            Some((month, day)) => [today.year().checked_sub(1)?, today.year(), today.year().checked_add(1)?]
                .map(|year| jiff::civil::Date::new(year, month, day).ok()),
            None => [today.yesterday().ok(), Some(today), today.tomorrow().ok()],
        };
        let earliest = self.before(JUST_PASSED);
        let at = |day: jiff::civil::Date| {
            Some(Moment(day.at(hour, minute, 0, 0).to_zoned(zone.clone()).ok()?.timestamp()))
        };
        days.into_iter().flatten().filter_map(at).find(|moment| *moment >= earliest)
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
    fn a_clock_shows_a_time_again_soon() {
        let moment = |text: &str| Moment(text.parse().unwrap());
        let now = moment("2026-12-31T14:30:00Z");
        for (time, date, zone, wanted) in [
            ((15, 0), None, "UTC", "2026-12-31T15:00:00Z"),
            ((14, 28), None, "UTC", "2026-12-31T14:28:00Z"),
            ((14, 0), None, "UTC", "2027-01-01T14:00:00Z"),
            ((16, 0), None, "Europe/Berlin", "2026-12-31T15:00:00Z"),
            ((9, 0), Some((1, 2)), "UTC", "2027-01-02T09:00:00Z"),
            ((9, 0), Some((12, 30)), "UTC", "2027-12-30T09:00:00Z"),
        ] {
            assert_eq!(now.next_at(time, date, Some(zone)), Some(moment(wanted)), "{time:?} {date:?} {zone}");
        }
        assert_eq!(now.next_at((1, 0), Some((2, 31)), Some("UTC")), None);
        assert_eq!(now.next_at((1, 0), None, Some("No/Where")), None);
        assert_eq!(Moment::at_second(0), Some(moment("1970-01-01T00:00:00Z")));
        assert_eq!(now.after(Duration::from_secs(90)), moment("2026-12-31T14:31:30Z"));
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
