//! Result of an agent's run, as its record, the scheduler and reports name it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Result of a run, in more detail than the lane state that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunClass {
    /// The agent succeeded.
    Done,
    /// The agent reported a failure, or exited with a failing code.
    Failed,
    /// The service refused requests temporarily, because of a rate limit.
    RateLimited,
    /// The service was unreachable, closed the connection, or had an internal error.
    Unavailable,
    /// The input was too long, or the tokens were used up.
    TokenLimit,
    /// The service rejected the credentials.
    Auth,
    /// The run reached its maximum number of turns.
    MaxTurns,
    /// The run reached its cost limit.
    Budget,
    /// The agent lacked a permission that it needed.
    Refused,
    /// The context of the model was full.
    ContextFull,
    /// The agent crashed, or exited without a final message.
    Crashed,
    /// The agent was terminated from outside before its final message.
    Interrupted,
    /// The run made no progress for too long.
    Stalled,
    /// The run reached its time limit.
    Timeout,
    /// The agent repeated the same output endlessly.
    Runaway,
    /// The agent succeeded, but so many runs made no progress that the task was given up.
    GivenUp,
    /// The run was stopped on request.
    Stopped,
}

impl fmt::Display for RunClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RunClass::Done => "done",
            RunClass::Failed => "failed",
            RunClass::RateLimited => "rate-limited",
            RunClass::Unavailable => "unavailable",
            RunClass::TokenLimit => "token-limit",
            RunClass::Auth => "auth",
            RunClass::MaxTurns => "max-turns",
            RunClass::Budget => "budget",
            RunClass::Refused => "refused",
            RunClass::ContextFull => "context-full",
            RunClass::Crashed => "crashed",
            RunClass::Interrupted => "interrupted",
            RunClass::Stalled => "stalled",
            RunClass::Timeout => "timeout",
            RunClass::Runaway => "runaway",
            RunClass::GivenUp => "given-up",
            RunClass::Stopped => "stopped",
        })
    }
}
