//! Owns `git proq redispatch`: a lane's task once more, from today's base.

use std::path::Path;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use super::complete::{agent_names, any_lane_names};
use super::wishes::{Wishes, warn_of};
use super::{Done, Failure, Session, approve, discard, identity};
use crate::agent::{self, Asked, Job};
use crate::explain::Exit;
use crate::lane::{self, Base, Given, NewLane, Project, Removed, Why, operate};
use crate::preview;
use crate::store::path_form;
use crate::store::records::{AnyLane, LaneRecord, Purpose};

/// Start a lane's task afresh from today's base
///
/// For work that has become too old to resolve, or went wrong. The lane is thrown away, with its commits and uncommitted
/// files saved as by `discard --force`, and made anew: the same name, task, checks and scope, cut from where its base is
/// now. Its agent, or AGENT, is started in it; where the task is a folder with steps, at the first. `git proq undo` brings the old one back. A question is asked anew; what was
/// answered before stays in the lane's folder of records.
///
/// Examples:
///     git proq redispatch payments
///     git proq redispatch payments --agent codex
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Redispatch {
    /// The lane
    #[arg(value_name = "LANE", add = ArgValueCompleter::new(any_lane_names))]
    pub(crate) lane: String,
    /// Another agent than the one it had
    #[arg(long, value_name = "AGENT", add = ArgValueCompleter::new(agent_names))]
    pub(crate) agent: Option<String>,
    /// What its run is to be like
    #[command(flatten)]
    pub(crate) wishes: Wishes,
    /// Start it in a window of tmux, on its own screen; `git proq attach` goes there
    #[arg(long, conflicts_with_all = ["max_turns", "stall", "budget"])]
    pub(crate) tmux: bool,
    /// Run none of the lane.setup commands in the new one
    #[arg(long)]
    pub(crate) no_setup: bool,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The answer.
#[derive(Serialize)]
struct Answer<'a> {
    lane: &'a str,
    base: &'a str,
    start: String,
    agent: &'a str,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<&'a str>,
    dry_run: bool,
}

/// Why a lane cannot be started afresh.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// There is nothing to ask an agent.
    #[error("lane '{lane}' has no task to start afresh; nothing was changed")]
    NoTask {
        /// The lane.
        lane: String,
    },
    /// It had no agent that is known by a name.
    #[error("lane '{lane}' was not made by an agent that can be started again; nothing was changed")]
    NoAgent {
        /// The lane.
        lane: String,
    },
}

impl crate::explain::Explain for Unfit {
    fn hints(&self) -> Vec<std::borrow::Cow<'static, str>> {
        vec![match self {
            Unfit::NoTask { .. } => "make a lane with one: git proq spawn AGENT \"what to do\"".into(),
            Unfit::NoAgent { lane } => format!("name one: git proq redispatch {lane} --agent claude").into(),
        }]
    }
}

pub(super) fn run(session: &Session, args: &Redispatch) -> Done {
    let project = session.project_to_change()?;
    identity::refuse_agent_for_others(std::slice::from_ref(&args.lane), args.dry_run)?;
    let lane = match project.any_lane(&args.lane)?.with_tree() {
        Ok(lane) => lane,
        Err(purpose) => return ask_again(session, &project, args, purpose),
    };
    let plan = Plan::make(session, &project, &lane, args)?;
    warn_of(session, &project, [&plan.job])?;
    if args.dry_run {
        say(session, &plan, &lane, None);
        return Ok(Exit::Done);
    }
    let packet = agent::packet_again(&project, &lane.clone().any())?;
    let given = if args.no_setup { Given::NoCommands } else { Given::Whole };
    approve::before_set_up(session, &project, given)?;
    project.ask_to_remove(&lane.name)?;
    project.ask_to_spawn(&lane.name, &plan.base.branch)?;
    let (lane, lock) = project.hold_idle(&lane.name)?;
    let asked = NewLane {
        name: None,
        prompt: Some(&plan.task),
        words: None,
        agent: Some(plan.job.agent.clone()),
        base: plan.base.clone(),
        carry: None,
        checks: lane.checks.clone(),
        scope: lane.scope.clone(),
        sparse: lane::is_cut(&project, &lane),
        auto_merge: lane.auto_merge,
        group: lane.group.clone(),
        batch: lane.batch.clone(),
        given,
    };
    let (removed, made) = operate(&project, "redispatch", |op| {
        if let Some(back) = preview::leave_for(op, &lane.name)? {
            session.ui.say(format!(
                "left the preview of '{}'; the main checkout is on {} again",
                back.lane, back.to
            ));
            back.tell_conflict(&project);
        }
        // As it is under the lock: leaving the preview may have brought commits to it.
        let old = project.lane(&lane.name)?;
        Ok::<_, Failure>(lane::make_anew(op, &old, asked)?)
    })?;
    lane::attach(&project, &made.name, &lane::past_attachments(&project, &removed.past)?)?;
    let (any, exe) = (made.clone().any(), super::resolve::this_program()?);
    match &packet {
        Some(packet) => agent::launch_packet(&project, &any, lock, &plan.job, &exe, packet)?,
        None => agent::launch(&project, &any, lock, &plan.job, &exe)?,
    };
    say(session, &plan, &made, Some(&removed));
    if !session.ui.json {
        discard::say_way_back(session, &project, &removed, Why::Discard);
        let look = if args.tmux { "go there: git proq attach" } else { "follow it: git proq logs -f" };
        session.ui.hint(format!("{look} {}   bring the old one back: git proq undo", made.name));
    }
    Ok(Exit::Done)
}

/// What will be done, checked before anything is.
struct Plan {
    task: String,
    base: Base,
    job: Job,
}

impl Plan {
    fn make(
        session: &Session,
        project: &Project,
        lane: &LaneRecord,
        args: &Redispatch,
    ) -> Result<Plan, Failure> {
        let (task, job) = same_task(session, project, &lane.clone().any(), args)?;
        let base = lane::resolve_base(project, Some(&lane.base), None)?;
        Ok(Plan { task, base, job })
    }
}

/// The task of a lane, and its agent or the one that is named.
fn same_task(
    session: &Session,
    project: &Project,
    lane: &AnyLane,
    args: &Redispatch,
) -> Result<(String, Job), Failure> {
    let name = || lane.name.clone();
    project.require_idle(lane)?;
    let task = crate::regular_file::record_text(project.store.layout().task(&lane.name)).unwrap_or_default();
    if task.trim().is_empty() {
        return Err(Unfit::NoTask { lane: name() }.into());
    }
    // What a command of the user's own was is not on record in full.
    let own = lane.agent.as_deref().filter(|agent| *agent != "command");
    let called = args.agent.as_deref().or(own).ok_or_else(|| Unfit::NoAgent { lane: name() })?;
    let command = if args.agent.is_none() { agent::named_command(project, lane)? } else { Vec::new() };
    let asked = Asked { own: command, purpose: lane.purpose(), ..args.wishes.asked_in(args.tmux) };
    let job = Job::agent(project, called, &task, &session.dir, &asked)?;
    Ok((task, job))
}

/// Asks once more what was asked, of what is checked out now. Nothing has to be saved: each run's answer has a file of its own.
fn ask_again(session: &Session, project: &Project, args: &Redispatch, purpose: Purpose) -> Done {
    let lane = project.any_lane(&args.lane)?;
    let (_, job) = same_task(session, project, &lane, args)?;
    let view = lane::today(project, &lane)?;
    let (base, start) = (view.at, view.start);
    if lane.works_in_place() {
        lane::refuse_in_place(project, &lane.name, &base)?;
    }
    if !args.dry_run {
        let (lane, lock) = project.hold_any_idle(&lane.name)?;
        let lane = project.update_lane(&lane.name, |record| {
            (record.base, record.start) = (base.clone(), start);
        })?;
        agent::launch_again(project, &lane, lock, &job, &super::resolve::this_program()?, None)?;
    }
    if session.ui.json {
        session.ui.object(Answer {
            lane: &lane.name,
            base: &base,
            start: start.to_string(),
            agent: &job.agent,
            path: &lane.path,
            history: None,
            saved: None,
            dry_run: args.dry_run,
        });
        return Ok(Exit::Done);
    }
    let (name, agent) = (&lane.name, &job.agent);
    if lane.works_in_place() {
        let starts = if args.dry_run { "would start" } else { "starts" };
        let at = start.short();
        session
            .ui
            .answer(format!("lane '{name}' {starts} {agent} afresh in the main checkout, on {base} ({at})"));
        return Ok(Exit::Done);
    }
    let asks = if args.dry_run { "would ask" } else { "asks" };
    session.ui.answer(format!("lane '{name}' {asks} {agent} anew, of {base} ({})", start.short()));
    if !args.dry_run {
        session.ui.hint(format!(
            "wait for it: git proq wait {name}   read its {purpose} then: git proq show {name}"
        ));
    }
    Ok(Exit::Done)
}

fn say(session: &Session, plan: &Plan, lane: &LaneRecord, removed: Option<&Removed>) {
    let Base { branch, start } = &plan.base;
    let agent = plan.job.agent.as_str();
    if session.ui.json {
        session.ui.object(Answer {
            lane: &lane.name,
            base: branch,
            start: start.to_string(),
            agent,
            path: &lane.path,
            history: removed.map(|r| r.past.as_str()),
            saved: removed.and_then(|r| r.saved.as_deref()),
            dry_run: removed.is_none(),
        });
        return;
    }
    let name = &lane.name;
    match removed {
        None => session.ui.answer(format!(
            "would save and remove lane '{name}', make it anew from {branch} ({}), and start {agent} in it",
            start.short()
        )),
        Some(removed) => session.ui.answer(format!(
            "lane '{name}' starts afresh from {branch} ({}), with {agent}; the old one is {}",
            start.short(),
            removed.past
        )),
    }
}
