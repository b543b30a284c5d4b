//! Owns what the agents of each dialect tell while a run lasts, and not only when it has ended.

use super::Dialect;

/// When an agent tells how full its model's context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// While it works.
    Midway,
    /// From the end of its first turn on: only then it says how large the context is.
    AfterATurn,
    /// Never.
    Never,
}

impl Dialect {
    /// Whether it tells tokens as it uses them.
    pub(crate) fn tells_tokens_midway(self) -> bool {
        matches!(self, Dialect::Claude | Dialect::Qwen | Dialect::OpenCode | Dialect::Pi | Dialect::Aider)
    }

    /// Whether it tells money as it spends it.
    pub(crate) fn tells_cost_midway(self) -> bool {
        matches!(self, Dialect::OpenCode | Dialect::Pi | Dialect::Aider | Dialect::Acp)
    }

    /// Whether it says which model it uses.
    pub(crate) fn names_its_model(self) -> bool {
        matches!(self, Dialect::Claude | Dialect::Gemini | Dialect::Qwen)
    }

    /// When it tells how full the context is.
    pub(crate) fn tells_context(self) -> Context {
        match self {
            Dialect::Copilot | Dialect::Acp => Context::Midway,
            Dialect::Claude => Context::AfterATurn,
            Dialect::Codex
            | Dialect::OpenCode
            | Dialect::Gemini
            | Dialect::Qwen
            | Dialect::Pi
            | Dialect::Aider
            | Dialect::Text => Context::Never,
        }
    }
}
