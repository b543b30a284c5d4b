//! Parsing of the time at which a rate limit resets from an agent's message. Durations are not converted to
//! times, since this module has no clock.

use std::time::{Duration, SystemTime};

use proq_base::time_form::unix_seconds;
use serde::Serialize;

/// Time at which a rate limit resets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitReset {
    /// At this time.
    At(#[serde(with = "unix_seconds")] SystemTime),
    /// After this duration, counted from the message.
    After(Duration),
    /// At this time of day.
    #[serde(rename = "clock")]
    TimeOfDay(TimeOfDay),
}

/// A time of day, with a date and a time zone where the message names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimeOfDay {
    /// Hour, from 0 to 23.
    pub hour: i8,
    /// Minute of the hour, from 0 to 59.
    pub minute: i8,
    /// Month and day; without them the next such time of day is meant.
    pub date: Option<(i8, i8)>,
    /// Time zone, as in `Europe/Berlin`; without it, the user's zone.
    pub zone: Option<String>,
}

/// Phrases that precede a duration.
const DURATION_MARKERS: [&str; 7] = [
    "resets in ",
    "reset in ",
    "reset after ",
    "resets after ",
    "try again in ",
    "retry in ",
    "retry after ",
];

/// Phrases that precede a time of day.
const TIME_MARKERS: [&str; 6] =
    ["resets at ", "reset at ", "resets on ", "try again at ", "resets ", "will reset "];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Parses from a message when its rate limit resets. `None` where the message names no time.
pub(crate) fn parse_limit_reset(text: &str) -> Option<LimitReset> {
    let lowercase = text.to_ascii_lowercase();
    let end_of_marker = |marker: &&str| lowercase.find(*marker).map(|at| at + marker.len());
    let from_timestamp = || text.split_once('|').and_then(|(_, after_bar)| parse_epoch(after_bar));
    let from_duration = || {
        DURATION_MARKERS
            .iter()
            .filter_map(end_of_marker)
            .find_map(|at| parse_duration(lowercase.get(at..)?))
            .map(LimitReset::After)
    };
    let from_time = || {
        TIME_MARKERS.iter().filter_map(end_of_marker).find_map(|at| {
            let after_marker = lowercase.get(at..)?;
            // Names of time zones contain capital letters, so they are read from the original text.
            let zone = text.get(at..).and_then(parse_zone);
            parse_epoch(after_marker).or_else(|| {
                Some(LimitReset::TimeOfDay(TimeOfDay { zone, ..parse_clock_time(after_marker)? }))
            })
        })
    };
    from_timestamp().or_else(from_duration).or_else(from_time)
}

/// Converts a number of seconds or milliseconds since 1970 to a reset time. `None` for an implausible number.
pub(crate) fn reset_from_epoch(number: u64) -> Option<LimitReset> {
    let seconds = if number > 100_000_000_000 { number / 1000 } else { number };
    let seconds = i64::try_from(seconds).ok()?;
    let is_plausible = (1_500_000_000..10_000_000_000).contains(&seconds);
    unix_seconds::to_time(seconds).filter(|_| is_plausible).map(LimitReset::At)
}

/// Parses seconds or milliseconds since 1970 at the start of a text; none for fewer than ten digits.
fn parse_epoch(text: &str) -> Option<LimitReset> {
    let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
    if digits.len() < 10 { None } else { reset_from_epoch(digits.parse().ok()?) }
}

/// Reads `2 hours 5 minutes`, `18h31m10s`, `34.07s`, `3 days`.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut remaining = text;
    let mut total: Option<f64> = None;
    loop {
        remaining = remaining.trim_start_matches([' ', ',']);
        remaining = remaining.strip_prefix("and ").unwrap_or(remaining);
        let number_len = remaining.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(remaining.len());
        let (number, after_number) = remaining.split_at(number_len);
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else { break };
        let unit_text = after_number.trim_start();
        let unit_len = unit_text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit_text.len());
        let (unit, after_unit) = unit_text.split_at(unit_len);
        let seconds = match unit {
            "ms" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            "w" | "week" | "weeks" => 604_800.0,
            _ => break,
        };
        total = Some(total.unwrap_or(0.0) + number * seconds);
        remaining = after_unit;
    }
    Duration::try_from_secs_f64(total?).ok()
}

/// Reads `3pm`, `3:05 PM`, `15:30`, and such a time after a date: `oct 9 at 3pm`, `nov 25th, 2026 3:05 pm`.
fn parse_clock_time(text: &str) -> Option<TimeOfDay> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|w| !w.is_empty() && *w != "at").take(6).collect();
    let (date, words) = match words.split_first() {
        Some((first, tail)) => match MONTHS.iter().position(|month| first.starts_with(month)) {
            Some(month) => {
                let (day, tail) = tail.split_first()?;
                let day: i8 = day.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
                let is_year = |word: &&str| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
                let tail = if tail.first().is_some_and(is_year) { tail.get(1..)? } else { tail };
                (Some((i8::try_from(month).ok()? + 1, day)), tail)
            }
            None => (None, words.as_slice()),
        },
        None => return None,
    };
    let first = words.first()?.trim_end_matches(['.', ')', ';']);
    let digits_len = first.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(first.len());
    let (digits, meridiem) = first.split_at(digits_len);
    let meridiem = if meridiem.is_empty() { words.get(1).copied().unwrap_or_default() } else { meridiem };
    let (hour, minute) = match digits.split_once(':') {
        Some((hour, minute)) => (hour.parse::<i8>().ok()?, minute.get(..2)?.parse::<i8>().ok()?),
        None => (digits.parse::<i8>().ok()?, 0),
    };
    let hour = match (meridiem.get(..2), digits.contains(':')) {
        (Some("am"), _) if (1..=12).contains(&hour) => hour % 12,
        (Some("pm"), _) if (1..=12).contains(&hour) => hour % 12 + 12,
        (_, true) => hour,
        _ => return None,
    };
    ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some(TimeOfDay {
        hour,
        minute,
        date,
        zone: None,
    })
}

/// Returns the name of a time zone in the first parentheses of a text.
fn parse_zone(text: &str) -> Option<String> {
    let (_, after_bracket) = text.split_once('(')?;
    let (name, _) = after_bracket.split_once(')')?;
    let is_zone_char = |c: char| c.is_ascii_alphanumeric() || "/_+-".contains(c);
    (!name.is_empty() && name.len() < 64 && name.chars().all(is_zone_char)).then(|| name.to_owned())
}
