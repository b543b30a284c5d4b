//! Tokens and cost that agents use.

use serde::{Deserialize, Serialize};

use crate::money::NanoDollars;

/// Token counts, with the same meaning for every agent. `input`, `cached_input`, `cache_write` and `output`
/// do not overlap: their sum is everything that was paid for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Input tokens that were neither read from a cache nor written to one.
    pub input: u64,
    /// Input tokens that were read from a cache.
    pub cached_input: u64,
    /// Input tokens that were written to a cache.
    pub cache_write: u64,
    /// Generated tokens, including reasoning.
    pub output: u64,
    /// Reasoning tokens among `output`, where the agent reports them.
    pub reasoning: u64,
}

impl Tokens {
    /// Returns the sum of two counts.
    pub fn plus(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_add(other.input),
            cached_input: self.cached_input.saturating_add(other.cached_input),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }

    /// Returns the increase since an earlier state of the same counters; none if one of them has decreased.
    pub fn increase_since(self, earlier: Tokens) -> Option<Tokens> {
        Some(Tokens {
            input: self.input.checked_sub(earlier.input)?,
            cached_input: self.cached_input.checked_sub(earlier.cached_input)?,
            cache_write: self.cache_write.checked_sub(earlier.cache_write)?,
            output: self.output.checked_sub(earlier.output)?,
            reasoning: self.reasoning.checked_sub(earlier.reasoning)?,
        })
    }

    /// Returns the number of all tokens that were sent to the model, cached ones included.
    pub fn total_input(self) -> u64 {
        self.input.saturating_add(self.cached_input).saturating_add(self.cache_write)
    }

    /// Returns the number of all tokens that were sent or generated.
    pub fn total(self) -> u64 {
        [self.cached_input, self.cache_write, self.output].into_iter().fold(self.input, u64::saturating_add)
    }

    /// Returns whether all counters are zero.
    pub fn is_zero(self) -> bool {
        self == Tokens::default()
    }
}

/// Cost of one or more runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Amount of money.
    #[serde(rename = "nanos")]
    pub amount: NanoDollars,
    /// Whether the amount was computed from tokens and a price table, and not reported by the agent.
    #[serde(default)]
    pub estimated: bool,
}

impl Cost {
    /// Returns the sum of two costs.
    pub fn plus(self, other: Cost) -> Cost {
        let estimated = self.estimated || other.estimated;
        Cost { amount: self.amount.saturating_add(other.amount), estimated }
    }
}

/// Counters of a session before a run continues it, as the agent counts them.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionTotals {
    /// Session id.
    pub session: Option<String>,
    /// Tokens of all runs in the session.
    pub tokens: Tokens,
    /// Cost of all runs in the session as the agent reports it.
    #[serde(rename = "cost_nanos")]
    pub cost: Option<NanoDollars>,
    /// Context size of the session's model, in tokens.
    pub context_size: Option<u64>,
    /// Whether the session continued in a tmux window after the counters were read. The counters are too low
    /// by an unknown amount then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "is_behind")]
    pub is_outdated: bool,
}
