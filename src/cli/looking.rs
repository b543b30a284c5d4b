//! Owns `git proq spawn` in the modes `plan` and `answer`: a run that only looks, and saying what it came to.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::spawn::{Asked, Spawn};
use super::{Done, Failure, Mistake, Session, follow, resolve, spawn, wait};
use crate::agent::{self, Job};
use crate::explain::Exit;
use crate::harmless;
use crate::lane::{self, LookPlan, NewLook, Project, Where};
use crate::store::records::{AnyLane, LaneState, Purpose};
use crate::store::{Layout, path_form};

/// The answer to programs.
#[derive(Serialize)]
struct Answer<'a> {
    lane: &'a str,
    mode: Purpose,
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
    /// What the run came to, when it was waited for.
    #[serde(rename = "answer", skip_serializing_if = "Option::is_none")]
    said: Option<String>,
    dry_run: bool,
}

/// Starts an agent that only looks.
pub(super) fn run(session: &Session, args: &Spawn, purpose: Purpose) -> Done {
    refuse_what_builds(args, purpose)?;
    let project = session.project_to_change()?;
    let asked = Asked::read(session, &project, args)?;
    let (Some(job), Some(prompt)) = (&asked.job, &asked.prompt) else { return Err(no_question().into()) };
    if prompt.trim().is_empty() {
        return Err(no_question().into());
    }
    let name = args.name.as_deref().map(lane::Name::parse).transpose()?;
    let place = if args.isolated { Where::Apart(args.base.as_deref()) } else { Where::Main };
    let wanted = NewLook { name, prompt, agent: job.agent.clone(), purpose, place };
    let plan = lane::plan_look(&project, wanted)?;
    if args.dry_run {
        say_plan(session, &plan, job, purpose, &asked.attached);
        return Ok(Exit::Done);
    }
    let (lane, lock) = lane::create_look(&project, &plan, &asked.attached)?;
    spawn::remember(&project);
    let lane = agent::launch(&project, &lane, lock, job, &resolve::this_program()?)?;
    if args.wait {
        return follow::follow(session, &project, &lane, Some(job));
    }
    if session.ui.json {
        say_json(session, &lane, Some(job), lane.state, None);
        return Ok(Exit::Done);
    }
    session.ui.answer(format!(
        "lane '{}' for {}, looking at {}",
        lane.name,
        lane::with_article(purpose),
        seen(&lane)
    ));
    session.ui.answer(format!("  {}", lane.path.display()));
    session.ui.say(format!("{} looks there, and changes nothing", job.called()));
    session.ui.hint(format!("wait for it: git proq wait {0}   read it then: git proq show {0}", lane.name));
    Ok(Exit::Done)
}

fn no_question() -> Mistake {
    Mistake::Missing {
        what: "the agent needs a question",
        example: "git proq spawn claude --mode answer \"where is the tax computed?\"",
    }
}

/// Refuses flags that are about a lane that is to land.
fn refuse_what_builds(args: &Spawn, purpose: Purpose) -> Result<(), Failure> {
    let given = [
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
    match given.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Mistake::NothingToLand { mode: purpose.to_string(), flag }.into()),
        None => Ok(()),
    }
}

/// What a run looks at, or looked at, for a person.
pub(super) fn seen(lane: &AnyLane) -> String {
    format!("{} ({})", lane.base, lane.start.short())
}

fn say_plan(session: &Session, plan: &LookPlan<'_>, job: &Job, purpose: Purpose, attached: &[PathBuf]) {
    let view = &plan.view;
    if session.ui.json {
        session.ui.object(Answer {
            lane: plan.name.as_str(),
            mode: purpose,
            path: &view.dir,
            base: &view.at,
            start: view.start.to_string(),
            agent: Some(&job.agent),
            command: Some(job.shown()),
            permission: job.level(),
            state: LaneState::Idle,
            detail: None,
            said: None,
            dry_run: true,
        });
        return;
    }
    session.ui.answer(format!("would make lane '{}' for {}", plan.name, lane::with_article(purpose)));
    session.ui.answer(format!("  looks at  {} ({})", view.at, view.start.short()));
    session.ui.answer(format!("  in        {}", view.dir.display()));
    session.ui.answer(format!("  runs      {}", job.shown()));
    for file in attached {
        session.ui.answer(format!("  along     {}", file.display()));
    }
}

fn say_json(session: &Session, lane: &AnyLane, job: Option<&Job>, state: LaneState, said: Option<String>) {
    session.ui.object(Answer {
        lane: &lane.name,
        mode: lane.purpose().unwrap_or(Purpose::Answer),
        path: &lane.path,
        base: &lane.base,
        start: lane.start.to_string(),
        agent: lane.agent.as_deref(),
        command: job.map(Job::shown),
        permission: job.and_then(Job::level),
        state,
        detail: lane.detail.as_deref(),
        said,
        dry_run: false,
    });
}

/// Prints what a run that was waited for said, and nothing else, so that it can be piped on. How it ended goes beside it.
pub(super) fn say_end(
    session: &Session,
    project: &Project,
    lane: &AnyLane,
    job: Option<&Job>,
    state: LaneState,
) -> Done {
    let dir = project.store.layout().lane(&lane.name);
    let said = match state {
        LaneState::Done => lane::answer_of(&dir, lane.attempt)?,
        _ => None,
    };
    if session.ui.json {
        say_json(session, lane, job, state, said);
        return Ok(wait::exit_of(state));
    }
    match said {
        Some(text) => print(session, &text),
        None => session.ui.say(wait::line(lane, state)),
    }
    if let (LaneState::Done, Some(detail)) = (state, &lane.detail) {
        session.ui.say(detail.clone());
    }
    Ok(wait::exit_of(state))
}

/// An agent's own words, in which a terminal obeys nothing.
pub(super) fn print(session: &Session, text: &str) {
    for line in harmless::lines(text) {
        session.ui.answer(line);
    }
}

/// The last answer of a lane, and the file that holds it.
pub(super) fn last_answer(dir: &Path, lane: &AnyLane) -> Result<Option<(String, PathBuf)>, Failure> {
    let found = lane::last_answer(dir, lane)?;
    Ok(found.map(|(run, text)| (text, dir.join(Layout::run_answer_in_lane(run)))))
}
