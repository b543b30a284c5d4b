//! Client for agents that speak the Agent Client Protocol.

pub(crate) mod client;
pub(crate) mod driver;
pub(crate) mod lane_path;
pub(crate) mod relay;
pub(crate) mod rpc;
pub(crate) mod shell_line;
#[cfg(test)]
mod tests;
pub(crate) mod tool_policy;
