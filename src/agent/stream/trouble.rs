//! Owns telling what kind of failure an agent's words or a status code mean: the wordings of all dialects in one table.

use serde::{Deserialize, Serialize};

use super::Class;

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Trouble {
    /// Too much at once, or the plan is used up for now: waiting helps.
    RateLimit,
    /// The context or the answer got longer than the model takes: waiting does not help.
    TokenLimit,
    /// The key or the login is missing or not accepted.
    Auth,
    /// There is no money left, or the run may not spend more.
    Money,
    /// The run may not take more turns.
    Turns,
    /// The provider could not be reached, broke off, or had an error of its own: another try may help.
    Provider,
    /// Something else.
    Other,
}

impl Trouble {
    /// The class of a run that ended with it.
    pub(crate) fn class(self) -> Class {
        match self {
            Trouble::RateLimit => Class::RateLimited,
            Trouble::TokenLimit => Class::TokenLimit,
            Trouble::Auth => Class::Auth,
            Trouble::Money => Class::Budget,
            Trouble::Turns => Class::MaxTurns,
            Trouble::Provider => Class::Unavailable,
            Trouble::Other => Class::Failed,
        }
    }
}

/// How much of a message is looked at.
const LOOKED_AT: usize = 8 * 1024;

/// Wordings, in lower case. The first row that fits wins: an answer about a full context may also name a status.
const WORDINGS: &[(Trouble, &[&str])] = &[
    (
        Trouble::TokenLimit,
        &[
            "prompt is too long",
            "input is too long",
            "context_length_exceeded",
            "context length exceeded",
            "contextwindowexceeded",
            "contextoverflow",
            "context_limit",
            "context window",
            "maximum context length",
            "maximum prompt length",
            "maximum number of tokens allowed",
            "exceeds the maximum number of tokens",
            "exceeded the maximum number of tokens",
            "too many tokens in",
            "request_too_large",
            "has hit a token limit",
            "messageoutputlengtherror",
            "output token maximum",
            "max_output_tokens",
            "model_context_window_exceeded",
        ],
    ),
    (
        Trouble::RateLimit,
        &[
            "rate limit",
            "rate_limit",
            "ratelimit",
            "rate-limit",
            "too many requests",
            "usage limit",
            "session limit",
            "weekly limit",
            "5-hour limit",
            "hour limit reached",
            "limit reached",
            "limit will reset",
            "overloaded",
            "at capacity",
            "resource_exhausted",
            "resource exhausted",
            "quota exceeded",
            "quota_exceeded",
            "exceeded your current quota",
            "insufficient_quota",
            "exhausted your capacity",
            "daily quota",
            "throttl",
        ],
    ),
    (
        Trouble::Money,
        &[
            "credit balance is too low",
            "insufficient credits",
            "insufficient balance",
            "insufficient funds",
            "out of credits",
            "payment required",
            "billing_error",
            "max budget",
            "maximum budget",
            "budget exceeded",
        ],
    ),
    (
        Trouble::Auth,
        &[
            "authentication",
            "failed to authenticate",
            "unauthorized",
            "invalid api key",
            "invalid_api_key",
            "incorrect api key",
            "api key not valid",
            "api key is missing",
            "no api key",
            "api_key_invalid",
            "providerautherror",
            "permission_error",
            "please run /login",
            "not logged in",
            "please log in",
            "log in again",
            "token has expired",
            "token could not be refreshed",
            "oauth token",
        ],
    ),
    (Trouble::Turns, &["maximum number of turns", "max turns", "max session turns", "turn limit"]),
];

/// Wordings that count only where no status says more.
const BROKEN_OFF: &[&str] = &[
    "stream disconnected",
    "stream closed",
    "stream ended without",
    "connection error",
    "connection refused",
    "connection reset",
    "econnre",
    "enotfound",
    "etimedout",
    "timed out",
    "fetch failed",
    "network error",
    "socket hang up",
    "internal server error",
    "internalservererror",
    "api_error",
    "apiconnectionerror",
    "service unavailable",
    "serviceunavailable",
    "bad gateway",
    "unexpected eof",
    "missing finish_reason",
    "high demand",
    "terminated",
];

/// Judges a failure by its status code, if there is one, and its words.
pub(crate) fn judge(status: Option<u64>, text: &str) -> Trouble {
    if let Some(certain) = status.and_then(by_status) {
        return certain;
    }
    let text = text.get(..text.floor_char_boundary(LOOKED_AT)).unwrap_or_default().to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if let Some((kind, _)) = WORDINGS.iter().find(|(_, words)| says(words)) {
        return *kind;
    }
    let status = status.or_else(|| status_in(&text));
    match status {
        Some(code) if by_status(code).is_some() => by_status(code).unwrap_or(Trouble::Other),
        Some(408 | 500..=599) => Trouble::Provider,
        _ if says(BROKEN_OFF) => Trouble::Provider,
        _ => Trouble::Other,
    }
}

/// What a status means whatever the words are.
fn by_status(code: u64) -> Option<Trouble> {
    match code {
        401 | 403 => Some(Trouble::Auth),
        402 => Some(Trouble::Money),
        413 => Some(Trouble::TokenLimit),
        429 | 529 => Some(Trouble::RateLimit),
        _ => None,
    }
}

/// A status code in a text of lower case: three digits that begin it, or that stand behind a word for such a code.
fn status_in(text: &str) -> Option<u64> {
    let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    (0..text.len()).find_map(|at| {
        let alone = (at..at + 3).all(is_digit) && !is_digit(at + 3) && (at == 0 || !is_digit(at - 1));
        let code: u64 = if alone { text.get(at..at + 3)?.parse().ok()? } else { return None };
        let before = text.get(text.floor_char_boundary(at.saturating_sub(16))..at).unwrap_or_default();
        let named = ["status", "code", "error", "http"].iter().any(|word| before.contains(word));
        ((400..600).contains(&code) && (named || before.trim().is_empty())).then_some(code)
    })
}
