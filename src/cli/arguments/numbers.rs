//! Parsers of durations, and of the numbers of runs and operations, on the command line.

use std::time::Duration;

use clap::builder::TypedValueParser;
use proq_lib::types::{OperationNumber, RunNumber};

/// Returns the parser of a run number, which accepts what a parser of 32-bit integers accepts and fails with
/// the same errors.
pub(crate) fn run_number() -> impl TypedValueParser<Value = RunNumber> {
    clap::value_parser!(u32).map(RunNumber::new)
}

/// Returns the parser of an operation number, which accepts what a parser of 64-bit integers accepts and
/// fails with the same errors.
pub(crate) fn operation_number() -> impl TypedValueParser<Value = OperationNumber> {
    clap::value_parser!(u64).map(OperationNumber::new)
}

/// Parses a duration: `90` and `90s` are seconds, `5m` minutes, `1h` hours, `2d` days.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: Option<u64> = match &text[digits.len()..] {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(60 * 60),
        "d" => Some(24 * 60 * 60),
        _ => None,
    };
    // `u64::parse` accepts a leading `+`.
    let count = digits.parse::<u64>().ok().filter(|_| !digits.starts_with('+'));
    let seconds = unit.and_then(|unit| count?.checked_mul(unit));
    seconds.map(Duration::from_secs).ok_or_else(|| "expected a duration, such as 90s, 5m or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_durations_with_unit() {
        for (text, seconds) in [("0", 0), ("90", 90), ("90s", 90), ("5m", 300), ("1h", 3600), ("2d", 172_800)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for invalid in [
            "",
            "m",
            "-1",
            "+1",
            "1.5h",
            "1 h",
            "5M",
            "1h30m",
            "９s",
            "99999999999999999999",
            "9999999999999999999d",
        ] {
            assert!(parse_duration(invalid).is_err(), "{invalid}");
        }
    }
}
