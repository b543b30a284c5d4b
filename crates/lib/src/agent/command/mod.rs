//! Command, prompt and conversation of a run.

pub mod agent_command;
pub mod allowed_commands;
pub mod conversation;
pub mod fresh_conversation;
pub mod prompt;
pub mod runnable_commands;
pub mod startup_question;
pub mod warnings;
