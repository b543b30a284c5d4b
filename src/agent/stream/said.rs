//! Owns what whoever talks with an agent says in a run's log, between the agent's own lines: the client of the Agent Client Protocol,
//! or the supervisor that feeds it.

use serde::{Deserialize, Serialize};

/// How each line of the client's begins. No line of an agent's in the log does: whoever writes them there puts a space before
/// one that would, and before one that has such a space.
pub(crate) const OURS: &[u8] = b"{\"proq\":";

/// A line of the client's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "proq", rename_all = "kebab-case")]
pub(crate) enum Said {
    /// The agent was asked for something. Its reply has this number.
    Asks {
        /// The number.
        id: u64,
        /// The protocol's name for it.
        method: String,
        /// The session that is to be gone on with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// What somebody had to tell the agent beyond its task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        more: Option<String>,
    },
    /// The agent may not use a tool.
    Refuses {
        /// The call.
        call: String,
        /// The tool.
        tool: String,
        /// Why.
        why: String,
    },
    /// Something to know.
    Notes {
        /// What.
        text: String,
    },
    /// It cannot go on, for a reason that is not in the agent's own lines.
    Fails {
        /// Why.
        text: String,
    },
    /// Nothing more will be asked.
    Ends,
}

impl Said {
    /// The line, with its end.
    pub(crate) fn line(&self) -> String {
        // Texts and numbers only: that cannot fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_ours_begins_as_all_do() {
        let text = || "x\ny".to_owned();
        let asks = |session, more| Said::Asks { id: 7, method: text(), session, more };
        let all = [
            asks(None, None),
            asks(Some(text()), Some(text())),
            Said::Refuses { call: text(), tool: text(), why: text() },
            Said::Notes { text: text() },
            Said::Fails { text: text() },
            Said::Ends,
        ];
        for said in all {
            let line = said.line();
            assert!(line.as_bytes().starts_with(OURS) && line.find('\n') == Some(line.len() - 1), "{line}");
            assert_eq!(serde_json::from_str::<Said>(&line).unwrap(), said);
        }
    }
}
