//! Tests of the failure messages of each agent. The kind of limit decides whether git-proq waits, starts a
//! new conversation or gives up.

use crate::base::failure_kind::FailureKind::{Auth, Money, Other, Provider, RateLimit, TokenLimit, Turns};
use crate::base::failure_kind::{FailureKind, classify_failure};

type FailureCase = (Option<u64>, &'static str, FailureKind);

fn check_cases(cases: &[FailureCase]) {
    for (status, words, wanted) in cases {
        assert_eq!(classify_failure(*status, words), *wanted, "{status:?} {words}");
    }
}

#[test]
fn classifies_status_codes() {
    check_cases(&[
        (Some(401), "", Auth),
        (Some(402), "", Money),
        (Some(403), "", Auth),
        (Some(413), "", TokenLimit),
        (Some(429), "", RateLimit),
        (Some(529), "", RateLimit),
        (Some(500), "", Provider),
        (Some(503), "", Provider),
        (Some(503), "The model is overloaded. Please try again later.", RateLimit),
        (Some(400), "", Other),
        (Some(400), "maximum context length is 128000 tokens", TokenLimit),
        (Some(404), "model not found", Other),
        (None, "", Other),
    ]);
}

#[test]
fn classifies_claude_messages() {
    check_cases(&[
        (
            None,
            "rate_limit_error Number of request tokens has exceeded your per-minute rate limit",
            RateLimit,
        ),
        (None, "overloaded_error API Error: 529 Overloaded", RateLimit),
        (None, "API Error: 500 Internal server error", Provider),
        (None, "Claude AI usage limit reached|1795221600", RateLimit),
        (None, "You've hit your session limit · resets 3pm", RateLimit),
        (None, "You've hit your weekly limit", RateLimit),
        (None, "invalid_request_error prompt is too long: 201234 tokens > 200000 maximum", TokenLimit),
        (Some(400), "Credit balance is too low", Money),
        (None, "Invalid API key · Please run /login", Auth),
        (None, "Failed to authenticate. API Error: 401 stub error 401", Auth),
        (None, "Reached maximum number of turns (1)", Turns),
        (None, "No conversation found with session ID: 0", Other),
    ]);
}

#[test]
fn classifies_codex_messages() {
    check_cases(&[
        (None, "You've hit your usage limit. Upgrade to Pro or try again in 3 days.", RateLimit),
        (None, "exceeded retry limit, last status: 429 Too Many Requests", RateLimit),
        (
            None,
            "stream disconnected before completion: Rate limit reached for gpt-5 on tokens per min",
            RateLimit,
        ),
        (None, "unexpected status 401 Unauthorized: no key, url: http://x/v1/responses", Auth),
        (None, "unexpected status 503 Service Unavailable: x", Provider),
        (None, "Quota exceeded. Check your plan and billing details.", RateLimit),
        (None, "Codex ran out of room in the model's context window. Start a new conversation", TokenLimit),
        (None, "context_length_exceeded", TokenLimit),
        (None, "stream disconnected before completion: stream closed before response.completed", Provider),
        (None, "Your access token could not be refreshed. Please log in again.", Auth),
        (None, "selected model is at capacity", RateLimit),
        (None, "We're currently experiencing high demand, which may cause temporary errors.", Provider),
    ]);
}

#[test]
fn classifies_opencode_messages() {
    check_cases(&[
        (Some(429), "APIError Too Many Requests", RateLimit),
        (None, "ProviderAuthError no credentials", Auth),
        (None, "MessageOutputLengthError", TokenLimit),
        (None, "ContextOverflowError Input exceeds context window of this model", TokenLimit),
        (None, "UnknownError fetch failed", Provider),
        (None, "UnknownError something", Other),
    ]);
}

#[test]
fn classifies_gemini_and_qwen_messages() {
    check_cases(&[
        (None, "[API Error: {\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}]", RateLimit),
        (None, "You have exhausted your daily quota on this model.", RateLimit),
        (
            None,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            TokenLimit,
        ),
        (None, "API key not valid. Please pass a valid API key.", Auth),
        (None, "Model stream ended without a finish reason.", Provider),
        (None, "[API Error: 429 insufficient_quota]", RateLimit),
        (None, "[API Error: 401 stub error 401]", Auth),
        (None, "[API Error: Connection error. (cause: fetch failed)]", Provider),
    ]);
}

#[test]
fn classifies_copilot_and_pi_messages() {
    check_cases(&[
        (None, "rate_limit You have been rate limited", RateLimit),
        (Some(402), "quota You have no quota left", Money),
        (None, "context_limit too much", TokenLimit),
        (None, "authentication Authentication failed with provider at http://x/v1 (HTTP 401).", Auth),
        (None, "401: {\"type\":\"authentication_error\",\"message\":\"no\",\"code\":401}", Auth),
        (None, "401 stub error", Auth),
        (None, "429 slow down", RateLimit),
        (None, "terminated", Provider),
        (
            None,
            "query Failed to get response from the AI model; retried 5 times. Last error: missing finish_reason for choice 0",
            Provider,
        ),
        (
            Some(400),
            "Failed to get response from the AI model; retried 5 times. Last error: bad request",
            Other,
        ),
    ]);
}

#[test]
fn classifies_aider_messages() {
    check_cases(&[
        (None, "litellm.RateLimitError: RateLimitError: OpenAIException - x", RateLimit),
        (None, "litellm.AuthenticationError: AuthenticationError: OpenAIException - stub error 401", Auth),
        (None, "litellm.ContextWindowExceededError: x", TokenLimit),
        (None, "litellm.APIConnectionError: x", Provider),
        (None, "litellm.InternalServerError: x", Provider),
        (None, "litellm.BadRequestError: x", Other),
    ]);
}

#[test]
fn ignores_numbers_that_are_no_status() {
    check_cases(&[
        (None, "wrote 429 files", Other),
        (None, "line 401 of main.rs has an extra bracket", Other),
        (None, "error 4290", Other),
        (None, "état 401", Other),
        (None, "error in ünï 401", Auth),
    ]);
}
