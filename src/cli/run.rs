//! Owns `git proq run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::{agent_names, any_lane_names};
use super::send::say_what_waits;
use super::wishes::{Wishes, warn_of};
use super::{Done, Mistake, Session, follow, identity, resolve, spawn, wait};
use crate::agent::{self, Asked, Begun, Job};
use crate::explain::Exit;
use crate::lane::{Project, SaidFiles};
use crate::store::records::AnyLane;

/// Start an agent in a lane that is there
///
/// The lane stays as it is, with all that is in it; the agent begins a new conversation. Without PROMPT it is asked for the lane's
/// task; where that is a folder with steps, it goes on with the step at which that was, and AGENT can be left out. `git proq send` goes on in the conversation that there was, `git proq redispatch` begins afresh from today's base.
///
/// Examples:
///     git proq run payments codex "review this lane's commits and fix what is wrong"
///     git proq run payments claude
///     git proq run pay-3-refunds
///     git proq run payments codex "make it look like this" --attach screen.png
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_field_names, reason = "flags are named for the user")]
pub(crate) struct Run {
    /// The lane
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// The agent: a known one (see `git proq agents`) or any program on PATH
    #[arg(value_name = "AGENT", add = ArgValueCompleter::new(agent_names))]
    pub(crate) agent: Option<String>,
    /// What the agent is asked to do; without it, the lane's task
    #[arg(value_name = "PROMPT", conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// The command that AGENT is started with, where it has none of its own: acp "..." -- CMD
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
    /// Read PROMPT from FILE, or from standard input with '-'
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Give FILE along with PROMPT; a copy is kept beside the lane's record. May be given again
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) attach: Vec<PathBuf>,
    /// How the run is to be
    #[command(flatten)]
    pub(crate) wishes: Wishes,
    /// Start it in a window of tmux, on its own screen; `git proq attach` goes there
    #[arg(long, conflicts_with_all = ["max_turns", "stall", "budget"])]
    pub(crate) tmux: bool,
    /// Wait for the agent to end; exit with 4 when it failed
    #[arg(long)]
    pub(crate) wait: bool,
    /// Say what would be started, and start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    lane: &'a str,
    agent: &'a str,
    command: String,
    attempt: u32,
    state: String,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Run) -> Done {
    let prompt = match &args.file {
        None => args.prompt.clone(),
        Some(file) => Some(spawn::read_prompt(file)?),
    };
    let attached = spawn::attached(session, &args.attach)?;
    if prompt.is_none() && !attached.is_empty() {
        let example = "git proq run LANE AGENT \"make it look like this\" --attach FILE";
        return Err(Mistake::Missing { what: "nothing says what the files are for", example }.into());
    }
    let project = session.project_to_change()?;
    let lane = project.any_lane(&args.lane)?;
    identity::refuse_agent_for_others(std::slice::from_ref(&lane.name), args.dry_run)?;
    project.require_idle(&lane)?;
    if prompt.is_none() && (args.agent.is_none() || project.store.layout().packet(&lane.name).exists()) {
        return go_on(session, args, &project, &lane);
    }
    let task =
        || crate::regular_file::record_text(project.store.layout().task(&lane.name)).unwrap_or_default();
    let asked = prompt.clone().unwrap_or_else(task);
    let wishes =
        Asked { own: args.command.clone(), purpose: lane.purpose(), ..args.wishes.asked_in(args.tmux) };
    let job = Job::agent(&project, args.agent.as_deref().unwrap_or_default(), &asked, &session.dir, &wishes)
        .map_err(|e| e.in_lane(&lane.name, &args.command))?
        .with_checks(agent::checks_of(&project, &lane)?);
    warn_of(session, &project, [&job])?;
    let mut now = lane.clone();
    if !args.dry_run {
        let (lane, lock) = project.hold_any_idle(&lane.name)?;
        agent::require_at_task(&project, &lane)?;
        let copies = SaidFiles::copy(&project, &lane.name, &attached)?;
        let prompt = prompt.map(|prompt| copies.with(&prompt)).transpose()?;
        now = agent::launch_again(&project, &lane, lock, &job, &resolve::this_program()?, prompt.as_deref())?;
        copies.keep();
    }
    say(session, args, &project, (&now, lane.attempt + 1), &job)
}

/// Goes on with a task that is a folder, where it was.
fn go_on(session: &Session, args: &Run, project: &Project, lane: &AnyLane) -> Done {
    if args.tmux {
        let what = "the steps of a task folder are not worked at in a window";
        return Err(Mistake::Missing { what, example: "git proq run LANE, without --tmux" }.into());
    }
    let none = || match args.agent {
        None if !args.command.is_empty() => agent::Error::command_in_lane(&lane.name, &args.command),
        _ => agent::Error::NoPacket { lane: lane.name.clone() },
    };
    let shown = agent::shown_packet(&project.store.layout().lane(&lane.name), lane)?.ok_or_else(none)?;
    let own = match args.agent {
        Some(_) => args.command.clone(),
        None => agent::named_command(project, lane)?,
    };
    let wishes = args.wishes.asked();
    let is_another_way = args.agent.is_some() || !wishes.is_open();
    let called = args.agent.as_ref().or(lane.agent.as_ref()).ok_or_else(none)?;
    let job = Job::agent(project, called, &lane.title, &session.dir, &Asked { own, ..wishes })
        .map_err(|e| e.in_lane(&lane.name, &args.command))?
        .with_checks(agent::checks_of(project, lane)?);
    warn_of(session, project, [&job])?;
    let mut now = lane.clone();
    if !args.dry_run {
        let (lane, lock) = project.hold_any_idle(&lane.name)?;
        agent::require_at_task(project, &lane)?;
        let by = Some(&job).filter(|_| is_another_way);
        match agent::resume_packet(project, &lane, lock, &resolve::this_program()?, by)? {
            Begun::Runs(lane) => now = lane,
            Begun::Over(lane) => {
                session.ui.say(wait::line(&lane, lane.state));
                if session.ui.json {
                    say_json(session, (&lane, lane.attempt), &job, false);
                }
                return Ok(Exit::Done);
            }
        }
    } else if !session.ui.json {
        session.ui.answer(format!("{} of {} boxes of {} are ticked", shown.done, shown.of, shown.folder));
    }
    say(session, args, project, (&now, lane.attempt + 1), &job)
}

/// What was started, or would be.
fn say(session: &Session, args: &Run, project: &Project, (now, attempt): (&AnyLane, u32), job: &Job) -> Done {
    if args.wait && !args.dry_run {
        return follow::follow(session, project, now, Some(job));
    }
    if session.ui.json {
        say_json(session, (now, attempt), job, args.dry_run);
        return Ok(Exit::Done);
    }
    if args.dry_run {
        session.ui.answer(format!("would start {} in lane '{}': {}", job.called(), now.name, job.shown()));
        return Ok(Exit::Done);
    }
    session.ui.answer(format!("{} in lane '{}'", job.begun(), now.name));
    // They are for a conversation before this one.
    say_what_waits(session, project, &now.name);
    session.ui.hint(spawn::hint(job, &now.name));
    Ok(Exit::Done)
}

fn say_json(session: &Session, (lane, attempt): (&AnyLane, u32), job: &Job, dry_run: bool) {
    session.ui.object(Answer {
        lane: &lane.name,
        agent: &job.agent,
        command: job.shown(),
        attempt,
        state: lane.state.to_string(),
        dry_run,
    });
}
