//! Owns being the client of an agent that speaks the Agent Client Protocol.

mod driver;
mod leave;
mod place;
mod relay;
mod rpc;
mod shell;
mod talk;
#[cfg(test)]
mod tests;

pub(crate) use driver::{Hands, Left, drive};
