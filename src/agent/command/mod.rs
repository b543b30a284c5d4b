//! Command, prompt and conversation of a run.

pub(crate) mod agent_command;
pub(crate) mod conversation;
pub(crate) mod fresh_conversation;
pub(crate) mod prompt;
pub(crate) mod startup_question;
pub(crate) mod warnings;
