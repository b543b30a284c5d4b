//! `git proq task`: the command with which an agent reads its task and reports on it, without any protocol.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use proq_base::terminal_text;
use proq_lib::board::task::TaskOutput;
use proq_lib::run::report;
use proq_lib::run::report::{AgentReport, ReportOutcome};

use crate::cli::arguments::user_files;
use crate::cli::inspect::agent_report;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;

/// Read a lane's task and report on it, from inside the lane
///
/// For agents: the worktree that the command runs in determines the lane, and PROQ_LANE must name the same
/// one. The `git proq mcp` server has the same two tools. Everybody else uses `git proq show LANE`.
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
    /// Print the task of this lane, and its last report
    Read,
    /// Replace the report of this lane
    Update(Update),
}

/// What is reported.
#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Progress, in one line
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub(crate) status: Option<String>,
    /// Something that you found [can be repeated]
    #[arg(long = "finding", value_name = "TEXT", conflicts_with = "file")]
    pub(crate) findings: Vec<String>,
    /// Something that only a person can do [can be repeated]
    #[arg(long = "human-step", value_name = "TEXT", conflicts_with = "file")]
    pub(crate) human_steps: Vec<String>,
    /// Read the report from FILE ('-' for standard input)
    ///
    /// JSON with these three fields, or plain text as one finding.
    #[arg(long, short = 'F', short_alias = 'f', value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Task) -> CommandResult {
    match &args.command {
        TaskCommand::Read => {
            let project = context.project()?;
            context.show(TaskOutput::load(&project, caller::current_lane(&project)?)?, |context, task| {
                print_task(context, &task);
            })
        }
        TaskCommand::Update(update) => update_report(context, update),
    }
}

fn print_task(context: &CommandContext, task: &TaskOutput) {
    let print_field = |key: &str, value: &str| {
        let key = console::style(format!("{key:<10}")).dim();
        context.ui.print_line(format!("{key} {}", terminal_text::escape_line(value)));
    };
    print_field("lane", task.lane.as_str());
    match &task.branch {
        Some(branch) if task.mode == "build" => {
            print_field("branch", &format!("{branch}, lands on {}", task.base));
        }
        Some(branch) => print_field("branch", &format!("{branch}, in the main checkout")),
        None => print_field("mode", &format!("{}: read only; only your last message is kept", task.mode)),
    }
    task.scope.iter().for_each(|glob| print_field("scope", glob));
    task.checks.iter().for_each(|check| print_field("lands if", &format!("`{check}` succeeds")));
    task.attachments.iter().for_each(|file| print_field("file", file));
    if let Some(report) = &task.report {
        agent_report::print_report(context, report);
    }
    context.ui.print_line("");
    context.ui.print_verbatim(task.prompt.trim());
}

fn update_report(context: &CommandContext, args: &Update) -> CommandResult {
    let project = context.project_for_write()?;
    let lane = caller::current_lane(&project)?.lane;
    let new_report = match &args.file {
        Some(file) => AgentReport::from_text(user_files::read_text_or_stdin(file)?)?,
        None => AgentReport {
            status: args.status.clone(),
            findings: args.findings.clone(),
            human_steps: args.human_steps.clone(),
        },
    };
    let report = match args.dry_run {
        true => report::validate(new_report, lane.last_run)?,
        false => report::save_report(&project, &lane.name, new_report)?,
    };
    let outcome = ReportOutcome { lane: lane.name, report, dry_run: args.dry_run };
    context.show(outcome, |context, ReportOutcome { lane, report, dry_run }| {
        let verb = if dry_run { "would report" } else { "reported" };
        let findings = ui::pluralize(report.findings.len(), "finding");
        let steps = ui::pluralize(report.human_steps.len(), "step");
        context.ui.print_line(format!("{verb} on lane '{lane}': {findings}, {steps} for a person"));
    })
}
