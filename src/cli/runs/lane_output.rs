//! Output about lanes that can land: the lane that was or would be created, and how to follow its run.

use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::lane::creation::create::LanePlan;
use proq_lib::ops::start::spawn::plan::SpawnPlan;
use proq_lib::types::{LaneName, LaneRecord};

use crate::cli::invocation::context::CommandContext;
use crate::cli::terminal::ui;

/// Prints the lanes that would be created.
pub(crate) fn print_plan(context: &CommandContext, plan: &SpawnPlan<'_>) {
    let Some(first) = plan.lanes.first() else { return };
    let (ui, base) = (context.ui, first.base());
    let command_text = |command: &Option<AgentCommand>| {
        command.as_ref().map_or_else(|| "nothing".to_owned(), AgentCommand::display_command_line)
    };
    if let Some(group) = first.group() {
        ui.print_line(format!(
            "would make {} of group '{group}'",
            ui::pluralize(plan.lanes.len(), "attempt")
        ));
        ui.print_line(format!("  from      {} ({})", base.start.short(), base.branch));
        print_task_args(context, first);
        for (lane, command) in plan.lanes.iter().zip(&plan.commands) {
            ui.print_line(format!("  {} on {}: {}", lane.name, lane.branch, command_text(command)));
        }
        return;
    }
    ui.print_line(format!("would make lane '{}'", first.name));
    ui.print_line(format!("  branch    {}", first.branch));
    ui.print_line(format!("  worktree  {}", first.path.display()));
    ui.print_line(format!("  from      {} ({})", base.start.short(), base.branch));
    for command in &plan.commands {
        ui.print_line(format!("  runs      {}", command_text(command)));
    }
    print_task_args(context, first);
    for file in plan.attachments {
        ui.print_line(format!("  along     {}", file.display()));
    }
    if first.has_auto_merge() {
        ui.print_line(format!("  then      lands on {}", base.branch));
    }
    if let (Some(task), Some(Some(command))) = (&plan.folder_task, plan.commands.first()) {
        ui.print_line(format!("  task      {}", task.describe(command)));
    }
}

/// Prints the checks, scope and sparse checkout of a planned lane.
fn print_task_args(context: &CommandContext, plan: &LanePlan<'_>) {
    for line in plan.checks() {
        context.ui.print_line(format!("  lands if  `{line}` succeeds"));
    }
    for glob in plan.scope() {
        context.ui.print_line(format!("  scope     {glob}"));
    }
    if plan.is_sparse() {
        context.ui.print_line("  has       only the folders of that, and the files above them");
    }
}

/// Prints a new lane and what was started in it.
pub(crate) fn print_created(context: &CommandContext, lane: &LaneRecord, command: Option<&AgentCommand>) {
    context.ui.print_line(format!("lane '{}' on branch {}, from {}", lane.name, lane.kind.branch, lane.base));
    context.ui.print_line(format!("  {}", lane.path.display()));
    if let Some(command) = command {
        let auto_merge_note =
            if lane.auto_merge { "; when it is done, the lane lands by itself" } else { "" };
        context.ui.status(format!("{} there{auto_merge_note}", command.started_text()));
    }
}

/// Returns the hint that shows how to follow and await the run.
pub(crate) fn follow_hint(agent_command: &AgentCommand, lane: &LaneName) -> String {
    let follow_text =
        if agent_command.in_window { "go there: git proq attach" } else { "follow it: git proq logs -f" };
    format!("{follow_text} {lane}   wait for it: git proq wait {lane}")
}
