//! Events that the output of every agent is converted to, and the meaning of tokens and money in them.

use std::time::Duration;

use proq_base::usage::{Cost, Tokens};
use serde::Serialize;
use serde_json::Value;

use super::failure_kind::FailureKind;

/// An action of the agent, or a report about its run. Texts are truncated to a bound; the raw lines in the
/// log are complete.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum StreamEvent {
    /// The session id or the model became known or changed.
    Session {
        /// Session id that the agent chose.
        id: String,
        /// Model, where the agent reports it.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// Text that the agent wrote.
    Text {
        /// Text of the agent or its subagent, truncated to a bound.
        text: String,
        /// Tool call whose subagent wrote the text.
        #[serde(rename = "parent", skip_serializing_if = "Option::is_none")]
        parent_call: Option<String>,
    },
    /// Reasoning of the agent.
    Thinking {
        /// Text of the reasoning, truncated to a bound.
        text: String,
        /// Tool call whose subagent produced the reasoning.
        #[serde(rename = "parent", skip_serializing_if = "Option::is_none")]
        parent_call: Option<String>,
    },
    /// A tool was called.
    ToolUse {
        /// Id of the call.
        id: String,
        /// Tool name that the agent uses.
        name: String,
        /// Input of the tool.
        input: Value,
        /// Tool call whose subagent made this call.
        #[serde(rename = "parent", skip_serializing_if = "Option::is_none")]
        parent_call: Option<String>,
    },
    /// Result of a tool call.
    ToolResult {
        /// Id of the call.
        id: String,
        /// Whether the tool succeeded.
        ok: bool,
        /// Output of the tool.
        output: String,
    },
    /// Tokens that this run has used so far: a total, not an increase.
    Usage(Tokens),
    /// Money that this run has cost so far: a total, not an increase.
    Cost(Cost),
    /// Fill level of the model's context.
    Context {
        /// Number of tokens in the context.
        #[serde(rename = "used")]
        tokens_in_context: u64,
        /// Number of tokens that fit into the context.
        #[serde(rename = "size", skip_serializing_if = "Option::is_none")]
        context_size: Option<u64>,
    },
    /// A further message was sent to the agent, in the same process.
    #[serde(rename = "told")]
    MessageSent {
        /// Text of the message, truncated to a bound.
        text: String,
    },
    /// The agent requests permission to use a tool.
    #[serde(rename = "permission-asked")]
    PermissionRequested {
        /// Id of the request, needed to answer it.
        id: String,
        /// Name of the tool.
        tool: String,
        /// Input that the tool would get.
        input: Value,
    },
    /// Permission to use a tool was refused.
    PermissionRefused {
        /// Name of the tool.
        tool: String,
        /// Message that the agent received.
        message: String,
        /// Shell command of the call; none where it has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
    /// A request failed, and the agent retries it automatically.
    Retry {
        /// Number of the attempt, as the agent counts it.
        #[serde(skip_serializing_if = "Option::is_none")]
        attempt: Option<u64>,
        /// Maximum number of attempts.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[serde(rename = "of")]
        max_attempts: Option<u64>,
        /// Delay before the retry.
        #[serde(rename = "delay_ms", with = "proq_base::time_form::millis::option")]
        #[serde(skip_serializing_if = "Option::is_none")]
        delay: Option<Duration>,
        /// Reason for the failure.
        #[serde(rename = "why")]
        reason: String,
    },
    /// A notice of the agent that is not an error.
    Warning {
        /// Text of the notice, truncated to a bound.
        message: String,
    },
    /// An error that the agent does not retry.
    Error {
        /// Message of the agent.
        message: String,
        /// Kind of failure.
        kind: FailureKind,
    },
    /// The agent reports that it has finished.
    Result {
        /// Whether the agent reports success.
        ok: bool,
        /// Last message of the agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A line that no parser interprets. The log contains it.
    Unknown {
        /// Type that the line names, or a description of the line.
        kind: String,
    },
}
