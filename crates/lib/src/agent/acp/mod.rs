//! Client for agents that speak the Agent Client Protocol.

pub mod client;
pub mod driver;
pub mod lane_path;
pub mod relay;
pub mod rpc;
pub mod shell_line;
#[cfg(test)]
mod tests;
pub mod tool_policy;
