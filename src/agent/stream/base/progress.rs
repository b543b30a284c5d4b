//! Progress of a run, and the tool calls that were refused in it.

use serde::Serialize;

use crate::usage::{Cost, Tokens};

/// Progress of a run so far.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Progress {
    /// Id of the session.
    pub(crate) session: Option<String>,
    /// Model that the agent uses.
    pub(crate) model: Option<String>,
    /// Number of tool calls.
    pub(crate) tool_calls: u64,
    /// Name of the last tool that was called.
    pub(crate) last_tool: Option<String>,
    /// Tokens that the run has used.
    pub(crate) tokens: Tokens,
    /// Cost of the run.
    pub(crate) cost: Option<Cost>,
    /// Number of tokens in the model's context.
    pub(crate) context_used: Option<u64>,
    /// Number of tokens that fit into the context.
    pub(crate) context_size: Option<u64>,
    /// Number of model requests, where the agent reports it.
    pub(crate) turns: Option<u64>,
    /// Number of retried requests.
    pub(crate) retries: u64,
    /// Beginning of the agent's last text.
    pub(crate) last_text: Option<String>,
}

impl Progress {
    /// Returns how full the context is, in percent, where the agent reports its size.
    pub(crate) fn context_percent(&self) -> Option<u64> {
        let (used, size) = (self.context_used?, self.context_size.filter(|size| *size > 0)?);
        Some(used.saturating_mul(100) / size)
    }
}

/// A tool call that was not permitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Refusal {
    /// Id of the call, where it has one.
    pub(crate) id: Option<String>,
    /// Name of the tool.
    pub(crate) tool: String,
    /// Message that the agent received.
    pub(crate) message: String,
}
