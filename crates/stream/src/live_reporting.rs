//! Reports that agents of each dialect give during a run, and not only at its end.

use super::reader::Dialect;

/// When an agent reports during its run how full its model's context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextReporting {
    /// While the agent works.
    WhileRunning,
    /// After the first turn, since the agent reports the size of the context only at the end of a turn.
    AfterFirstTurn,
    /// The agent never reports it.
    Never,
}

impl Dialect {
    /// Returns whether agents of this dialect report tokens while they use them.
    pub fn reports_tokens_live(self) -> bool {
        matches!(self, Dialect::Claude | Dialect::Qwen | Dialect::OpenCode | Dialect::Pi | Dialect::Aider)
    }

    /// Returns whether agents of this dialect report cost while they spend it.
    pub fn reports_cost_live(self) -> bool {
        matches!(self, Dialect::OpenCode | Dialect::Pi | Dialect::Aider | Dialect::Acp)
    }

    /// Returns whether agents of this dialect name the model that they use.
    pub fn reports_model(self) -> bool {
        matches!(self, Dialect::Claude | Dialect::Gemini | Dialect::Qwen)
    }

    /// Returns when agents of this dialect report the fill level of the context.
    pub fn context_reporting(self) -> ContextReporting {
        match self {
            Dialect::Copilot | Dialect::Acp => ContextReporting::WhileRunning,
            Dialect::Claude => ContextReporting::AfterFirstTurn,
            Dialect::Codex
            | Dialect::OpenCode
            | Dialect::Gemini
            | Dialect::Qwen
            | Dialect::Pi
            | Dialect::Aider
            | Dialect::Text => ContextReporting::Never,
        }
    }
}
