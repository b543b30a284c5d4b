//! The `git proq merge --batch` command: lands a batch's branch on its base, and marks the landed tasks in
//! the plan.

use proq_base::hint;
use proq_base::terminal_text::escape_line;
use proq_lib::lane::Project;
use proq_lib::merge::types::outcome::LandingReport;
use proq_lib::swarm::ops::land_batch;
use proq_lib::swarm::ops::land_batch::{BatchMarks, LandBatchRequest};

use super::landing::{exit_of_forecast, print_outcome};
use super::merge_args::Merge;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui::Ui;

/// Lands what is on the branch of a batch, through a landing lane of its own.
pub(crate) fn run(
    context: &CommandContext,
    project: &mut Project,
    args: &Merge,
    batch_name: &str,
) -> CommandResult {
    project.group_operations_for_undo();
    let project = &*project;
    let request =
        LandBatchRequest { batch_name: batch_name.to_owned(), onto: args.onto.clone(), force: args.force };
    let plan = land_batch::plan(project, &request)?;
    let print = |outcome: &_| print_outcome(context, project, outcome, args.all);
    if args.dry_run {
        let outcome = plan.forecast(project, args.request(&context.dir), context)?;
        print(&outcome);
        return Ok(exit_of_forecast(context, &outcome.report, outcome.report.exit()));
    }
    let outcome = plan.execute(project, args.request(&context.dir), context, &print)?;
    outcome.marks.iter().for_each(|marks| print_marks(context.ui, marks));
    Ok(outcome.merge.report.exit())
}

/// Marks the landed tasks of batches whose landing lanes were landed by name, for example after a conflict.
pub(crate) fn mark_tasks_of_landed_batches(ui: Ui, project: &Project, report: &LandingReport) {
    for marks in land_batch::mark_tasks_of_landed_batches(project, report) {
        print_marks(ui, &marks);
    }
}

/// Prints what was marked in the plan's files. A failure is only a warning, since the landing is already done.
fn print_marks(ui: Ui, BatchMarks { batch, onto, result }: &BatchMarks) {
    let marks = match result {
        Ok(marks) => marks,
        Err(e) => return ui.warn(format!("cannot mark the landed tasks in the plan: {e}")),
    };
    if let Some(commit) = marks.commit {
        ui.status(format!("marked in the plan by commit {} on {onto}", commit.short()));
    }
    for path in &marks.written {
        ui.status(format!("marked in {path}, which you have to commit"));
    }
    for unmarked in &marks.unmarked {
        ui.warn(format!("not marked in {}: {}", unmarked.path, escape_line(&unmarked.reason)));
    }
    if marks.unmarked.iter().any(|unmarked| !unmarked.patch.is_empty()) {
        ui.hint(hint!("show it as a patch: git proq batch report {batch}"));
    }
}
