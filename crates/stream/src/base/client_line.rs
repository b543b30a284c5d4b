//! Lines that git-proq itself writes into a run's log between the agent's lines: as the client of the Agent
//! Client Protocol, or as the supervisor that sends the agent messages.

use serde::{Deserialize, Serialize};

/// Prefix of each client line. The writer of the log inserts a space before an agent's line that begins with
/// this prefix, or with spaces and this prefix.
pub const CLIENT_LINE_PREFIX: &[u8] = b"{\"proq\":";

/// A line of the client in a run's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "proq", rename_all = "kebab-case")]
pub enum ClientLine {
    /// The client sent a request to the agent. The reply has the same id.
    #[serde(rename = "asks")]
    Request {
        /// Id of the request.
        id: u64,
        /// Protocol method of the request.
        method: String,
        /// Session that the request resumes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Message that a user or agent sent in addition to the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "more")]
        message: Option<String>,
    },
    /// The client refused permission to use a tool.
    #[serde(rename = "refuses")]
    ToolRefused {
        /// Id of the tool call.
        #[serde(rename = "call")]
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// Reason for the refusal.
        #[serde(rename = "why")]
        reason: String,
    },
    /// A notice of the client, which is shown as a warning.
    #[serde(rename = "notes")]
    Note {
        /// Text of the notice.
        text: String,
    },
    /// The client cannot continue, for a reason that the agent's own lines do not contain.
    #[serde(rename = "fails")]
    Failure {
        /// The reason.
        text: String,
    },
    /// The client sends no further requests.
    #[serde(rename = "ends")]
    NoMoreRequests,
}

impl ClientLine {
    /// Returns the entry as a line of the run's log, with its line break.
    pub fn to_line(&self) -> String {
        // The value contains only texts and numbers, so serialization cannot fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_lines_start_with_the_prefix() {
        let text = || "x\ny".to_owned();
        let request = |session, message| ClientLine::Request { id: 7, method: text(), session, message };
        let client_lines = [
            request(None, None),
            request(Some(text()), Some(text())),
            ClientLine::ToolRefused { call_id: text(), tool: text(), reason: text() },
            ClientLine::Note { text: text() },
            ClientLine::Failure { text: text() },
            ClientLine::NoMoreRequests,
        ];
        for client_line in client_lines {
            let line = client_line.to_line();
            assert!(
                line.as_bytes().starts_with(CLIENT_LINE_PREFIX) && line.find('\n') == Some(line.len() - 1),
                "{line}"
            );
            assert_eq!(serde_json::from_str::<ClientLine>(&line).unwrap(), client_line);
        }
    }
}
