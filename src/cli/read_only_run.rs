//! Runs without a dedicated branch: `git proq spawn` with `--mode plan`, `--mode answer` or `--in-place`, and
//! the output about them.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::run_args::warn_before_start;
use super::spawn::{Spawn, SpawnRequest};
use super::{CommandContext, CommandResult, Failure, UsageError, follow_run, program_path, spawn, wait};
use crate::agent::{self, AgentCommand};
use crate::explain::Exit;
use crate::lane::{self, GuestLanePlan, GuestLaneRequest, Project, ReadLocation};
use crate::store::records::{AnyLane, LanePurpose, LaneState};
use crate::store::{Layout, path_form};
use crate::terminal_text;

/// JSON output about a run without a dedicated branch.
#[derive(Serialize)]
struct ReadOnlyRunOutput<'a> {
    lane: &'a str,
    mode: LanePurpose,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    base: &'a str,
    start: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<String>,
    state: LaneState,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    /// The answer of the run, if the command waited for it.
    #[serde(rename = "answer", skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    dry_run: bool,
}

/// Starts an agent in a lane that has no dedicated branch.
pub(super) fn run(session: &CommandContext, args: &Spawn, purpose: LanePurpose) -> CommandResult {
    refuse_landing_flags(args, purpose)?;
    let project = session.project_for_write()?;
    let request = SpawnRequest::from_args(session, &project, args)?;
    let prompt = request.prompt.as_ref().or(request.name_hint.as_ref());
    let (Some(command), Some(prompt)) = (&request.agent_command, prompt) else {
        return Err(missing_prompt(purpose).into());
    };
    if prompt.trim().is_empty() {
        return Err(missing_prompt(purpose).into());
    }
    let name = args.name.as_deref().map(lane::LaneName::parse).transpose()?;
    let location =
        if args.isolated { ReadLocation::Detached(args.base.as_deref()) } else { ReadLocation::MainCheckout };
    let lane_request = GuestLaneRequest { name, prompt, agent: command.agent.clone(), purpose, location };
    let plan = lane::plan_guest_lane(&project, lane_request)?;
    let checks = match purpose.is_read_only() {
        true => Vec::new(),
        false => agent::merge_checks(&project, &plan.target.rev_name, &[])?,
    };
    let command = &command.clone().with_checks(checks);
    warn_before_start(session, &project, [command])?;
    if args.dry_run {
        print_plan(session, &plan, command, purpose, &request.attachments);
        return Ok(Exit::Success);
    }
    let (lane, lock) = lane::create_guest_lane(&project, &plan, &request.attachments)?;
    spawn::register_repository(&project);
    let launch_result = agent::launch(&project, &lane, lock, command, &program_path::current_program_path()?);
    let lane = launch_result.map_err(|e| discard_unstarted_lane(&project, &lane, e))?;
    if args.wait {
        return follow_run::follow_and_report(session, &project, &lane, Some(command));
    }
    if session.ui.json {
        print_json(session, &lane, Some(command), lane.state, None);
        return Ok(Exit::Success);
    }
    print_started(session, &lane, command, purpose);
    Ok(Exit::Success)
}

/// Removes a lane whose run could not start in the main checkout. Nothing was changed then, so no trace of
/// the lane stays.
fn discard_unstarted_lane(project: &Project, lane: &AnyLane, e: agent::Error) -> Failure {
    let is_refused = matches!(&e, agent::Error::Lane(_));
    if is_refused
        && lane.works_in_place()
        && let Err(e) = lane::forget_unstarted_lane(project, lane)
    {
        project.listener.warn(format!("lane '{}' is left: {e}", lane.name));
    }
    e.into()
}

fn print_started(session: &CommandContext, lane: &AnyLane, command: &AgentCommand, purpose: LanePurpose) {
    let name = &lane.name;
    if !purpose.is_read_only() {
        session.ui.print_line(format!("lane '{name}' works in the main checkout, on {}", base_text(lane)));
        session.ui.print_line(format!("  {}", lane.path.display()));
        session.ui.status(format!(
            "{} works there; what it changes is committed when it is done",
            command.display_name()
        ));
        session.ui.hint(format!(
            "follow it: git proq logs -f {name}   take it back then, by its number in: git proq op log"
        ));
        return;
    }
    session.ui.print_line(format!(
        "lane '{name}' for {}, looking at {}",
        lane::purpose_phrase(purpose),
        base_text(lane)
    ));
    session.ui.print_line(format!("  {}", lane.path.display()));
    session.ui.status(format!("{} looks there, and changes nothing", command.display_name()));
    session.ui.hint(format!("wait for it: git proq wait {name}   read it then: git proq show {name}"));
}

fn missing_prompt(purpose: LanePurpose) -> UsageError {
    if !purpose.is_read_only() {
        return UsageError::Missing {
            problem: "the agent needs a prompt",
            example: "git proq spawn --in-place claude \"fix the typos\"",
        };
    }
    UsageError::Missing {
        problem: "the agent needs a question",
        example: "git proq spawn claude --mode answer \"where is the tax computed?\"",
    }
}

/// Refuses flags that only apply to a lane that will land.
fn refuse_landing_flags(args: &Spawn, purpose: LanePurpose) -> Result<(), Failure> {
    let mode = if purpose.is_read_only() { format!("--mode {purpose}") } else { "--in-place".to_owned() };
    let flags = [
        ("--base", args.base.is_some() && !args.isolated),
        ("--onto", args.onto.is_some()),
        ("--check", !args.check.is_empty()),
        ("--scope", !args.scope.is_empty()),
        ("--carry", args.carry),
        ("--empty", args.empty),
        ("--auto-merge", args.auto_merge),
        ("--count", args.count.is_some()),
        ("--agents", args.agents.is_some()),
    ];
    match flags.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(UsageError::LandingFlagRefused { mode, flag }.into()),
        None => Ok(()),
    }
}

/// Formats the branch or revision that a run reads or works on, with its short commit id.
pub(super) fn base_text(lane: &AnyLane) -> String {
    format!("{} ({})", lane.base, lane.start.short())
}

fn print_plan(
    session: &CommandContext,
    plan: &GuestLanePlan<'_>,
    command: &AgentCommand,
    purpose: LanePurpose,
    attached: &[PathBuf],
) {
    let target = &plan.target;
    if session.ui.json {
        session.ui.print_json(ReadOnlyRunOutput {
            lane: plan.name.as_str(),
            mode: purpose,
            path: &target.dir,
            base: &target.rev_name,
            start: target.commit.to_string(),
            agent: Some(&command.agent),
            command: Some(command.display_command_line()),
            permission: command.permission_level(),
            state: LaneState::Idle,
            detail: None,
            answer: None,
            dry_run: true,
        });
        return;
    }
    session.ui.print_line(format!("would make lane '{}' for {}", plan.name, lane::purpose_phrase(purpose)));
    let verb_phrase = if purpose.is_read_only() { "looks at" } else { "works on" };
    session.ui.print_line(format!("  {verb_phrase}  {} ({})", target.rev_name, target.commit.short()));
    session.ui.print_line(format!("  in        {}", target.dir.display()));
    session.ui.print_line(format!("  runs      {}", command.display_command_line()));
    for file in attached {
        session.ui.print_line(format!("  along     {}", file.display()));
    }
}

pub(super) fn print_json(
    session: &CommandContext,
    lane: &AnyLane,
    command: Option<&AgentCommand>,
    state: LaneState,
    answer: Option<String>,
) {
    session.ui.print_json(ReadOnlyRunOutput {
        lane: &lane.name,
        mode: lane.purpose().unwrap_or(LanePurpose::Answer),
        path: &lane.path,
        base: &lane.base,
        start: lane.start.to_string(),
        agent: lane.agent.as_deref(),
        command: command.map(AgentCommand::display_command_line),
        permission: command.and_then(AgentCommand::permission_level),
        state,
        detail: lane.detail.as_deref(),
        answer,
        dry_run: false,
    });
}

/// Prints the answer of a finished run and nothing else on standard output, so that it can be piped. The
/// status goes to standard error.
pub(super) fn print_end(
    session: &CommandContext,
    project: &Project,
    lane: &AnyLane,
    command: Option<&AgentCommand>,
    state: LaneState,
) -> CommandResult {
    let dir = project.store.layout().lane(&lane.name);
    let answer = match state {
        LaneState::Done => lane::run_answer(&dir, lane.attempt)?,
        _ => None,
    };
    if session.ui.json {
        print_json(session, lane, command, state, answer);
        return Ok(wait::exit_for_state(state));
    }
    match answer {
        Some(text) => print_text(session, &text),
        None => session.ui.status(wait::state_line(lane, state)),
    }
    if let (LaneState::Done, Some(detail)) = (state, &lane.detail) {
        session.ui.status(detail.clone());
    }
    Ok(wait::exit_for_state(state))
}

/// Prints an agent's text with terminal control characters escaped.
pub(super) fn print_text(session: &CommandContext, text: &str) {
    for line in terminal_text::escape_lines(text) {
        session.ui.print_line(line);
    }
}

/// Returns the last answer of a lane, and the path of the file that contains it.
pub(super) fn last_answer(dir: &Path, lane: &AnyLane) -> Result<Option<(String, PathBuf)>, Failure> {
    let latest = lane::last_answer(dir, lane)?;
    Ok(latest.map(|(run, text)| (text, dir.join(Layout::run_answer_in_lane(run)))))
}
