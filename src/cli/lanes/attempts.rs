//! More than one attempt at the same task: `git proq spawn` with `--count` or `--agents`.

use std::path::Path;

use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_lib::agent;
use proq_lib::agent::command::agent_command::AgentCommand;
use proq_lib::agent::control::wait;
use proq_lib::agent::control::wait::WaitUntil;
use proq_lib::agent::launch::start_supervisor;
use proq_lib::lane::Project;
use proq_lib::lane::creation::create::{CreatedLane, LanePlan, NewLane};
use proq_lib::lane::creation::create_many;
use proq_lib::lane::messages::attached_files;
use proq_store::paths::path_form;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use super::new_lane::UncommittedWarning;
use super::spawn_args::{AttemptAgents, Spawn};
use super::spawn_request::SpawnRequest;
use crate::cli::arguments::lane_args;
use crate::cli::arguments::run_args::refuse_or_warn_before_start;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::invocation::{approval_prompt, failure};
use crate::cli::runs::run_end;

/// The arguments of each attempt, as if each were spawned alone. There is at least one.
pub(crate) struct AttemptArgs(Vec<Spawn>);

impl AttemptArgs {
    /// Reads the attempts from the command line; `None` if it requests a single lane.
    ///
    /// # Errors
    /// [`UsageError::MissingArgument`] if both a list and an argument name the agents. Fails also if the prompt
    /// cannot be read.
    pub(crate) fn from_args(args: &Spawn) -> Result<Option<AttemptArgs>, Failure> {
        let single = Spawn { count: None, agents: None, ..args.clone() };
        if let Some(count) = args.count {
            return Ok(Some(AttemptArgs(vec![single.with_prompt_from_file()?; usize::from(count)])));
        }
        let Some(AttemptAgents(names)) = &args.agents else { return Ok(None) };
        // Without an agent argument, the first positional argument is the prompt.
        if args.prompt.is_some() || (args.agent.is_some() && args.file.is_some()) {
            let problem = "--agents says who does it, and so does an argument";
            let example = "git proq spawn --agents claude:2,codex:1 \"implement payments\"";
            return Err(UsageError::MissingArgument { problem, example }.into());
        }
        let single = Spawn { agent: None, prompt: args.agent.clone(), ..single }.with_prompt_from_file()?;
        let with_agent = |name: &String| Spawn { agent: Some(name.clone()), ..single.clone() };
        Ok(Some(AttemptArgs(names.iter().map(with_agent).collect())))
    }

    /// Returns the arguments of the first attempt.
    pub(crate) fn first(&self) -> &Spawn {
        &self.0[0]
    }

    /// Creates all lanes or none, then starts the agent of each. `new_lane` describes the first lane.
    ///
    /// # Errors
    /// Fails if one of the lanes cannot be created. Then git-proq created none of them.
    pub(crate) fn spawn_all(
        &self,
        context: &CommandContext,
        project: &Project,
        new_lane: &NewLane<'_>,
        current_dir: Option<&Path>,
    ) -> CommandResult {
        let mut requests = Vec::new();
        for args in &self.0 {
            requests.push(SpawnRequest::from_args(context, project, args)?);
        }
        let attached = requests.first().map(|request| request.attachments.clone()).unwrap_or_default();
        let commands: Vec<Option<AgentCommand>> =
            requests.into_iter().map(|request| request.agent_command).collect();
        refuse_or_warn_before_start(context, project, commands.iter().flatten())?;
        let agents: Vec<Option<String>> =
            commands.iter().map(|command| command.as_ref().map(|command| command.agent.clone())).collect();
        let plans = create_many::plan_attempts(project, new_lane, &agents)?;
        if let Some(first) = plans.first() {
            lane_args::warn_of_overlapping_lanes(context, project, first);
        }
        let uncommitted = UncommittedWarning::from_args(project, self.first(), current_dir);
        if self.first().dry_run {
            uncommitted.warn(context, None);
            print_plan(context, &plans, &commands);
            return Ok(Exit::Success);
        }
        // No lane is created whose agent could not be started.
        project.git_proq_path()?;
        approval_prompt::prompt_set_up_approval(context, project, new_lane.set_up)?;
        let created = create_many::create_attempts(project, new_lane, &agents, plans)?;
        let unchanged = created.first().and_then(|first| first.unchanged_checkout.clone());
        let mut started = Vec::new();
        for (CreatedLane { lane, run_lock: lock, .. }, command) in created.into_iter().zip(&commands) {
            let launch_result = command.as_ref().map(|command| {
                attached_files::attach(&project.store, &lane.name, &attached)?;
                start_supervisor::launch(project, &lane.clone().into_any(), lock, command)
            });
            started.push(CreatedAttempt::new(
                project,
                lane,
                command.as_ref(),
                launch_result.transpose().err(),
            ));
        }
        uncommitted.warn(context, unchanged.as_deref());
        report_and_await_attempts(context, project, self.first().wait, started)
    }
}

/// An attempt whose lane was created, and whose agent was started unless that failed.
struct CreatedAttempt<'j> {
    lane: LaneRecord,
    state: LaneState,
    command: Option<&'j AgentCommand>,
    /// Reason why the attempt's agent could not be started; none if it was started or the lane has no agent.
    failure: Option<Failure>,
}

impl<'j> CreatedAttempt<'j> {
    fn new(
        project: &Project,
        lane: LaneRecord,
        command: Option<&'j AgentCommand>,
        error: Option<agent::Error>,
    ) -> CreatedAttempt<'j> {
        let lane = project.lane(&lane.name).unwrap_or(lane);
        CreatedAttempt { state: lane.state(), lane, command, failure: error.map(Failure::from) }
    }
}

/// JSON output: the lanes of a group that were created or, in a dry run, would be.
#[derive(Serialize)]
struct AttemptsOutput<'a> {
    group: &'a str,
    lanes: Vec<AttemptRow<'a>>,
    dry_run: bool,
}

#[derive(Serialize)]
struct AttemptRow<'a> {
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
    state: LaneState,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn print_plan(context: &CommandContext, plans: &[LanePlan<'_>], commands: &[Option<AgentCommand>]) {
    let Some(first) = plans.first() else { return };
    let (group, base) = (first.group().unwrap_or_default(), first.base());
    if context.ui.json {
        let row = |(plan, job): (&'_ LanePlan<'_>, &Option<AgentCommand>)| {
            serde_json::to_value(AttemptRow {
                lane: &plan.name,
                branch: &plan.branch,
                path: &plan.path,
                base: &base.branch,
                start_commit: base.start.to_string(),
                agent: job.as_ref().map(|job| job.agent.as_str()),
                command: job.as_ref().map(AgentCommand::display_command_line),
                state: LaneState::Idle,
                error: None,
            })
            .unwrap_or_default()
        };
        let lanes: Vec<serde_json::Value> = plans.iter().zip(commands).map(row).collect();
        context.ui.print_json(serde_json::json!({ "group": group, "lanes": lanes, "dry_run": true }));
        return;
    }
    context.ui.print_line(format!(
        "would make {} of group '{group}'",
        crate::cli::terminal::ui::pluralize(plans.len(), "attempt")
    ));
    context.ui.print_line(format!("  from      {} ({})", base.start.short(), base.branch));
    lane_args::print_lane_args(context, first);
    for (plan, job) in plans.iter().zip(commands) {
        let command_text =
            job.as_ref().map_or_else(|| "nothing".to_owned(), AgentCommand::display_command_line);
        context.ui.print_line(format!("  {} on {}: {command_text}", plan.name, plan.branch));
    }
}

/// Prints the created lanes, waits for their runs if requested, and returns the exit code: that of the first
/// attempt that could not be started, or else of the first whose agent failed.
fn report_and_await_attempts(
    context: &CommandContext,
    project: &Project,
    wait: bool,
    mut started: Vec<CreatedAttempt<'_>>,
) -> CommandResult {
    let mut exit = Exit::Success;
    let text = !context.ui.json;
    for attempt in &started {
        if text && !wait {
            context.ui.print_line(created_line(attempt));
        }
        if let Some(failure) = &attempt.failure {
            let code = if text { failure::print_failure(failure, false) } else { failure.0.exit() };
            exit = if exit == Exit::Success { code } else { exit };
        }
    }
    let group = started[0].lane.group.clone().unwrap_or_default();
    if wait {
        // From here on Ctrl-C only ends this command. The agents continue under their supervisors.
        proq_base::interrupt::restore_default_action();
        let lanes: Vec<AnyLane> = started.iter().map(|attempt| attempt.lane.clone().into_any()).collect();
        let finished = wait::wait_for_lanes(project, &lanes, WaitUntil::All, None, &mut |waited| {
            if text {
                context.ui.print_line(run_end::state_line(&waited.lane, waited.state));
            }
        })?;
        for (attempt, waited) in started.iter_mut().zip(finished) {
            exit = if exit == Exit::Success { run_end::exit_for_state(waited.state) } else { exit };
            attempt.state = waited.state;
            if let Ok(lane) = waited.lane.into_owned_lane() {
                attempt.lane = lane;
            }
        }
    }
    if !text {
        let lanes = started.iter().map(AttemptRow::from).collect();
        context.ui.print_json(AttemptsOutput { group: &group, lanes, dry_run: false });
    } else if wait {
        context.ui.hint(format!("compare them: git proq compare {group}"));
    } else {
        context
            .ui
            .hint(format!("wait for them: git proq wait {group}   compare them: git proq compare {group}"));
    }
    Ok(exit)
}

/// Formats a created lane as one line: its name, branch and base, and its agent if that was started.
fn created_line(attempt: &CreatedAttempt<'_>) -> String {
    let LaneRecord { name, base, .. } = &attempt.lane;
    let branch = &attempt.lane.kind.branch;
    let run_text = match (&attempt.failure, attempt.command) {
        (None, Some(job)) => format!("; {} there", job.started_text()),
        _ => String::new(),
    };
    format!("lane '{name}' on branch {branch}, from {base}{run_text}")
}

impl<'a> From<&'a CreatedAttempt<'_>> for AttemptRow<'a> {
    fn from(attempt: &'a CreatedAttempt<'_>) -> AttemptRow<'a> {
        let lane = &attempt.lane;
        AttemptRow {
            lane: &lane.name,
            branch: &lane.kind.branch,
            path: &lane.path,
            base: &lane.base,
            start_commit: lane.start.to_string(),
            agent: lane.agent.as_deref(),
            command: attempt.command.map(AgentCommand::display_command_line),
            state: attempt.state,
            error: attempt.failure.as_ref().map(|failure| failure.0.to_string()),
        }
    }
}
