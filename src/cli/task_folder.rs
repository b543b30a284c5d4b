//! Owns `git proq spawn --folder`: a lane whose task is a folder with steps.

use super::spawn::{self, Spawn};
use super::uncommitted::Uncommitted;
use super::wishes::warn_of;
use super::{Done, Failure, Mistake, Session, approve, resolve, terms};
use crate::agent::{self, Job, Packet};
use crate::explain::Exit;
use crate::lane::{self, Created, Name, NewLane, Plan, Project};
use crate::swarm::{self, Home, Single};

/// How many numbers are tried for a name that is taken.
const TRIES: u32 = 1000;

/// What the command line asks for, checked before anything is made.
struct Asked {
    single: Single,
    packet: Packet,
    job: Job,
    checks: Vec<String>,
    scope: Vec<String>,
}

pub(super) fn run(session: &Session, args: &Spawn, source: &str) -> Done {
    let project = session.project_to_change()?;
    let asked = Asked::read(session, &project, args, source)?;
    let base = lane::resolve_base(&project, args.base.as_deref(), args.onto.as_deref())?;
    let here = project.repo.here().or(project.repo.main_worktree()).map(std::path::Path::to_owned);
    let name = args.name.as_deref().map(Name::parse).transpose()?;
    let wanted = NewLane {
        name,
        prompt: Some(&asked.single.task.prompt),
        words: None,
        agent: Some(asked.job.agent.clone()),
        base,
        carry: here.clone().filter(|_| args.carry),
        checks: asked.checks.clone(),
        sparse: terms::sparse(args.sparse, &asked.scope)?,
        scope: asked.scope.clone(),
        auto_merge: args.auto_merge,
        group: None,
        batch: None,
        given: args.given(),
    };
    let plan = plan_of(&project, wanted, &asked.single)?;
    terms::warn_of_neighbours(session, &project, &plan);
    warn_of(session, &project, [&asked.job])?;
    let uncommitted = Uncommitted::of(&project, args, here.as_deref());
    if args.dry_run {
        uncommitted.warn(session, None);
        spawn::say_plan(session, &plan, Some(&asked.job), &[]);
        if !session.ui.json {
            session.ui.answer(format!("  task      {}", asked.packet.in_words(&asked.job)));
        }
        return Ok(Exit::Done);
    }
    approve::before_set_up(session, &project, args.given())?;
    let exe = resolve::this_program()?;
    let Created { lane, lock, unchanged } = lane::create(&project, &plan)?;
    spawn::remember(&project);
    let any = lane.clone().any();
    let begun = agent::launch_packet(&project, &any, lock, &asked.job, &exe, &asked.packet);
    let wait = args.wait && begun.as_ref().is_ok_and(|begun| begun.state.is_busy());
    let warn = || uncommitted.warn(session, unchanged.as_deref());
    let begun = begun.map(Some).map_err(Failure::from);
    spawn::tell(session, &project, (lane, Some(&asked.job)), begun, wait, warn)
}

impl Asked {
    fn read(session: &Session, project: &Project, args: &Spawn, source: &str) -> Result<Asked, Failure> {
        let agent = args.agent.as_deref().ok_or(Mistake::Missing {
            what: "nothing says what to start",
            example: "git proq spawn claude --folder tasks/pay/PAY-3-refunds",
        })?;
        let single = read(session, project, source)?;
        let wishes = agent::Asked { own: args.command.clone(), ..args.wishes.asked() };
        let job = Job::agent(project, agent, &single.task.title, &session.dir, &wishes)?;
        let level = single.task.review.unwrap_or_default();
        let reviewer = args.reviewer.clone();
        let packet =
            Packet::read(project, &single.path, &single.folder, &single.task.title, level, reviewer)?;
        packet.require_reviewer(project, &job)?;
        let scope: Vec<String> = args.scope.iter().chain(&single.task.scope).cloned().collect();
        let checks: Vec<String> = args.check.iter().chain(&single.task.checks).cloned().collect();
        Ok(Asked { checks: terms::checks(&checks)?, scope: terms::scope(&scope)?, single, packet, job })
    }
}

/// Reads the task, and says what is odd about it.
fn read(session: &Session, project: &Project, source: &str) -> Result<Single, Failure> {
    let repo = &project.repo;
    let top = repo.here().unwrap_or(repo.home());
    let top = std::fs::canonicalize(top).unwrap_or_else(|_| top.to_owned());
    let settings = &project.settings;
    let home = Home { top: &top, tasks: &settings.swarm.tasks, areas: &settings.swarm.areas };
    let single = swarm::single(&session.dir, source, &home)?;
    session.ui.warn_of(&single.remarks);
    if single.task.done {
        session.ui.warn(format!("task {} is marked as done", single.task.name()));
    }
    if !single.open.is_empty() {
        session.ui.warn(format!(
            "task {} needs {}, which is not done",
            single.task.name(),
            single.open.join(", ")
        ));
    }
    Ok(single)
}

/// Plans the lane, which is named after the folder where no name was given.
fn plan_of<'a>(project: &Project, wanted: NewLane<'a>, single: &Single) -> Result<Plan<'a>, lane::Error> {
    if wanted.name.is_some() {
        return lane::plan(project, wanted);
    }
    let folder = single.folder.rsplit('/').next().unwrap_or(&single.folder);
    let wish = Name::from_prompt(&folder.replace('_', "-"));
    let mut n = 1;
    loop {
        let name = Some(wish.numbered(n));
        match lane::plan(project, NewLane { name, ..wanted.clone() }) {
            Err(e) if e.is_taken() && n < TRIES => n += 1,
            plan => return plan,
        }
    }
}
