//! Owns the one kind of event that every dialect becomes, and what tokens and money mean in it.

use serde::Serialize;
use serde_json::Value;

use super::{Cost, Tokens, Trouble};

/// Something that an agent did, or that was told about it. Texts are cut to a bound; the raw lines are the whole truth.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Event {
    /// The session is known now, or is another one from here on.
    Session {
        /// The agent's own name for it.
        id: String,
        /// The model, where the agent says it.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// The agent said something.
    Text {
        /// What.
        text: String,
        /// The tool call whose subagent said it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The agent thought something.
    Thinking {
        /// What.
        text: String,
        /// The tool call whose subagent thought it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A tool was called.
    ToolUse {
        /// The call's name.
        id: String,
        /// The tool, in the agent's own word.
        name: String,
        /// What it was given.
        input: Value,
        /// The tool call whose subagent did it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A tool's answer.
    ToolResult {
        /// The call's name.
        id: String,
        /// Whether it worked.
        ok: bool,
        /// What came out.
        output: String,
    },
    /// What this run has used so far: a state, not an addition.
    Usage(Tokens),
    /// What this run has cost so far: a state, not an addition.
    Cost(Cost),
    /// How full the model's context is.
    Context {
        /// Tokens in it.
        used: u64,
        /// Tokens that fit.
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
    /// The agent is told more than it was asked at first, in the same process.
    Told {
        /// What.
        text: String,
    },
    /// The agent wants leave to use a tool.
    PermissionAsked {
        /// The request's name, to answer it.
        id: String,
        /// The tool.
        tool: String,
        /// What it would be given.
        input: Value,
    },
    /// A tool was not allowed.
    PermissionRefused {
        /// The tool.
        tool: String,
        /// What the agent was told.
        message: String,
    },
    /// A request failed, and the agent tries again by itself.
    Retry {
        /// Which try this is.
        #[serde(skip_serializing_if = "Option::is_none")]
        attempt: Option<u64>,
        /// How many there will be.
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<u64>,
        /// How long it waits before.
        #[serde(skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        /// What was wrong.
        why: String,
    },
    /// Something to know that does no harm.
    Warning {
        /// What.
        message: String,
    },
    /// Something failed that the agent does not try again.
    Error {
        /// What, in the agent's words.
        message: String,
        /// Of which kind.
        kind: Trouble,
    },
    /// The agent says that it has finished.
    Result {
        /// Whether it says that it went well.
        ok: bool,
        /// Its last words.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A line that nobody here knows. It is in the log.
    Unknown {
        /// What it calls itself.
        kind: String,
    },
}

impl Tokens {
    /// What came on top of an earlier state of the same counters; none if one of them has gone down.
    pub(crate) fn since(self, before: Tokens) -> Option<Tokens> {
        Some(Tokens {
            input: self.input.checked_sub(before.input)?,
            cached_input: self.cached_input.checked_sub(before.cached_input)?,
            cache_write: self.cache_write.checked_sub(before.cache_write)?,
            output: self.output.checked_sub(before.output)?,
            reasoning: self.reasoning.checked_sub(before.reasoning)?,
        })
    }

    /// All that was sent.
    pub(crate) fn sent(self) -> u64 {
        self.input.saturating_add(self.cached_input).saturating_add(self.cache_write)
    }

    /// All that was sent and generated.
    pub(crate) fn total(self) -> u64 {
        [self.cached_input, self.cache_write, self.output].into_iter().fold(self.input, u64::saturating_add)
    }

    /// Whether nothing was used.
    pub(crate) fn is_none(self) -> bool {
        self == Tokens::default()
    }
}

/// Dollars as billionths. An amount of up to nine decimals is exact below two million dollars: a double next to it is off
/// by less than a quarter of a billionth there, and so is its product with a billion. Below nothing is nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "such a cast stops at the smallest and the largest number, as is wanted"
)]
pub(super) fn nanos(dollars: f64) -> u64 {
    (dollars * 1e9).round() as u64
}
