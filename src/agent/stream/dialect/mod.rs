//! Parsers of agents' output, one for each dialect.

pub(crate) mod acp;
pub(crate) mod aider;
pub(crate) mod claude;
pub(crate) mod codex;
pub(crate) mod copilot;
pub(crate) mod gemini;
pub(crate) mod opencode;
pub(crate) mod pi;
pub(crate) mod qwen;
pub(crate) mod text_output;
