//! `git proq spawn`: creates lanes and starts agents in them.

use std::collections::BTreeSet;

use proq_base::explain::{Exit, shell_quote};
use proq_base::hint;
use proq_lib::agent::control::wait;
use proq_lib::agent::control::wait::WaitUntil;
use proq_lib::lane::Project;
use proq_lib::ops::pull_request::issue::read_issue;
use proq_lib::ops::start::spawn::execution::{SpawnOutcome, SpawnedLane};
use proq_lib::ops::start::spawn::plan::plan;
use proq_lib::ops::start::spawn::uncommitted::UncommittedCheck;
use proq_lib::types::{AnyLane, LaneRecord, LaneStatus};

use super::read_only_run;
use super::spawn_args::Spawn;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::runs::lane_output::{
    created_line, print_created, print_follow_hints, print_plan, print_runnable_commands,
};
use crate::cli::runs::{follow_run, run_end};

pub(crate) fn run(context: &CommandContext, args: &Spawn) -> CommandResult {
    let Some(number) = args.issue else { return spawn(context, args) };
    let project = context.project_for_write()?;
    let issue = read_issue(&project, number)?;
    spawn(context, &args.with_issue(context, &project, &issue))
}

/// Creates the lanes that `args` describe, with the prompt in them.
fn spawn(context: &CommandContext, args: &Spawn) -> CommandResult {
    match args.purpose().filter(|_| args.folder.is_none()) {
        Some(purpose) => return read_only_run::run(context, args, purpose),
        None if args.isolated => return Err(UsageError::IsolatedRefused.into()),
        // The parser does not require a folder beside a prompt, which excludes one.
        None if args.reviewer.is_some() && args.folder.is_none() => {
            let problem =
                "cannot use --reviewer without --folder: only the steps of a task folder are reviewed";
            let example = "git proq spawn claude --folder tasks/pay/PAY-3-refunds --reviewer codex";
            return Err(UsageError::missing(problem, example).into());
        }
        None => {}
    }
    let project = context.project_for_write()?;
    let request = args.spawn_request(context, &project)?;
    let plan = plan(&project, &request)?;
    if args.dry_run {
        warn_of_uncommitted(context, &project, &plan.uncommitted);
        return context.show(&plan, print_plan);
    }
    let is_group = plan.is_group();
    let outcome = plan.execute(&project, context)?;
    match is_group {
        true => report_attempts(context, &project, args, outcome),
        false => report_lane(context, &project, args, outcome),
    }
}

/// Warns of uncommitted changes that a new lane lacks. This may read every file of the worktree, so call it
/// when the lane is already in use.
fn warn_of_uncommitted(context: &CommandContext, project: &Project, check: &UncommittedCheck) {
    // The lane already exists, so a failure of git here is only a warning.
    context.ui.warn(match check.missing_files(project) {
        Ok(None) => return,
        Ok(Some(names)) if check.is_carried => format!(
            "edits that git status does not show stay where they are (skip-worktree, assume-unchanged): \
             {names}"
        ),
        Ok(Some(names)) => {
            format!("the lane starts without your uncommitted changes ({names}); --carry copies them into it")
        }
        Err(e) => format!("cannot check for uncommitted changes: {e}"),
    });
}

/// Prints a new lane and what was started in it, or follows the run.
fn report_lane(
    context: &CommandContext,
    project: &Project,
    args: &Spawn,
    mut outcome: SpawnOutcome,
) -> CommandResult {
    let SpawnedLane { lane, command, failure } = &outcome.lanes[0];
    // Of a task folder, all steps may have been done before.
    let is_followed = args.wait
        && failure.is_none()
        && command.is_some()
        && (args.folder.is_none() || lane.state().is_busy());
    match failure {
        None if is_followed => {}
        None if context.ui.json => context.ui.print_json(&outcome),
        None => print_created(context, project, lane, command.as_ref()),
        Some(_) => {}
    }
    warn_of_uncommitted(context, project, &outcome.uncommitted);
    let SpawnedLane { lane, command, failure } = outcome.lanes.swap_remove(0);
    if let Some(failure) = failure {
        return Err(failure);
    }
    if is_followed {
        return follow_run::follow_and_report(context, project, &lane.into_any(), command.as_ref());
    }
    match &command {
        Some(command) => print_follow_hints(context.ui, command, &lane.name),
        None => context.ui.hint(hint!("enter it: cd {}", shell_quote(&lane.path.to_string_lossy()))),
    }
    Ok(Exit::Success)
}

/// Prints the created attempts, waits for their runs if requested, and returns the exit code: that of the
/// first attempt that could not be started, or else of the first whose agent failed.
fn report_attempts(
    context: &CommandContext,
    project: &Project,
    args: &Spawn,
    mut outcome: SpawnOutcome,
) -> CommandResult {
    warn_of_uncommitted(context, project, &outcome.uncommitted);
    let mut exit = Exit::Success;
    let text = !context.ui.json;
    for attempt in &outcome.lanes {
        if text && !args.wait {
            let started = attempt.command.as_ref().filter(|_| attempt.failure.is_none());
            let run_text = started.map(|command| format!("; {} there", command.started_text()));
            let line = created_line(&attempt.lane);
            context.ui.print_line(format!("{line}{}", run_text.unwrap_or_default()));
        }
        if let Some(failure) = &attempt.failure {
            let code = if text { failure::print_failure(failure, false) } else { failure.exit() };
            exit = if exit == Exit::Success { code } else { exit };
        }
    }
    if text && !args.wait {
        let mut agents = BTreeSet::new();
        for command in outcome.lanes.iter().filter_map(|attempt| attempt.command.as_ref()) {
            if agents.insert(&command.agent) {
                print_runnable_commands(context, project, command);
            }
        }
    }
    if args.wait {
        // From here on Ctrl-C only ends this command. The agents continue under their supervisors.
        proq_base::interrupt::restore_default_action();
        let lanes: Vec<AnyLane> =
            outcome.lanes.iter().map(|attempt| attempt.lane.clone().into_any()).collect();
        let finished = wait::wait_for_lanes(project, &lanes, WaitUntil::All, None, &mut |waited| {
            if text {
                context.ui.print_line(run_end::state_line(&waited.lane, waited.state));
            }
        })?;
        for (attempt, waited) in outcome.lanes.iter_mut().zip(finished) {
            exit = if exit == Exit::Success { run_end::exit_for_state(waited.state) } else { exit };
            if let Ok(lane) = waited.lane.into_owned_lane() {
                attempt.lane = LaneRecord { status: LaneStatus::from_word(waited.state), ..lane };
            }
        }
    }
    context
        .show(&outcome, |context, outcome| {
            let group = outcome.lanes[0].lane.group.as_deref().unwrap_or_default();
            if !args.wait {
                context.ui.hint(hint!("wait for them: git proq wait {group}"));
            }
            context.ui.hint(hint!("compare them: git proq compare {group}"));
        })
        .and(Ok(exit))
}
