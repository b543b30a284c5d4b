//! Number of a run within its lane.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Number of a run within its lane, from 1. As the number of a lane's last run it is
/// [`RunNumber::NONE`], which is zero, before the lane's first run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunNumber(u32);

impl RunNumber {
    /// Number of the last run of a lane without runs.
    pub const NONE: RunNumber = RunNumber(0);

    /// Creates the number of the `number`-th run, counted from 1.
    pub const fn new(number: u32) -> RunNumber {
        RunNumber(number)
    }

    /// Returns the number of a lane's first run.
    pub const fn first() -> RunNumber {
        RunNumber(1)
    }

    /// Returns the number of the run after this one.
    pub const fn next(self) -> RunNumber {
        RunNumber(self.0 + 1)
    }

    /// Returns the number of the run before this one: [`RunNumber::NONE`] for the first run.
    pub const fn previous(self) -> RunNumber {
        RunNumber(self.0.saturating_sub(1))
    }

    /// Returns all numbers from this one to `last`, in ascending order. There are none if `last` is smaller.
    pub fn through(self, last: RunNumber) -> impl DoubleEndedIterator<Item = RunNumber> {
        (self.0..=last.0).map(RunNumber)
    }

    /// Returns the number as an integer.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for RunNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for RunNumber {
    type Err = ParseIntError;

    /// Parses a decimal number. Fails if the text is not one, or if it exceeds 32 bits.
    fn from_str(text: &str) -> Result<RunNumber, ParseIntError> {
        text.parse().map(RunNumber)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_number_is_an_integer_in_texts_and_records() {
        let tenth: RunNumber = "10".parse().unwrap();
        assert_eq!((tenth.get(), format!("{tenth:>4}")), (10, "  10".to_owned()));
        assert_eq!(serde_json::to_string(&tenth).unwrap(), "10");
        assert_eq!(serde_json::from_str::<RunNumber>("10").unwrap(), tenth);
        assert!("-1".parse::<RunNumber>().is_err() && serde_json::from_str::<RunNumber>("\"1\"").is_err());
    }

    #[test]
    fn runs_are_counted_from_one() {
        let numbers = |last: u32| RunNumber::first().through(RunNumber::new(last)).map(RunNumber::get);
        assert_eq!(numbers(3).rev().collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(numbers(0).next(), None);
        assert_eq!(RunNumber::NONE.next(), RunNumber::first());
        assert_eq!(RunNumber::NONE.previous(), RunNumber::NONE);
    }
}
