//! Amounts of money in billionths of a US dollar.

use std::fmt;
use std::iter::Sum;

use serde::{Deserialize, Serialize};

/// Number of billionths in a dollar.
const NANOS_PER_DOLLAR: u64 = 1_000_000_000;

/// Amount of money in 1e-9 USD, and so serialized. Sums stop at the largest amount.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoDollars(u64);

impl NanoDollars {
    /// No money.
    pub const ZERO: NanoDollars = NanoDollars(0);

    /// Creates an amount from its number of billionths of a US dollar.
    pub const fn new(nanos: u64) -> NanoDollars {
        NanoDollars(nanos)
    }

    /// Returns the amount in billionths of a US dollar.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Parses an amount of US dollars: digits, optionally a point and up to nine more digits.
    pub fn parse(text: &str) -> Option<NanoDollars> {
        let (integer, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        if !digits(integer) || !digits(fraction) || fraction.len() > 9 {
            return None;
        }
        let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
        let nanos = integer.parse::<u64>().ok()?.checked_mul(NANOS_PER_DOLLAR)?.checked_add(fraction)?;
        Some(NanoDollars(nanos))
    }

    /// Converts dollars. Below two million dollars, an amount with up to nine decimals is exact, because a
    /// double is precise enough there. A negative amount becomes zero.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "such a cast stops at the smallest and the largest number, as is wanted"
    )]
    pub fn from_dollars(dollars: f64) -> NanoDollars {
        NanoDollars((dollars * 1e9).round() as u64)
    }

    /// Returns the amount in dollars, for display.
    #[expect(clippy::cast_precision_loss, reason = "nobody is shown more than a few digits of it")]
    pub fn to_dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns whether this is no money.
    pub fn is_zero(self) -> bool {
        self == NanoDollars::ZERO
    }

    /// Returns the sum of two amounts, at most the largest amount.
    pub fn saturating_add(self, other: NanoDollars) -> NanoDollars {
        NanoDollars(self.0.saturating_add(other.0))
    }

    /// Returns the difference of two amounts, zero where `other` is larger.
    pub fn saturating_sub(self, other: NanoDollars) -> NanoDollars {
        NanoDollars(self.0.saturating_sub(other.0))
    }

    /// Returns the difference of two amounts; none where `other` is larger.
    pub fn checked_sub(self, other: NanoDollars) -> Option<NanoDollars> {
        self.0.checked_sub(other.0).map(NanoDollars)
    }
}

impl Sum for NanoDollars {
    fn sum<I: Iterator<Item = NanoDollars>>(amounts: I) -> NanoDollars {
        amounts.fold(NanoDollars::ZERO, NanoDollars::saturating_add)
    }
}

impl fmt::Display for NanoDollars {
    /// Writes the amount in dollars without losing a digit, as in `2.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:09}", self.0 / NANOS_PER_DOLLAR, self.0 % NANOS_PER_DOLLAR);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Serde function for an optional amount as a number of dollars.
pub mod dollars_option {
    use serde::{Serialize, Serializer};

    use super::NanoDollars;

    /// Serializes an optional amount in dollars; none becomes null.
    pub fn serialize<S: Serializer>(amount: &Option<NanoDollars>, s: S) -> Result<S::Ok, S::Error> {
        amount.map(NanoDollars::to_dollars).serialize(s)
    }
}
