//! Reports that agents of each dialect give during a run, and not only at its end.

use super::Dialect;

/// Time from which an agent reports the fill level of its model's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContextReporting {
    /// During its work.
    WhileRunning,
    /// From the end of its first turn on: only then it reports the size of the context.
    AfterFirstTurn,
    /// Never.
    Never,
}

impl Dialect {
    /// Returns whether agents of this dialect report tokens while they use them.
    pub(crate) fn reports_tokens_live(self) -> bool {
        matches!(self, Dialect::Claude | Dialect::Qwen | Dialect::OpenCode | Dialect::Pi | Dialect::Aider)
    }

    /// Returns whether agents of this dialect report cost while they spend it.
    pub(crate) fn reports_cost_live(self) -> bool {
        matches!(self, Dialect::OpenCode | Dialect::Pi | Dialect::Aider | Dialect::Acp)
    }

    /// Returns whether agents of this dialect name the model that they use.
    pub(crate) fn reports_model(self) -> bool {
        matches!(self, Dialect::Claude | Dialect::Gemini | Dialect::Qwen)
    }

    /// Returns when agents of this dialect report the fill level of the context.
    pub(crate) fn context_reporting(self) -> ContextReporting {
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
