//! The command line: its grammar, one module per command, and the path from arguments to the exit code.

pub(crate) mod app;
pub(crate) mod arguments;
pub(crate) mod inspect;
pub(crate) mod invocation;
pub(crate) mod land;
pub(crate) mod lanes;
pub(crate) mod plans;
pub(crate) mod runs;
pub(crate) mod safety;
pub(crate) mod set_up;
pub(crate) mod terminal;
