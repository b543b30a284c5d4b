//! Part of an agent's profile for a tmux window.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Part of an agent's profile that applies in a window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WindowProfile {
    /// Environment variables that do not override the user's environment.
    pub(crate) env_default: BTreeMap<String, String>,
    /// Question that the agent shows before it starts to work, and where it saves the answer.
    #[serde(rename = "asks")]
    pub(crate) trust_question: TrustQuestion,
}

/// Question of an agent whether a folder is trusted. Only the user answers: git-proq reads the saved answer,
/// and never writes one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TrustQuestion {
    /// The agent shows no question.
    #[default]
    #[serde(rename = "nothing")]
    Never,
    /// The agent may show the question; earlier answers are unknown.
    #[serde(rename = "perhaps")]
    Possible,
    /// The question of Claude Code, shown once per repository. The answer is saved in `.claude.json`.
    Claude,
    /// The question of Codex, shown once per repository. The answer is saved in `config.toml`, and can also
    /// be given in advance for one run.
    Codex,
}
