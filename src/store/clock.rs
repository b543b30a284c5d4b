//! Owns the time of day, and the one way a test can set it.

use std::fmt;
use std::sync::{OnceLock, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::Record;

/// Names the variable that stands in for the clock under test.
const CLOCK: &str = "PROQ_TEST_NOW";

/// A point in time: kept exactly, shown to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(Timestamp);

/// The present moment: what the clock shows, but no moment before the newest that this repository's store knows. A clock may lie, as
/// one that begins in 1970 with each start of its machine; what is put on record then is no older for that.
pub(crate) fn now() -> Moment {
    let shown = shown();
    known().and_then(|known| known.newest).map_or(shown, |newest| shown.max(newest))
}

/// What the clock shows.
fn shown() -> Moment {
    let set = std::env::var(CLOCK).ok().and_then(|text| text.parse().ok());
    Moment(set.unwrap_or_else(Timestamp::now))
}

/// Time in which no command ran counts as this much at most: nobody can tell it from a clock that was wrong before, or is now.
const LEAP: Duration = Duration::from_hours(24);
/// The newest time is written down this often. Nothing is kept for so short a time that it matters.
const STEP: Duration = Duration::from_hours(1);
/// So many leaps are remembered. What is older than all of them is at least as many days old.
const LEAPS: usize = 128;

/// What is known of the time, from all commands that changed something in a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Times {
    /// The newest time that a command was run at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    newest: Option<Moment>,
    /// Where the clock went ahead by more than [`LEAP`], oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    leaps: Vec<Leap>,
}

impl Record for Times {
    const FORMAT: u32 = 1;
}

/// A clock that went ahead from one command to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Leap {
    from: Moment,
    to: Moment,
}

/// What the repository that this process works in knows.
static KNOWN: RwLock<Option<Times>> = RwLock::new(None);

fn known() -> Option<Times> {
    KNOWN.read().ok()?.clone()
}

impl Times {
    /// Takes up what the clock shows. None where nothing is to be written down.
    fn seen(&self, shown: Moment) -> Option<Times> {
        let Some(newest) = self.newest else {
            return Some(Times { newest: Some(shown), leaps: self.leaps.clone() });
        };
        if shown < newest {
            // A clock that is back where it was before it went ahead was wrong in between.
            let back = self.leaps.iter().position(|leap| leap.from <= shown && shown < leap.to)?;
            let Leap { from, .. } = self.leaps[back];
            return Some(Times { newest: Some(from), leaps: self.leaps[..back].to_vec() }.ahead(shown));
        }
        (shown.since(newest) >= STEP).then(|| self.clone().ahead(shown))
    }

    /// The clock goes ahead to `shown`.
    fn ahead(mut self, shown: Moment) -> Times {
        if let Some(from) = self.newest.filter(|newest| shown.since(*newest) > LEAP) {
            self.leaps.push(Leap { from, to: shown });
            self.leaps.drain(..self.leaps.len().saturating_sub(LEAPS));
        }
        Times { newest: Some(shown), leaps: self.leaps }
    }

    /// How old something is for sure that was put on record at `at`: of each leap since, only what counts of it.
    fn age(&self, at: Moment, now: Moment) -> Duration {
        let excess = |leap: &Leap| leap.to.since(leap.from.max(at)).saturating_sub(LEAP);
        now.since(at).saturating_sub(self.leaps.iter().map(excess).sum())
    }
}

impl super::Store {
    /// Reads what is known of the time here; from now on this process goes by it. A file that cannot be read says nothing.
    pub(crate) fn read_clock(&self) {
        let found = Times::find(&self.layout.clock()).ok().flatten();
        if let Ok(mut known) = KNOWN.write() {
            // What the clock shows just now counts for who only reads, too.
            *known = found.map(|times| times.seen(shown()).unwrap_or(times));
        }
    }

    /// Writes down what the clock shows, where that is new. Called before something is changed.
    pub(crate) fn note_clock(&self) {
        if !self.layout.root().exists() {
            return;
        }
        let file = self.layout.clock();
        let times = Times::find(&file).ok().flatten().unwrap_or_default();
        let Some(times) = times.seen(shown()) else { return };
        // In a repository that cannot be written to nothing is put on record.
        drop(times.save(&file));
        if let Ok(mut known) = KNOWN.write() {
            *known = Some(times);
        }
    }
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

    /// Whether it lies that far back. What lies ahead, as when a clock has jumped, does not. A time in which no command ran counts
    /// as a day at most, so that what was put on record while the clock was wrong is not old as soon as it is right.
    pub(crate) fn is_older_than(self, span: Duration) -> bool {
        let now = now();
        let age = known().map_or_else(|| now.since(self), |known| known.age(self, now));
        self <= now && age >= span
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
    fn a_clock_that_was_wrong_makes_nothing_old() {
        let moment = |text: &str| Moment(text.parse().unwrap());
        let (past, first, later) =
            (moment("1970-01-01T00:10:00Z"), moment("2026-11-01T00:00:00Z"), moment("2026-11-02T00:00:00Z"));
        let times = Times::default().seen(first).unwrap();
        // It falls back: what is newest stays, and so does whatever is put on record from then on.
        assert_eq!(times.seen(past), None);
        let days = |count: u64| Duration::from_hours(24 * count);
        // It was wrong from the beginning.
        let times = Times::default().seen(past).unwrap().seen(first).unwrap();
        assert_eq!((times.age(past, first), times.age(first, later)), (days(1), days(1)));
        let times = times.seen(later).unwrap();
        assert_eq!((times.age(past, later), times.age(later, later)), (days(2), days(0)));
        // It goes far ahead, and comes back.
        let ahead = times.seen(moment("2031-01-01T00:00:00Z")).unwrap();
        assert_eq!(ahead.age(later, moment("2031-01-01T00:00:00Z")), days(1));
        let third = moment("2026-11-03T00:00:00Z");
        let back = ahead.seen(third).unwrap();
        assert_eq!((back.newest, back.age(first, third)), (Some(third), days(2)));
        // A few weeks without a command count as a day; also where the clock is put back a little after them.
        let weeks = times.seen(moment("2026-12-24T00:00:00Z")).unwrap();
        assert_eq!(weeks.seen(moment("2026-12-24T00:59:00Z")), None);
        let (eve, day) = (moment("2026-12-23T23:00:00Z"), moment("2026-12-24T23:00:00Z"));
        assert_eq!(weeks.age(later, moment("2026-12-24T00:00:00Z")), days(1));
        let weeks = weeks.seen(eve).unwrap();
        assert_eq!((weeks.newest, weeks.age(first, eve)), (Some(eve), days(2)));
        assert_eq!(weeks.seen(day).unwrap().age(first, day), days(3));
        // What was put on record within a leap, as it was by a clock that was ahead, has the rest of it.
        assert_eq!(times.seen(day).unwrap().age(moment("2026-12-24T11:00:00Z"), day), days(1) / 2);
        // Every week one day of work.
        let weekly = (1..40).fold(times, |times, week| times.seen(later.after(days(7) * week)).unwrap());
        assert_eq!(weekly.age(later, later.after(days(7) * 39)), days(39));
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
