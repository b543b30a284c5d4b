//! `git proq merge --pr`: pushes a lane and opens a pull or merge request for it.

use std::io::IsTerminal;

use proq_base::explain::Exit;
use proq_base::hint;
use proq_lib::ops::pull_request::open_request;
use proq_lib::ops::pull_request::open_request::{OpenRequest, OpenRequestOutcome, RequestAction};

use super::merge_args::Merge;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::ui;

/// Opens or updates the request of the lane that `args` names, or of the current one.
pub(crate) fn run(context: &CommandContext, args: &Merge) -> CommandResult {
    if args.lanes.len() > 1 {
        let problem = "cannot use --pr with more than one lane";
        return Err(UsageError::missing(problem, "git proq merge --pr payments").into());
    }
    let project = context.project_for_write()?;
    let lane = caller::lane_or_current(&project, args.lanes.first())?;
    let named = caller::whole_names(&project, std::slice::from_ref(&lane));
    match project.settings.agent_push {
        true => caller::refuse_agent_for_other_lanes(&named, args.dry_run)?,
        false => caller::refuse_lane_agent(args.dry_run)?,
    }
    let request = OpenRequest {
        lane,
        onto: args.onto.clone(),
        message: args.landing_flags.message.clone(),
        draft: args.pull_request.draft,
        labels: args.pull_request.label.clone(),
        force: args.force,
        allow_deletions: args.allow_deletions,
        stop: args.stop,
        may_prompt: std::io::stdin().is_terminal() && ui::stderr_is_terminal(),
    };
    let plan = open_request::plan(&project, &request)?;
    let outcome = if args.dry_run { plan.forecast(&project)? } else { plan.execute(&project, context)? };
    context.show(&outcome, print_outcome).and(Ok(Exit::Success))
}

fn print_outcome(context: &CommandContext, outcome: &OpenRequestOutcome) {
    let OpenRequestOutcome { lane, action, program, remote, branch, onto, url, dry_run, .. } = outcome;
    let ui = context.ui;
    let noun = program.request_noun();
    let number =
        outcome.number.map(|number| format!(" {}{number}", program.number_sign())).unwrap_or_default();
    let by_force = if outcome.forced { ", replacing what it has" } else { "" };
    let would =
        |past: &str, infinitive: &str| if *dry_run { format!("would {infinitive}") } else { past.to_owned() };
    ui.print_line(format!("{} {branch} to {remote}{by_force}", would("pushed", "push")));
    let draft = if outcome.draft { "draft " } else { "" };
    let address = url.as_ref().map(|url| format!(": {url}")).unwrap_or_default();
    ui.print_line(match action {
        RequestAction::Opened if *dry_run => {
            format!("would open a {draft}{noun} for '{lane}' into {onto}, with {program}")
        }
        RequestAction::Opened => format!("opened {draft}{noun}{number} for '{lane}'{address}"),
        RequestAction::Updated => {
            format!("{} {noun}{number} of '{lane}'{address}", would("updated", "update"))
        }
    });
    if *dry_run {
        outcome.title.iter().for_each(|title| ui.print_field("title", title));
        if !outcome.labels.is_empty() {
            ui.print_field("labels", outcome.labels.join(", "));
        }
        if let Some(body) = outcome.body.as_ref().filter(|body| !body.is_empty()) {
            ui.print_line("");
            body.lines().for_each(|line| ui.print_wrapped(line));
        }
    } else {
        ui.hint(hint!("see its state and checks: git proq show {lane}"));
    }
}
