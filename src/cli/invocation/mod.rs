//! What every command is given and returns: context, failures, confirmations.

pub(crate) mod approval_prompt;
pub(crate) mod caller;
pub(crate) mod confirm;
pub(crate) mod context;
pub(crate) mod failure;
pub(crate) mod program_path;
pub(crate) mod reporter;
pub(crate) mod usage_error;
