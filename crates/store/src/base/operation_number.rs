//! Number of an operation in the operation log.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Number of an operation in the operation log, from 1. As the number of the last operation it is
/// [`OperationNumber::NONE`], which is zero, if there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OperationNumber(u64);

impl OperationNumber {
    /// Number of the last operation in a log without operations.
    pub const NONE: OperationNumber = OperationNumber(0);

    /// Creates the number of the `number`-th operation, counted from 1.
    pub const fn new(number: u64) -> OperationNumber {
        OperationNumber(number)
    }

    /// Returns the number of the operation after this one.
    pub const fn next(self) -> OperationNumber {
        OperationNumber(self.0 + 1)
    }

    /// Returns the number of the operation before this one: [`OperationNumber::NONE`] for the first one.
    pub const fn previous(self) -> OperationNumber {
        OperationNumber(self.0.saturating_sub(1))
    }
}

impl fmt::Display for OperationNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for OperationNumber {
    type Err = ParseIntError;

    /// Parses a decimal number. Fails if the text is not one, or if it exceeds 64 bits.
    fn from_str(text: &str) -> Result<OperationNumber, ParseIntError> {
        text.parse().map(OperationNumber)
    }
}
