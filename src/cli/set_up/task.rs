//! `git proq task`: the command with which an agent reads its task and reports on it, without any protocol.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_base::terminal_text;
use proq_lib::board::task::TaskOutput;
use proq_lib::run::report;
use proq_lib::run::report::AgentReport;
use proq_lib::types::ReportRecord;
use serde::Serialize;

use crate::cli::arguments::user_files;
use crate::cli::inspect::agent_report;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::ui;

/// Read a lane's task and report on it, from inside the lane
///
/// For agents: which lane it is goes by the worktree that they stand in, and PROQ_LANE has to name the same one. The `git
/// proq mcp` server has the same two as tools. Everybody else reads `git proq show LANE`.
///
/// Examples:
///     git proq task read
///     git proq task update --finding "the parser never sees tabs" --human-step "rotate the API key"
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Task {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: TaskCommand,
}

/// Its two halves.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Print the task of this lane, and what was reported last
    Read,
    /// Report on it, in place of what was reported before
    Update(Update),
}

/// What is reported.
#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Where you are with the task, in one line
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub(crate) status: Option<String>,
    /// Something that was found; may be given again
    #[arg(long = "finding", value_name = "TEXT", conflicts_with = "file")]
    pub(crate) findings: Vec<String>,
    /// Something that only a person can do; may be given again
    #[arg(long = "human-step", value_name = "TEXT", conflicts_with = "file")]
    pub(crate) human_steps: Vec<String>,
    /// Read the report from FILE, or from standard input with '-': JSON with these three, or plain text as one finding
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Say what would be kept, and keep nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct UpdateOutput {
    lane: LaneName,
    report: ReportRecord,
    dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Task) -> CommandResult {
    match &args.command {
        TaskCommand::Read => print_task(context),
        TaskCommand::Update(update) => update_report(context, update),
    }
}

fn print_task(context: &CommandContext) -> CommandResult {
    let project = context.project()?;
    let current_lane = caller::current_lane(&project)?;
    let task = TaskOutput::load(&project, current_lane)?;
    if context.ui.json {
        context.ui.print_json(task);
        return Ok(Exit::Success);
    }
    let print_field = |key: &str, value: &str| {
        context.ui.print_line(format!(
            "{} {}",
            console::style(format!("{key:<10}")).dim(),
            terminal_text::escape_line(value)
        ));
    };
    print_field("lane", task.lane.as_str());
    match &task.branch {
        Some(branch) if task.mode == "build" => {
            print_field("branch", &format!("{branch}, lands on {}", task.base));
        }
        Some(branch) => print_field("branch", &format!("{branch}, in the main checkout")),
        None => print_field("mode", &format!("{}: look only; your last message is what is kept", task.mode)),
    }
    for glob in &task.scope {
        print_field("scope", glob);
    }
    for check in &task.checks {
        print_field("lands if", &format!("`{check}` succeeds"));
    }
    for file in &task.attachments {
        print_field("file", file);
    }
    if let Some(report) = &task.report {
        agent_report::print_report(context, report);
    }
    context.ui.print_line("");
    context.ui.print_line(task.prompt.trim());
    Ok(Exit::Success)
}

fn update_report(context: &CommandContext, args: &Update) -> CommandResult {
    let project = context.project_for_write()?;
    let current_lane = caller::current_lane(&project)?;
    let new_report = match &args.file {
        Some(file) => report_from_file(file)?,
        None => AgentReport {
            status: args.status.clone(),
            findings: args.findings.clone(),
            human_steps: args.human_steps.clone(),
        },
    };
    let report = if args.dry_run {
        report::validate(new_report, current_lane.lane.last_run)?
    } else {
        report::save_report(&project, &current_lane.lane.name, new_report)?
    };
    if context.ui.json {
        context.ui.print_json(UpdateOutput { lane: current_lane.lane.name, report, dry_run: args.dry_run });
        return Ok(Exit::Success);
    }
    let verb = if args.dry_run { "would report" } else { "reported" };
    context.ui.print_line(format!(
        "{verb} on lane '{}': {}, {} for a person",
        current_lane.lane.name,
        ui::pluralize(report.findings.len(), "finding"),
        ui::pluralize(report.human_steps.len(), "step")
    ));
    Ok(Exit::Success)
}

/// Reads a report from a file: JSON if it starts with `{`, else its text as one finding.
fn report_from_file(file: &Path) -> Result<AgentReport, Failure> {
    let text = user_files::read_text_or_stdin(file)?;
    if !text.trim_start().starts_with('{') {
        return Ok(AgentReport { findings: vec![text], ..AgentReport::default() });
    }
    serde_json::from_str(&text).map_err(|e| UsageError::InvalidReport { reason: e.to_string() }.into())
}
