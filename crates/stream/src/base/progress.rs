//! Progress of a run, and the tool calls that were refused in it.

use proq_base::usage::{Cost, Tokens};
use serde::Serialize;

/// Progress of a run so far.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Id of the session.
    pub session: Option<String>,
    /// Model that the agent uses.
    pub model: Option<String>,
    /// Number of tool calls.
    pub tool_calls: u64,
    /// Name of the last tool that was called.
    pub last_tool: Option<String>,
    /// Shell command of the last tool call; none if that tool runs no command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_command: Option<String>,
    /// Tokens that the run has used.
    pub tokens: Tokens,
    /// Cost of the run.
    pub cost: Option<Cost>,
    /// Number of tokens in the model's context.
    pub(crate) context_used: Option<u64>,
    /// Number of tokens that fit into the context.
    pub context_size: Option<u64>,
    /// Number of model requests, where the agent reports it.
    pub turns: Option<u64>,
    /// Number of retried requests.
    pub retries: u64,
    /// Number of tool calls that were refused; those after the fiftieth are not counted.
    #[serde(skip_serializing_if = "is_default")]
    pub denied: u64,
    /// Shell commands of the first refused calls, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied_commands: Vec<String>,
    /// Beginning of the agent's last text.
    pub last_text: Option<String>,
}

impl Progress {
    /// Returns how full the context is, in percent, where the agent reports its size.
    pub fn context_percent(&self) -> Option<u64> {
        let (used, size) = (self.context_used?, self.context_size.filter(|size| *size > 0)?);
        Some(used.saturating_mul(100) / size)
    }
}

/// Returns whether a count is zero, so that it is left out.
fn is_default<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}

/// A tool call that was not permitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Id of the call, where it has one.
    pub id: Option<String>,
    /// Name of the tool.
    pub tool: String,
    /// Message that the agent received.
    pub message: String,
}
