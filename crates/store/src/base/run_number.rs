//! Number of a run within its lane.

use super::number::record_number;

record_number! {
    /// Number of a run within its lane, from 1. As the number of a lane's last run it is [`RunNumber::NONE`],
    /// which is zero, before the lane's first run.
    RunNumber, u32, "run"
}

impl RunNumber {
    /// Returns the number of a lane's first run.
    pub const fn first() -> RunNumber {
        RunNumber(1)
    }

    /// Returns all numbers from this one to `last`, in ascending order. There are none if `last` is smaller.
    pub fn through(self, last: RunNumber) -> impl DoubleEndedIterator<Item = RunNumber> {
        (self.0..=last.0).map(RunNumber)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_number_is_an_integer_in_texts_and_records() {
        let tenth: RunNumber = "10".parse().unwrap();
        assert_eq!((tenth, format!("{tenth:>4}")), (RunNumber::new(10), "  10".to_owned()));
        assert_eq!(serde_json::to_string(&tenth).unwrap(), "10");
        assert_eq!(serde_json::from_str::<RunNumber>("10").unwrap(), tenth);
        assert!("-1".parse::<RunNumber>().is_err() && serde_json::from_str::<RunNumber>("\"1\"").is_err());
    }

    #[test]
    fn runs_are_counted_from_one() {
        let numbers = |last: u32| RunNumber::first().through(RunNumber::new(last)).map(|number| number.0);
        assert_eq!(numbers(3).rev().collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(numbers(0).next(), None);
        assert_eq!(RunNumber::NONE.next(), RunNumber::first());
        assert_eq!(RunNumber::NONE.previous(), RunNumber::NONE);
    }
}
