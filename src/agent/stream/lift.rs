//! Owns reading when a limit is lifted out of an agent's words. What they say is kept as it is said: there is no clock here.

use std::time::Duration;

use serde::Serialize;

/// When a limit is lifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Lift {
    /// At this time, in seconds since 1970.
    At(i64),
    /// So long after it was said.
    After(Duration),
    /// When clocks show this.
    Clock(Clock),
}

/// What a clock shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Clock {
    /// The hour, from 0 to 23.
    pub(crate) hour: i8,
    /// The minute.
    pub(crate) minute: i8,
    /// The month and the day; without them it is the next time that a clock shows it.
    pub(crate) date: Option<(i8, i8)>,
    /// Where the clock is, as in `Europe/Berlin`; without it, where the user is.
    pub(crate) zone: Option<String>,
}

/// What stands before a length of time.
const IN: [&str; 7] = [
    "resets in ",
    "reset in ",
    "reset after ",
    "resets after ",
    "try again in ",
    "retry in ",
    "retry after ",
];

/// What stands before a time of day.
const AT: [&str; 6] = ["resets at ", "reset at ", "resets on ", "try again at ", "resets ", "will reset "];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Reads when the limit is lifted that a text speaks of; none where it does not say.
pub(super) fn read(text: &str) -> Option<Lift> {
    let small = text.to_ascii_lowercase();
    let behind = |mark: &&str| small.find(*mark).map(|at| at + mark.len());
    let stamp = || text.split_once('|').and_then(|(_, rest)| epoch(rest));
    let span = || IN.iter().filter_map(behind).find_map(|at| span(small.get(at..)?)).map(Lift::After);
    let clock = || {
        AT.iter().filter_map(behind).find_map(|at| {
            let rest = small.get(at..)?;
            // Zones are written in capitals.
            let zone = text.get(at..).and_then(zone);
            epoch(rest).or_else(|| Some(Lift::Clock(Clock { zone, ..clock(rest)? })))
        })
    };
    stamp().or_else(span).or_else(clock)
}

/// Reads what a field says that holds seconds or milliseconds since 1970, and no year that is none of ours.
pub(super) fn at(number: u64) -> Option<Lift> {
    let seconds = if number > 100_000_000_000 { number / 1000 } else { number };
    let seconds = i64::try_from(seconds).ok()?;
    (1_500_000_000..10_000_000_000).contains(&seconds).then_some(Lift::At(seconds))
}

fn epoch(text: &str) -> Option<Lift> {
    let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
    if digits.len() < 10 { None } else { at(digits.parse().ok()?) }
}

/// Reads `2 hours 5 minutes`, `18h31m10s`, `34.07s`, `3 days`.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum: Option<f64> = None;
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
        let of_number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(of_number);
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else { break };
        let behind = behind.trim_start();
        let of_unit = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(of_unit);
        let seconds = match unit {
            "ms" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            "w" | "week" | "weeks" => 604_800.0,
            _ => break,
        };
        sum = Some(sum.unwrap_or(0.0) + number * seconds);
        rest = behind;
    }
    Duration::try_from_secs_f64(sum?).ok()
}

/// Reads `3pm`, `3:05 PM`, `15:30`, and the same behind a date: `oct 9 at 3pm`, `nov 25th, 2026 3:05 pm`.
fn clock(text: &str) -> Option<Clock> {
    let words: Vec<&str> = text.split([' ', ',']).filter(|w| !w.is_empty() && *w != "at").take(6).collect();
    let (date, words) = match words.split_first() {
        Some((first, more)) => match MONTHS.iter().position(|month| first.starts_with(month)) {
            Some(month) => {
                let (day, more) = more.split_first()?;
                let day: i8 = day.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
                let is_year = |word: &&str| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
                let more = if more.first().is_some_and(is_year) { more.get(1..)? } else { more };
                (Some((i8::try_from(month).ok()? + 1, day)), more)
            }
            None => (None, words.as_slice()),
        },
        None => return None,
    };
    let first = words.first()?.trim_end_matches(['.', ')', ';']);
    let of_digits = first.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(first.len());
    let (figures, half) = first.split_at(of_digits);
    let half = if half.is_empty() { words.get(1).copied().unwrap_or_default() } else { half };
    let (hour, minute) = match figures.split_once(':') {
        Some((hour, minute)) => (hour.parse::<i8>().ok()?, minute.get(..2)?.parse::<i8>().ok()?),
        None => (figures.parse::<i8>().ok()?, 0),
    };
    let hour = match (half.get(..2), figures.contains(':')) {
        (Some("am"), _) if (1..=12).contains(&hour) => hour % 12,
        (Some("pm"), _) if (1..=12).contains(&hour) => hour % 12 + 12,
        (_, true) => hour,
        _ => return None,
    };
    ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some(Clock { hour, minute, date, zone: None })
}

/// The zone in the brackets behind a time.
fn zone(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('(')?;
    let (name, _) = rest.split_once(')')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_+-".contains(c);
    (!name.is_empty() && name.len() < 64 && name.chars().all(plain)).then(|| name.to_owned())
}
