//! Output about a planned or new lane, and the hint how to follow its run.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::lane::creation::create::LanePlan;
use proq_store::paths::path_form;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use crate::cli::arguments::lane_args;
use crate::cli::invocation::context::CommandContext;

/// JSON output: the new lane and the agent that was started in it.
#[derive(Serialize)]
struct SpawnOutput<'a> {
    lane: &'a LaneName,
    branch: &'a str,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    base: &'a str,
    /// Id of the commit that the lane starts from.
    #[serde(rename = "start")]
    start_commit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    checks: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    scope: &'a [String],
    /// Permission level of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<String>,
    state: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    auto_merge: bool,
    /// Reason why the automatic merge was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "refused")]
    auto_merge_refusal: Option<&'a str>,
    dry_run: bool,
}

pub(crate) fn print_plan(
    context: &CommandContext,
    plan: &LanePlan<'_>,
    agent_command: Option<&AgentCommand>,
    attachments: &[PathBuf],
) {
    let base = plan.base();
    if context.ui.json {
        context.ui.print_json(SpawnOutput {
            lane: &plan.name,
            branch: &plan.branch,
            path: &plan.path,
            base: &base.branch,
            start_commit: base.start.to_string(),
            agent: agent_command.map(|j| j.agent.as_str()),
            command: agent_command.map(AgentCommand::display_command_line),
            checks: plan.checks(),
            scope: plan.scope(),
            permission: agent_command.and_then(AgentCommand::permission_level),
            state: LaneState::Idle.to_string(),
            auto_merge: plan.has_auto_merge(),
            auto_merge_refusal: None,
            dry_run: true,
        });
        return;
    }
    context.ui.print_line(format!("would make lane '{}'", plan.name));
    context.ui.print_line(format!("  branch    {}", plan.branch));
    context.ui.print_line(format!("  worktree  {}", plan.path.display()));
    context.ui.print_line(format!("  from      {} ({})", base.start.short(), base.branch));
    match agent_command {
        Some(agent_command) => {
            context.ui.print_line(format!("  runs      {}", agent_command.display_command_line()));
        }
        None => context.ui.print_line("  runs      nothing"),
    }
    lane_args::print_lane_args(context, plan);
    for file in attachments {
        context.ui.print_line(format!("  along     {}", file.display()));
    }
    if plan.has_auto_merge() {
        context.ui.print_line(format!("  then      lands on {}", base.branch));
    }
}

pub(crate) fn print_created(
    context: &CommandContext,
    lane: &LaneRecord,
    agent_command: Option<&AgentCommand>,
) {
    if context.ui.json {
        print_json(context, lane, agent_command, lane.state());
        return;
    }
    context.ui.print_line(format!("lane '{}' on branch {}, from {}", lane.name, lane.kind.branch, lane.base));
    context.ui.print_line(format!("  {}", lane.path.display()));
    if let Some(agent_command) = agent_command {
        let auto_merge_note =
            if lane.auto_merge { "; when it is done, the lane lands by itself" } else { "" };
        context.ui.status(format!("{} there{auto_merge_note}", agent_command.started_text()));
    }
}

/// Returns the hint that shows how to follow and await the run.
pub(crate) fn follow_hint(agent_command: &AgentCommand, lane: &LaneName) -> String {
    let follow_text =
        if agent_command.in_window { "go there: git proq attach" } else { "follow it: git proq logs -f" };
    format!("{follow_text} {lane}   wait for it: git proq wait {lane}")
}

pub(crate) fn print_json(
    context: &CommandContext,
    lane: &LaneRecord,
    agent_command: Option<&AgentCommand>,
    state: LaneState,
) {
    context.ui.print_json(SpawnOutput {
        lane: &lane.name,
        branch: &lane.kind.branch,
        path: &lane.path,
        base: &lane.base,
        start_commit: lane.start.to_string(),
        agent: lane.agent.as_deref(),
        command: agent_command.map(AgentCommand::display_command_line),
        checks: &lane.checks,
        scope: &lane.scope,
        permission: agent_command.and_then(AgentCommand::permission_level),
        state: state.to_string(),
        auto_merge: lane.auto_merge,
        auto_merge_refusal: lane.auto_merge_refusal.as_ref().map(|refusal| refusal.refusal_reason.as_str()),
        dry_run: false,
    });
}
