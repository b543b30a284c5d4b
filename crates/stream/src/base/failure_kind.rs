//! Classification of failures by status code or message: the wordings of all dialects in one table.

use serde::{Deserialize, Serialize};

/// Kind of a failure that an agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// Too many requests at once, or the user's subscription is used up for now. Waiting helps.
    RateLimit,
    /// The context or the answer is longer than the model accepts. Waiting does not help.
    TokenLimit,
    /// The key or the login is missing or not accepted.
    Auth,
    /// No money is left, or the run has reached its budget.
    Money,
    /// The run has used all the turns it may take.
    Turns,
    /// The provider was unreachable, broke off or failed internally. Another attempt may help.
    Provider,
    /// Any other failure.
    Other,
}

/// Maximum number of bytes of a failure message that are searched for phrases.
const MAX_CLASSIFIED_BYTES: usize = 8 * 1024;

/// Lower-case phrases for each kind of failure. The first row with a matching phrase wins. The full context
/// is first, since such a message may also contain a status code.
const FAILURE_PHRASES: &[(FailureKind, &[&str])] = &[
    (
        FailureKind::TokenLimit,
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
        FailureKind::RateLimit,
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
        FailureKind::Money,
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
        FailureKind::Auth,
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
    (FailureKind::Turns, &["maximum number of turns", "max turns", "max session turns", "turn limit"]),
];

/// Lower-case phrases for provider failures. They count only where no status code is more specific.
const PROVIDER_FAILURE_PHRASES: &[&str] = &[
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

/// Classifies a failure by its status code, if it has one, and its message.
pub(crate) fn classify_failure(status: Option<u64>, text: &str) -> FailureKind {
    if let Some(status_kind) = status.and_then(kind_of_status) {
        return status_kind;
    }
    let text = text.get(..text.floor_char_boundary(MAX_CLASSIFIED_BYTES)).unwrap_or_default().to_lowercase();
    let contains_any = |phrases: &[&str]| phrases.iter().any(|word| text.contains(word));
    if let Some((kind, _)) = FAILURE_PHRASES.iter().find(|(_, words)| contains_any(words)) {
        return *kind;
    }
    let status = status.or_else(|| find_status_code(&text));
    match status {
        Some(code) if kind_of_status(code).is_some() => kind_of_status(code).unwrap_or(FailureKind::Other),
        Some(408 | 500..=599) => FailureKind::Provider,
        _ if contains_any(PROVIDER_FAILURE_PHRASES) => FailureKind::Provider,
        _ => FailureKind::Other,
    }
}

/// Returns the kind of failure that a status code means regardless of the message.
fn kind_of_status(code: u64) -> Option<FailureKind> {
    match code {
        401 | 403 => Some(FailureKind::Auth),
        402 => Some(FailureKind::Money),
        413 => Some(FailureKind::TokenLimit),
        429 | 529 => Some(FailureKind::RateLimit),
        _ => None,
    }
}

/// Finds a status code in a lower-case text: three digits at the start of the text or after a keyword such as
/// `status`.
fn find_status_code(text: &str) -> Option<u64> {
    let is_digit = |index: usize| text.as_bytes().get(index).is_some_and(u8::is_ascii_digit);
    (0..text.len()).find_map(|start| {
        let is_three_digits =
            (start..start + 3).all(is_digit) && !is_digit(start + 3) && (start == 0 || !is_digit(start - 1));
        let code: u64 =
            if is_three_digits { text.get(start..start + 3)?.parse().ok()? } else { return None };
        let preceding =
            text.get(text.floor_char_boundary(start.saturating_sub(16))..start).unwrap_or_default();
        let has_keyword = ["status", "code", "error", "http"].iter().any(|word| preceding.contains(word));
        ((400..600).contains(&code) && (has_keyword || preceding.trim().is_empty())).then_some(code)
    })
}
