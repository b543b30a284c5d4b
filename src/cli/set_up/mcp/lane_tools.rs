//! Tools of the agent that supervises all lanes.

use proq_lib::agent::profiles::profile_catalog::load_profiles;
use proq_lib::board::diff::LaneDiff;
use proq_lib::board::matrix::read_matrix;
use proq_lib::board::repositories::KnownRepositories;
use proq_lib::board::rows::list_output::to_output;
use proq_lib::board::rows::load_list::{self, load_list};
use proq_lib::board::rows::show_output::ShowOutput;
use proq_lib::lane::Project;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::{schemars, tool, tool_router};
use serde::Deserialize;

use super::command_line::CommandLine;
use super::merge_tool::MergeToolRequest;
use super::server::Server;
use super::tool_call::error_result;
use crate::cli::terminal::ui::{json_text, ordered_json_text};

/// Names of tools that destroy nothing, so the user need not confirm each call.
pub(crate) const TOOLS_WITHOUT_CONFIRMATION: &[&str] = &["list", "show", "diff", "matrix", "spawn", "send"];

/// Which lanes to list.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Listed")]
struct ListRequest {
    /// Include removed lanes, as name@N.
    #[serde(default)]
    all: bool,
    /// List the lanes of all repositories of this user.
    #[serde(default)]
    everywhere: bool,
}

/// One lane.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OneLane")]
struct ShowRequest {
    /// The lane's name.
    lane: String,
}

/// Request for the changes of a lane.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Compared")]
struct DiffRequest {
    /// The lane's name.
    lane: String,
    /// Return only the changed files and their line counts.
    #[serde(default)]
    stat: bool,
}

/// Some lanes.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SomeLanes")]
struct StopRequest {
    /// The lanes' names.
    lanes: Vec<String>,
}

/// A new lane.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Wanted")]
struct SpawnRequest {
    /// Agent, as `git proq agents` lists it.
    agent: String,
    /// Complete prompt for the agent. It sees nothing of this conversation.
    prompt: String,
    /// Name of the lane: lower-case letters, digits and '-' [default: from the prompt].
    #[serde(default)]
    name: Option<String>,
    /// Branch to start from and to land on [default: the current branch].
    #[serde(default)]
    base: Option<String>,
    /// Shell commands that must succeed before the lane can land.
    #[serde(default)]
    checks: Vec<String>,
    /// Files that the task should touch, as globs.
    #[serde(default)]
    scope: Vec<String>,
}

/// A message to an agent.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Message")]
struct SendRequest {
    /// The lane's name.
    lane: String,
    /// Text of the message.
    text: String,
}

/// Request for a preview, or for its end.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Shown")]
struct PreviewRequest {
    /// Lane to show; without it, the preview ends.
    #[serde(default)]
    lane: Option<String>,
}

#[tool_router(router = lane_tools, vis = "pub(super)")]
impl Server {
    #[tool(
        description = "List the lanes with their states, commits, uncommitted files and conflicts.",
        annotations(title = "List lanes", read_only_hint = true, open_world_hint = false)
    )]
    async fn list(&self, Parameters(request): Parameters<ListRequest>) -> CallToolResult {
        let list =
            load_list::ListRequest { include_removed: request.all, ..load_list::ListRequest::default() };
        self.read(move |call| {
            if request.everywhere {
                let known = KnownRepositories::load()?;
                if let Some(e) = &known.prune_error {
                    call.listener().warn(format!("cannot write the list of repositories: {e}"));
                }
                return Ok(json_text(known.list_lanes(list).0).into_string());
            }
            let project = call.project()?;
            let lanes = load_list(&project, list, &mut |_| {})?;
            Ok(json_text(to_output(&project, &lanes)).into_string())
        })
        .await
    }

    #[tool(
        description = "Show details of a lane: task, runs, report of its agent, and why it does not land.",
        annotations(title = "Show a lane", read_only_hint = true, open_world_hint = false)
    )]
    async fn show(&self, Parameters(request): Parameters<ShowRequest>) -> CallToolResult {
        self.read(move |call| Ok(json_text(ShowOutput::load(&call.project()?, &request.lane)?).into_string()))
            .await
    }

    #[tool(
        description = "Show what a lane changes against its base, uncommitted work included, as a patch.",
        annotations(title = "Show a lane's changes", read_only_hint = true, open_world_hint = false)
    )]
    async fn diff(&self, Parameters(request): Parameters<DiffRequest>) -> CallToolResult {
        self.read(move |call| {
            let project = call.project()?;
            let diff = LaneDiff::open(&project, project.find_lane(&request.lane)?, None)?;
            Ok(String::from_utf8_lossy(&diff.to_text(request.stat)?).into_owned())
        })
        .await
    }

    #[tool(
        description = "Show which lanes conflict with their base or with each other.",
        annotations(title = "Show conflicts between lanes", read_only_hint = true, open_world_hint = false)
    )]
    async fn matrix(&self) -> CallToolResult {
        self.read(|call| Ok(ordered_json_text(read_matrix(&call.project()?, &[], true)?).into_string())).await
    }

    #[tool(
        description = "Create a lane and start an agent in it. Returns at once; follow it with list and show.",
        annotations(
            title = "Start an agent in a new lane",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false
        )
    )]
    async fn spawn(&self, Parameters(request): Parameters<SpawnRequest>) -> CallToolResult {
        // The command line accepts any program on PATH as an agent. The tool accepts only agents that the
        // user has set up.
        let known = match self.run_in_process(|_| Ok(load_profiles(&Project::load_layers(None)?)?)).await {
            Ok((known, _)) => known,
            Err(reason) => return error_result(&reason),
        };
        if !known.contains_key(&request.agent) {
            let names: Vec<String> = known.into_keys().collect();
            let hint = format!("use one of {}", names.join(", "));
            return error_result(&format!("error: there is no agent with this name\nhint: {hint}"));
        }
        let command = CommandLine::with_json("spawn")
            .options("--file", [&"-".to_owned()])
            .options("--name", &request.name)
            .options("--base", &request.base)
            .options("--check", &request.checks)
            .options("--scope", &request.scope)
            .flag(&request.agent, true);
        self.run_as_tool(&command.into_args(), request.prompt.into_bytes()).await
    }

    #[tool(
        description = "Send a message to the agent of a lane; it continues in the same session.",
        annotations(
            title = "Send a message to an agent",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false
        )
    )]
    async fn send(&self, Parameters(request): Parameters<SendRequest>) -> CallToolResult {
        let command = CommandLine::with_json("send").positional_args([&request.lane, &request.text]);
        self.run_as_tool(&command.into_args(), Vec::new()).await
    }

    #[tool(
        description = "Stop the agents of lanes. Their work stays in the lane.",
        annotations(
            title = "Stop agents",
            read_only_hint = false,
            destructive_hint = true,
            idempotent_hint = true
        )
    )]
    async fn stop(&self, Parameters(request): Parameters<StopRequest>) -> CallToolResult {
        let command = CommandLine::with_json("stop").positional_args(&request.lanes);
        self.run_as_tool(&command.into_args(), Vec::new()).await
    }

    #[tool(
        description = "Show a lane in the person's main checkout, or go back. The person's own changes are saved and \
                       restored afterwards. Use it only at the person's request.",
        annotations(
            title = "Show a lane in the main checkout",
            read_only_hint = false,
            destructive_hint = true
        )
    )]
    async fn preview(&self, Parameters(request): Parameters<PreviewRequest>) -> CallToolResult {
        let command = CommandLine::with_json("preview")
            .flag("--back", request.lane.is_none())
            .positional_args(&request.lane);
        self.run_as_tool(&command.into_args(), Vec::new()).await
    }

    #[tool(
        description = "Land lanes on their base. The first call lands nothing: it returns the plan and a token. Call \
                       again with the same arguments and that token to land exactly that; if anything has changed \
                       since, the result is a new plan.",
        annotations(
            title = "Land lanes",
            read_only_hint = false,
            destructive_hint = true,
            idempotent_hint = false
        )
    )]
    async fn merge(&self, Parameters(request): Parameters<MergeToolRequest>) -> CallToolResult {
        self.land_or_plan(request).await
    }
}
