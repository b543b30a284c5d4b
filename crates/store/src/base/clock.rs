//! Moments and the current time, which never goes back, with the environment variable that lets a test set it.

use std::fmt;
use std::sync::{OnceLock, RwLock};
use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

/// Environment variable that replaces the system clock in tests.
const TEST_CLOCK_ENV: &str = "PROQ_TEST_NOW";

/// Point in time, stored exactly and displayed to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(Timestamp);

/// Returns the system time, but never a time before the newest one that this repository's store has recorded.
/// A clock can be wrong, such as one that starts in 1970 at every boot. Records written then must not count
/// as older for that reason.
pub fn now() -> Moment {
    let shown = system_time();
    loaded_history().and_then(|known| known.newest_time).map_or(shown, |newest| shown.max(newest))
}

/// Returns the time of the system clock, or of the variable that replaces it in tests.
pub(crate) fn system_time() -> Moment {
    let test_time = std::env::var(TEST_CLOCK_ENV).ok().and_then(|text| text.parse().ok());
    Moment(test_time.unwrap_or_else(Timestamp::now))
}

/// Longest time that a gap without commands counts when the age of a record is computed. A longer gap cannot
/// be distinguished from a clock that was wrong before it, or is wrong now.
const MAX_COUNTED_GAP: Duration = Duration::from_hours(24);
/// Interval at which the newest time is saved. Every retention period is long enough for this precision.
const CLOCK_SAVE_INTERVAL: Duration = Duration::from_hours(1);
/// Number of clock jumps that are recorded. A record older than all of them is at least as many days old.
const MAX_RECORDED_JUMPS: usize = 128;

/// Times that commands which changed a repository have observed: the newest one, and the jumps of the clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockHistory {
    /// Newest time at which a command has run.
    #[serde(rename = "newest", default, skip_serializing_if = "Option::is_none")]
    newest_time: Option<Moment>,
    /// Forward jumps of the clock by more than [`MAX_COUNTED_GAP`], oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "leaps")]
    jumps: Vec<ClockJump>,
}

/// Forward jump of the clock between one command and the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ClockJump {
    /// Newest time that was observed before the jump.
    from: Moment,
    /// First time that was observed after the jump.
    to: Moment,
}

/// Clock history of the repository that this process works in.
static CLOCK_HISTORY: RwLock<Option<ClockHistory>> = RwLock::new(None);

/// Returns the clock history of the repository that this process works in; none until it is loaded.
fn loaded_history() -> Option<ClockHistory> {
    CLOCK_HISTORY.read().ok()?.clone()
}

/// Sets the clock history of the repository that this process works in.
pub(crate) fn set_clock_history(history: Option<ClockHistory>) {
    if let Ok(mut known) = CLOCK_HISTORY.write() {
        *known = history;
    }
}

impl ClockHistory {
    /// Returns the history with an observed system time added; none where nothing has to be saved.
    pub fn with_observed_time(&self, shown: Moment) -> Option<ClockHistory> {
        let Some(newest) = self.newest_time else {
            return Some(ClockHistory { newest_time: Some(shown), jumps: self.jumps.clone() });
        };
        if shown < newest {
            // A clock that returns to a time before a forward jump was wrong in between.
            let jump_index = self.jumps.iter().position(|leap| leap.from <= shown && shown < leap.to)?;
            let ClockJump { from, .. } = self.jumps[jump_index];
            return Some(
                ClockHistory { newest_time: Some(from), jumps: self.jumps[..jump_index].to_vec() }
                    .advance_to(shown),
            );
        }
        (shown.duration_since(newest) >= CLOCK_SAVE_INTERVAL).then(|| self.clone().advance_to(shown))
    }

    /// Moves the newest time forward to `shown` and records a jump where the gap is too long.
    fn advance_to(mut self, shown: Moment) -> ClockHistory {
        if let Some(from) = self.newest_time.filter(|newest| shown.duration_since(*newest) > MAX_COUNTED_GAP)
        {
            self.jumps.push(ClockJump { from, to: shown });
            self.jumps.drain(..self.jumps.len().saturating_sub(MAX_RECORDED_JUMPS));
        }
        ClockHistory { newest_time: Some(shown), jumps: self.jumps }
    }

    /// Returns the minimum age of a record written at `at`. Every jump since then counts for
    /// [`MAX_COUNTED_GAP`] at most.
    fn min_age(&self, at: Moment, now: Moment) -> Duration {
        let excess =
            |leap: &ClockJump| leap.to.duration_since(leap.from.max(at)).saturating_sub(MAX_COUNTED_GAP);
        now.duration_since(at).saturating_sub(self.jumps.iter().map(excess).sum())
    }
}

impl Moment {
    /// Returns the time elapsed since `earlier`; zero when `earlier` is in the future.
    pub fn duration_since(self, earlier: Moment) -> Duration {
        let seconds = self.0.as_second() - earlier.0.as_second();
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    /// Returns the moment `span` earlier, or the earliest one that can be represented.
    pub fn saturating_sub(self, span: Duration) -> Moment {
        Moment(self.0.checked_sub(span).unwrap_or(Timestamp::MIN))
    }

    /// Converts a time of the system. None if it cannot be represented.
    pub fn from_system_time(time: SystemTime) -> Option<Moment> {
        Timestamp::try_from(time).ok().map(Moment)
    }

    /// Returns the moment as a time of the system.
    pub fn to_system_time(self) -> SystemTime {
        self.0.into()
    }

    /// Returns the moment `span` later, or the latest one that can be represented.
    pub fn saturating_add(self, span: Duration) -> Moment {
        Moment(self.0.checked_add(span).unwrap_or(Timestamp::MAX))
    }

    /// Returns the next moment with this hour and minute, and with this month and day if `date` is given.
    /// `zone` names a time zone; without it the system's zone is used. A moment in the last five minutes
    /// counts as the next one, because it may have been named before it passed.
    pub fn next_clock_time(
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
        let earliest = self.saturating_sub(JUST_PASSED);
        let to_moment = |day: jiff::civil::Date| {
            Some(Moment(day.at(hour, minute, 0, 0).to_zoned(zone.clone()).ok()?.timestamp()))
        };
        days.into_iter().flatten().filter_map(to_moment).find(|moment| *moment >= earliest)
    }

    /// Returns whether this moment is at least `span` in the past. A moment in the future is not, such as
    /// after a clock jump. A gap without commands counts as one day at most. A record that was written with a
    /// wrong clock is therefore not old as soon as the clock is right.
    pub fn is_older_than(self, span: Duration) -> bool {
        let now = now();
        let age = loaded_history().map_or_else(|| now.duration_since(self), |known| known.min_age(self, now));
        self <= now && age >= span
    }

    /// Parses the form that [`Moment::to_compact`] writes.
    pub(crate) fn from_compact(text: &str) -> Option<Moment> {
        let civil = jiff::civil::DateTime::strptime("%Y%m%d-%H%M%S", text).ok()?;
        Some(Moment(civil.to_zoned(TimeZone::UTC).ok()?.timestamp()))
    }

    /// Formats the moment so that it sorts as text and is safe in file names and refs: `20261121-024457`.
    pub fn to_compact(self) -> String {
        self.0.strftime("%Y%m%d-%H%M%S").to_string()
    }
}

impl Moment {
    /// Formats the moment in local time as hour and minute, with the date before it unless it is today.
    pub fn to_local_text(self) -> String {
        match self.in_local_time().date() == now().in_local_time().date() {
            true => self.in_local_time().strftime("%H:%M").to_string(),
            false => self.to_local_date_time(),
        }
    }

    /// Formats the moment in local time as date, hour and minute: `2026-01-02 03:04`.
    pub fn to_local_date_time(self) -> String {
        self.in_local_time().strftime("%Y-%m-%d %H:%M").to_string()
    }

    fn in_local_time(self) -> Zoned {
        static ZONE: OnceLock<TimeZone> = OnceLock::new();
        self.0.to_zoned(ZONE.get_or_init(TimeZone::system).clone())
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
    fn compact_form_round_trips() {
        let moment: Moment = Moment("2026-11-21T02:44:57Z".parse().unwrap());
        assert_eq!(moment.to_compact(), "20261121-024457");
        let later: Moment = Moment("2026-11-21T02:46:00Z".parse().unwrap());
        assert_eq!(later.duration_since(moment), Duration::from_secs(63));
        assert_eq!(moment.duration_since(later), Duration::ZERO);
        assert_eq!(later.saturating_sub(Duration::from_secs(63)), moment);
        assert_eq!(Moment::from_compact("20261121-024457"), Some(moment));
        assert_eq!(Moment::from_compact("20261321-024457"), None);
    }

    #[test]
    fn next_clock_time_finds_nearest_date() {
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
            assert_eq!(
                now.next_clock_time(time, date, Some(zone)),
                Some(moment(wanted)),
                "{time:?} {date:?} {zone}"
            );
        }
        assert_eq!(now.next_clock_time((1, 0), Some((2, 31)), Some("UTC")), None);
        assert_eq!(now.next_clock_time((1, 0), None, Some("No/Where")), None);
        assert_eq!(Moment::from_system_time(SystemTime::UNIX_EPOCH), Some(moment("1970-01-01T00:00:00Z")));
        assert_eq!(now.saturating_add(Duration::from_secs(90)), moment("2026-12-31T14:31:30Z"));
    }

    #[test]
    fn wrong_clock_ages_no_record() {
        let moment = |text: &str| Moment(text.parse().unwrap());
        let (past, first, later) =
            (moment("1970-01-01T00:10:00Z"), moment("2026-11-01T00:00:00Z"), moment("2026-11-02T00:00:00Z"));
        let times = ClockHistory::default().with_observed_time(first).unwrap();
        // The clock falls back: the newest time stays, and so do all records written from then on.
        assert_eq!(times.with_observed_time(past), None);
        let days = |count: u64| Duration::from_hours(24 * count);
        // The clock was wrong from the start.
        let times =
            ClockHistory::default().with_observed_time(past).unwrap().with_observed_time(first).unwrap();
        assert_eq!((times.min_age(past, first), times.min_age(first, later)), (days(1), days(1)));
        let times = times.with_observed_time(later).unwrap();
        assert_eq!((times.min_age(past, later), times.min_age(later, later)), (days(2), days(0)));
        // The clock jumps far ahead and returns.
        let ahead = times.with_observed_time(moment("2031-01-01T00:00:00Z")).unwrap();
        assert_eq!(ahead.min_age(later, moment("2031-01-01T00:00:00Z")), days(1));
        let third = moment("2026-11-03T00:00:00Z");
        let back = ahead.with_observed_time(third).unwrap();
        assert_eq!((back.newest_time, back.min_age(first, third)), (Some(third), days(2)));
        // A few weeks without a command count as one day, even where the clock is set back a little
        // afterwards.
        let weeks = times.with_observed_time(moment("2026-12-24T00:00:00Z")).unwrap();
        assert_eq!(weeks.with_observed_time(moment("2026-12-24T00:59:00Z")), None);
        let (eve, day) = (moment("2026-12-23T23:00:00Z"), moment("2026-12-24T23:00:00Z"));
        assert_eq!(weeks.min_age(later, moment("2026-12-24T00:00:00Z")), days(1));
        let weeks = weeks.with_observed_time(eve).unwrap();
        assert_eq!((weeks.newest_time, weeks.min_age(first, eve)), (Some(eve), days(2)));
        assert_eq!(weeks.with_observed_time(day).unwrap().min_age(first, day), days(3));
        // A record written within a gap, as by a clock that was ahead, gets the remainder of the gap.
        assert_eq!(
            times.with_observed_time(day).unwrap().min_age(moment("2026-12-24T11:00:00Z"), day),
            days(1) / 2
        );
        // One day of work every week.
        let weekly = (1..40).fold(times, |times, week| {
            times.with_observed_time(later.saturating_add(days(7) * week)).unwrap()
        });
        assert_eq!(weekly.min_age(later, later.saturating_add(days(7) * 39)), days(39));
    }

    #[test]
    fn future_moment_is_never_old() {
        let hour = Duration::from_hours(1);
        assert!(now().saturating_sub(hour).is_older_than(hour));
        assert!(!now().saturating_sub(hour).is_older_than(hour * 2));
        let ahead = Moment(Timestamp::now().checked_add(hour * 10).unwrap());
        assert!(!ahead.is_older_than(Duration::ZERO) && !ahead.is_older_than(hour));
    }
}
