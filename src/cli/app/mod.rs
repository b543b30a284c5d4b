//! The program: its grammar, help, hidden commands and dispatch.

pub(crate) mod args;
pub(crate) mod completion;
pub(crate) mod help_page;
pub(crate) mod internal;
pub(crate) mod program;
