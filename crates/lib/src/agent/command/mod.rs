//! Command, prompt and conversation of a run.

pub mod agent_command;
pub mod conversation;
pub mod fresh_conversation;
pub mod prompt;
pub mod startup_question;
pub mod warnings;
