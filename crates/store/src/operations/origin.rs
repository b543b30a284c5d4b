//! Origin of an operation: what it was started from.

use proq_base::lane_name::LaneName;

use crate::locks::holder::internal_command;

/// Environment variable that names the origin of a command that another program of git-proq starts.
pub const ORIGIN_VARIABLE: &str = "PROQ_VIA";

/// Value of [`ORIGIN_VARIABLE`] for commands that an MCP client starts.
pub const MCP_ORIGIN: &str = "mcp";

/// Describes what the operations of this process are started from: `terminal`, `agent NAME`, `supervisor`,
/// `scheduler`, `hook` of git outside of an agent's run, or `mcp`.
pub(super) fn describe_origin() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let agent_lane = variable("PROQ_ATTEMPT").and_then(|_| LaneName::parse(&variable("PROQ_LANE")?).ok());
    match (internal_command().as_deref(), agent_lane) {
        (Some("_swarm"), _) => "scheduler".to_owned(),
        (Some("_hook" | "_moved"), None) => "hook".to_owned(),
        // A supervisor has the variables of the agent that it starts.
        (Some("_supervise"), _) | (Some(_), None) => "supervisor".to_owned(),
        (_, Some(lane)) => format!("agent {lane}"),
        (None, None) => match variable(ORIGIN_VARIABLE).as_deref() {
            Some(MCP_ORIGIN) => MCP_ORIGIN.to_owned(),
            _ => "terminal".to_owned(),
        },
    }
}
