//! Owns the tools of the agent that supervises all lanes.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::{schemars, tool, tool_router};
use serde::Deserialize;
use serde_json::Value;

use super::call::refused;
use super::landing::Landing;
use super::server::Server;
use super::words::Words;

/// The tools that take nothing from anybody: a person need not be asked before each call of them.
pub(in crate::cli) const UNASKED: &[&str] = &["list", "show", "diff", "matrix", "spawn", "send"];

/// Which lanes to list.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Listed {
    /// Removed lanes too, as name@N.
    #[serde(default)]
    all: bool,
    /// The lanes of every repository of this user, not only of this one.
    #[serde(default)]
    everywhere: bool,
}

/// One lane.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneLane {
    /// The lane's name.
    lane: String,
}

/// What of a lane to compare.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Compared {
    /// The lane's name.
    lane: String,
    /// Only which files change, and how much.
    #[serde(default)]
    stat: bool,
}

/// Some lanes.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct SomeLanes {
    /// The lanes' names.
    lanes: Vec<String>,
}

/// A new lane.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The agent: one of those that `git proq agents` lists.
    agent: String,
    /// What it is asked to do, complete in itself: it sees nothing of this conversation.
    prompt: String,
    /// The lane's name, in lower-case letters, digits and '-'; made from the prompt when left out.
    #[serde(default)]
    name: Option<String>,
    /// The branch to start from and to land on; the current one when left out.
    #[serde(default)]
    base: Option<String>,
    /// Shell commands that must succeed before it lands.
    #[serde(default)]
    checks: Vec<String>,
    /// The files that it is expected to touch, as globs.
    #[serde(default)]
    scope: Vec<String>,
}

/// Something to tell an agent.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Message {
    /// The lane's name.
    lane: String,
    /// What to tell its agent.
    text: String,
}

/// What the main checkout is to show.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Shown {
    /// The lane to show; left out to go back to what was there before.
    #[serde(default)]
    lane: Option<String>,
}

#[tool_router(router = lane_tools, vis = "pub(super)")]
impl Server {
    #[tool(
        description = "List the lanes with their states, commits, uncommitted files and conflicts.",
        annotations(title = "List lanes", read_only_hint = true, open_world_hint = false)
    )]
    async fn list(&self, Parameters(asked): Parameters<Listed>) -> CallToolResult {
        let words = Words::json("list").flag("--all", asked.all).flag("--everywhere", asked.everywhere);
        self.ask(&words.all(), Vec::new()).await
    }

    #[tool(
        description = "Show all about one lane: its task, its runs, what its agent reported, why it does not land.",
        annotations(title = "Show a lane", read_only_hint = true, open_world_hint = false)
    )]
    async fn show(&self, Parameters(asked): Parameters<OneLane>) -> CallToolResult {
        self.ask(&Words::json("show").names([&asked.lane]).all(), Vec::new()).await
    }

    #[tool(
        description = "Show what a lane changes against its base, uncommitted work included, as a patch.",
        annotations(title = "Show a lane's changes", read_only_hint = true, open_world_hint = false)
    )]
    async fn diff(&self, Parameters(asked): Parameters<Compared>) -> CallToolResult {
        let words = Words::plain("diff").flag("--stat", asked.stat).names([&asked.lane]);
        self.ask(&words.all(), Vec::new()).await
    }

    #[tool(
        description = "Look ahead at each lane's merge into its base and into every other lane.",
        annotations(title = "Which lanes get along", read_only_hint = true, open_world_hint = false)
    )]
    async fn matrix(&self) -> CallToolResult {
        self.ask(&Words::json("matrix").all(), Vec::new()).await
    }

    #[tool(
        description = "Make a lane and start an agent in it. Returns at once; look at it with list and show.",
        annotations(
            title = "Start an agent in a new lane",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false
        )
    )]
    async fn spawn(&self, Parameters(wanted): Parameters<Wanted>) -> CallToolResult {
        // On the command line an agent may be any program on PATH. Here it is what a person has set up as one.
        match self.agents().await {
            Ok(known) if known.contains(&wanted.agent) => {}
            Ok(known) => {
                return refused(&format!(
                    "error: there is no agent of this name\nhint: take one of {}",
                    known.join(", ")
                ));
            }
            Err(why) => return refused(&why),
        }
        let words = Words::json("spawn")
            .options("--file", [&"-".to_owned()])
            .options("--name", &wanted.name)
            .options("--base", &wanted.base)
            .options("--check", &wanted.checks)
            .options("--scope", &wanted.scope)
            .flag(&wanted.agent, true);
        self.ask(&words.all(), wanted.prompt.into_bytes()).await
    }

    #[tool(
        description = "Tell the agent of a lane something; it goes on in the same session.",
        annotations(
            title = "Tell an agent something",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false
        )
    )]
    async fn send(&self, Parameters(message): Parameters<Message>) -> CallToolResult {
        self.ask(&Words::json("send").names([&message.lane, &message.text]).all(), Vec::new()).await
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
    async fn stop(&self, Parameters(asked): Parameters<SomeLanes>) -> CallToolResult {
        self.ask(&Words::json("stop").names(&asked.lanes).all(), Vec::new()).await
    }

    #[tool(
        description = "Show a lane in the person's main checkout, or go back. The person's own changes are set aside and \
                       come back. Only when the person asks for it.",
        annotations(
            title = "Show a lane in the main checkout",
            read_only_hint = false,
            destructive_hint = true
        )
    )]
    async fn preview(&self, Parameters(asked): Parameters<Shown>) -> CallToolResult {
        let words = Words::json("preview").flag("--back", asked.lane.is_none()).names(&asked.lane);
        self.ask(&words.all(), Vec::new()).await
    }

    #[tool(
        description = "Land lanes on their base. The first call lands nothing: it answers with the plan and a token. Call \
                       again with the same arguments and that token to land exactly that; when anything has moved \
                       meanwhile, the answer is a new plan.",
        annotations(
            title = "Land lanes",
            read_only_hint = false,
            destructive_hint = true,
            idempotent_hint = false
        )
    )]
    async fn merge(&self, Parameters(asked): Parameters<Landing>) -> CallToolResult {
        self.land(asked).await
    }

    /// The names of the agents that are set up.
    async fn agents(&self) -> Result<Vec<String>, String> {
        let answered = self.run(&Words::json("agents").all(), Vec::new()).await?;
        let answer: Value = serde_json::from_slice(&answered.stdout).unwrap_or_default();
        let rows = answer["agents"].as_array().into_iter().flatten();
        Ok(rows.filter_map(|row| row["name"].as_str()).map(ToOwned::to_owned).collect())
    }
}
