//! Tools of an agent in a lane: read its task, and report on it.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::{schemars, tool, tool_router};
use serde::{Deserialize, Serialize};

use super::server::Server;

/// A report, as the tool takes it.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    /// Where you are with the task, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// What you found that a person should know: bugs, doubts, decisions you took. One text each.
    #[serde(default)]
    findings: Vec<String>,
    /// What only a person can do, such as making an account or deciding between two designs. One text each.
    #[serde(default)]
    human_steps: Vec<String>,
}

#[tool_router(router = task_tools, vis = "pub(super)")]
impl Server {
    #[tool(
        description = "Read the task of the lane you work in: its prompt, the branch it lands on, its scope, the \
                       commands that must succeed, and your last report.",
        annotations(title = "Read the lane's task", read_only_hint = true, open_world_hint = false)
    )]
    async fn read_task(&self) -> CallToolResult {
        self.run_as_tool(&["task", "read", "--json"], Vec::new()).await
    }

    #[tool(
        description = "Report on the task of the lane you work in. A report replaces the previous one, so include \
                       everything that still holds. Your commits decide whether the task is done, not the report.",
        annotations(
            title = "Report on the lane's task",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        )
    )]
    async fn update_task(&self, Parameters(report): Parameters<Report>) -> CallToolResult {
        match serde_json::to_vec(&report) {
            Ok(text) => self.run_as_tool(&["task", "update", "--json", "-f", "-"], text).await,
            Err(e) => super::tool_call::error_result(&e.to_string()),
        }
    }
}
