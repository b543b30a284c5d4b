//! Output about lanes that can land: the lane that was or would be created, and how to follow its run.

use proq_base::hint;
use proq_base::hint::Hint;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::lane::Project;
use proq_lib::lane::creation::create::LanePlan;
use proq_lib::ops::start::spawn::plan::SpawnPlan;
use proq_lib::types::{LaneName, LaneRecord};

use crate::cli::invocation::context::CommandContext;
use crate::cli::terminal::ui;
use crate::cli::terminal::ui::Ui;

/// Prints the lanes that would be created.
pub(crate) fn print_plan(context: &CommandContext, plan: &SpawnPlan<'_>) {
    let Some(first) = plan.lanes.first() else { return };
    let (ui, base) = (context.ui, first.base());
    let from = format!("  from      {} ({})", base.start.short(), base.branch);
    let command_text = |command: &Option<AgentCommand>| {
        command.as_ref().map_or_else(|| "nothing".to_owned(), AgentCommand::display_command_line)
    };
    if let Some(group) = first.group() {
        let attempts = ui::pluralize(plan.lanes.len(), "attempt");
        ui.print_line(format!("would create {attempts} of group '{group}'\n{from}"));
        print_task_args(ui, first);
        for (lane, command) in plan.lanes.iter().zip(&plan.commands) {
            ui.print_line(format!("  {} on {}: {}", lane.name, lane.branch, command_text(command)));
        }
        return;
    }
    ui.print_line(format!("would create lane '{}'", first.name));
    ui.print_line(format!("  branch    {}", first.branch));
    ui.print_line(format!("  worktree  {}\n{from}", first.path.display()));
    ui.print_each("  runs      ", plan.commands.iter().map(command_text));
    print_task_args(ui, first);
    ui.print_each("  attach    ", plan.attachments.iter().map(|file| file.display()));
    if first.has_auto_merge() {
        ui.print_line(format!("  then      lands on {}", base.branch));
    }
    if let (Some(task), Some(Some(command))) = (&plan.folder_task, plan.commands.first()) {
        ui.print_line(format!("  task      {}", task.describe(command)));
    }
}

/// Prints the checks, scope and sparse checkout of a planned lane.
fn print_task_args(ui: Ui, plan: &LanePlan<'_>) {
    ui.print_each("  check     ", plan.checks().iter().map(|line| format!("`{line}`")));
    ui.print_each("  scope     ", plan.scope());
    if plan.is_sparse() {
        ui.print_line("  sparse    only the folders of that, and the files above them");
    }
}

/// Prints a new lane and what was started in it.
pub(crate) fn print_created(
    context: &CommandContext,
    project: &Project,
    lane: &LaneRecord,
    command: Option<&AgentCommand>,
) {
    context.ui.print_line(created_line(lane));
    context.ui.print_line(format!("  {}", lane.path.display()));
    if let Some(command) = command {
        let auto_merge_note = if lane.auto_merge { "; the lane is merged when it is done" } else { "" };
        context.ui.status(format!("{} there{auto_merge_note}", command.started_text()));
        print_runnable_commands(context, project, command);
    }
}

/// Prints which commands an agent may run without asking, and how to allow it more.
pub(crate) fn print_runnable_commands(context: &CommandContext, project: &Project, command: &AgentCommand) {
    if let Some(commands) = command.runnable_commands_text() {
        let more = command.allow_more_command(project);
        let more = more.map(|more| format!("; allow more: {more}")).unwrap_or_default();
        context.ui.status(format!("may run: {commands}{more}"));
    }
}

/// Formats a new lane as one line: its name, branch and base.
pub(crate) fn created_line(LaneRecord { name, base, kind, .. }: &LaneRecord) -> String {
    format!("lane '{name}' on branch {}, from {base}", kind.branch)
}

/// Prints how to follow and await the run.
pub(crate) fn print_follow_hints(ui: Ui, command: &AgentCommand, lane: &LaneName) {
    ui.hint(follow_command(command, lane));
    ui.hint(hint!("wait for it: git proq wait {lane}"));
}

/// Returns the hint with the command that shows a run while it lasts.
pub(crate) fn follow_command(command: &AgentCommand, lane: &LaneName) -> Hint {
    match command.in_window {
        true => hint!("open its window: git proq open {lane}"),
        false => hint!("follow it: git proq logs -f {lane}"),
    }
}
