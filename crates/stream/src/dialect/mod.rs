//! Parsers of agents' output, one for each dialect.

pub mod acp;
pub mod aider;
pub mod claude;
pub mod codex;
pub mod copilot;
pub mod gemini;
pub mod opencode;
pub mod pi;
pub mod qwen;
pub mod text_output;
