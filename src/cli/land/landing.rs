//! Output of the commands that land lanes.

use proq_base::explain::Exit;
use proq_base::hint;
use proq_lib::board::landing::LandingOutput;
use proq_lib::lane::Project;
use proq_lib::merge::types::outcome::LandingReport;
use proq_lib::ops::land::merge::MergeOutcome;
use proq_lib::ops::reporter::Reporter;
use proq_lib::swarm::landing::batch_landing;

use super::landing_outcomes::{print_outcomes, print_total};
use super::unlanded_batches::{print_batch_steps, print_unlanded_batches};
use crate::cli::invocation::context::CommandContext;

/// Prints the outcomes of a landing, as JSON or as text.
pub(crate) fn print_outcome(context: &CommandContext, project: &Project, outcome: &MergeOutcome, all: bool) {
    if context.ui.json {
        context.ui.print_json(LandingOutput::new(outcome));
    } else {
        print_text(context, project, outcome, all);
    }
    outcome.warnings.iter().for_each(|warning| context.ui.warn(warning));
}

/// Returns the exit code of a dry run that would end with `exit`: a refusal where the checks are not approved and
/// nobody can be prompted, since the landing would be refused too.
pub(crate) fn exit_of_forecast(context: &CommandContext, report: &LandingReport, exit: Exit) -> Exit {
    let lacks_approval = report.checks.as_ref().is_some_and(|checks| !checks.unapproved.is_empty());
    if exit != Exit::Success || !lacks_approval || context.can_prompt_user() {
        return exit;
    }
    context.ui.hint(hint!("read and approve the checks: git proq approve"));
    Exit::Refused
}

/// Prints the outcomes of a landing as text, its hints last; if it took all lanes, also the batches whose work is
/// not on their base.
pub(crate) fn print_text(context: &CommandContext, project: &Project, outcome: &MergeOutcome, all: bool) {
    let agent = outcome.conflict_agent.as_ref();
    let needs_approval = agent.is_some_and(|agent| agent.is_configured && agent.needs_approval(project));
    let approval_note = if needs_approval { ", once it is approved" } else { "" };
    let unlanded_batches = if all { batch_landing::unlanded_batches(project) } else { Vec::new() };
    let hints = print_outcomes(context.ui, outcome, approval_note);
    print_unlanded_batches(context, &unlanded_batches);
    if outcome.dry_run {
        print_total(context.ui, &outcome.report);
    }
    for hint in hints {
        context.ui.hint(hint);
    }
    print_batch_steps(context, project, &unlanded_batches);
}
