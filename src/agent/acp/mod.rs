//! Client for agents that speak the Agent Client Protocol.

mod client;
mod driver;
mod lane_path;
mod relay;
mod rpc;
mod shell_line;
#[cfg(test)]
mod tests;
mod tool_policy;

pub(crate) use driver::{AgentExit, DriverHandles, run_protocol_agent};
