//! Owns `git proq spawn` in the modes `plan` and `answer`, a run that only looks, and `--in-place`; and saying what they came to.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::spawn::{Asked, Spawn};
use super::wishes::warn_of;
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

/// Starts an agent that has nothing of its own in the repository.
pub(super) fn run(session: &Session, args: &Spawn, purpose: Purpose) -> Done {
    refuse_what_builds(args, purpose)?;
    let project = session.project_to_change()?;
    let asked = Asked::read(session, &project, args)?;
    let prompt = asked.prompt.as_ref().or(asked.words.as_ref());
    let (Some(job), Some(prompt)) = (&asked.job, prompt) else { return Err(no_question(purpose).into()) };
    if prompt.trim().is_empty() {
        return Err(no_question(purpose).into());
    }
    let name = args.name.as_deref().map(lane::Name::parse).transpose()?;
    let place = if args.isolated { Where::Apart(args.base.as_deref()) } else { Where::Main };
    let wanted = NewLook { name, prompt, agent: job.agent.clone(), purpose, place };
    let plan = lane::plan_look(&project, wanted)?;
    let checks = match purpose.only_looks() {
        true => Vec::new(),
        false => agent::checks_with(&project, &plan.view.at, &[])?,
    };
    let job = &job.clone().with_checks(checks);
    warn_of(session, &project, [job])?;
    if args.dry_run {
        say_plan(session, &plan, job, purpose, &asked.attached);
        return Ok(Exit::Done);
    }
    let (lane, lock) = lane::create_look(&project, &plan, &asked.attached)?;
    spawn::remember(&project);
    let launched = agent::launch(&project, &lane, lock, job, &resolve::this_program()?);
    let lane = launched.map_err(|e| take_away(&project, &lane, e))?;
    if args.wait {
        return follow::follow(session, &project, &lane, Some(job));
    }
    if session.ui.json {
        say_json(session, &lane, Some(job), lane.state, None);
        return Ok(Exit::Done);
    }
    say_started(session, &lane, job, purpose);
    Ok(Exit::Done)
}

/// Takes a lane away whose run could not begin in the main checkout: nothing was changed then, and nothing is to be left of it.
fn take_away(project: &Project, lane: &AnyLane, e: agent::Error) -> Failure {
    let refused = matches!(&e, agent::Error::Lane(_));
    if refused
        && lane.works_in_place()
        && let Err(e) = lane::forget_look(project, lane)
    {
        project.listener.warn(format!("lane '{}' is left: {e}", lane.name));
    }
    e.into()
}

fn say_started(session: &Session, lane: &AnyLane, job: &Job, purpose: Purpose) {
    let name = &lane.name;
    if !purpose.only_looks() {
        session.ui.answer(format!("lane '{name}' works in the main checkout, on {}", seen(lane)));
        session.ui.answer(format!("  {}", lane.path.display()));
        session.ui.say(format!("{} works there; what it changes is committed when it is done", job.called()));
        session.ui.hint(format!(
            "follow it: git proq logs -f {name}   take it back then, by its number in: git proq op log"
        ));
        return;
    }
    session.ui.answer(format!(
        "lane '{name}' for {}, looking at {}",
        lane::with_article(purpose),
        seen(lane)
    ));
    session.ui.answer(format!("  {}", lane.path.display()));
    session.ui.say(format!("{} looks there, and changes nothing", job.called()));
    session.ui.hint(format!("wait for it: git proq wait {name}   read it then: git proq show {name}"));
}

fn no_question(purpose: Purpose) -> Mistake {
    if !purpose.only_looks() {
        return Mistake::Missing {
            what: "the agent needs a prompt",
            example: "git proq spawn --in-place claude \"fix the typos\"",
        };
    }
    Mistake::Missing {
        what: "the agent needs a question",
        example: "git proq spawn claude --mode answer \"where is the tax computed?\"",
    }
}

/// Refuses flags that are about a lane that is to land.
fn refuse_what_builds(args: &Spawn, purpose: Purpose) -> Result<(), Failure> {
    let mode = if purpose.only_looks() { format!("--mode {purpose}") } else { "--in-place".to_owned() };
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
        Some((flag, _)) => Err(Mistake::NothingToLand { mode, flag }.into()),
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
    let does = if purpose.only_looks() { "looks at" } else { "works on" };
    session.ui.answer(format!("  {does}  {} ({})", view.at, view.start.short()));
    session.ui.answer(format!("  in        {}", view.dir.display()));
    session.ui.answer(format!("  runs      {}", job.shown()));
    for file in attached {
        session.ui.answer(format!("  along     {}", file.display()));
    }
}

pub(super) fn say_json(
    session: &Session,
    lane: &AnyLane,
    job: Option<&Job>,
    state: LaneState,
    said: Option<String>,
) {
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
