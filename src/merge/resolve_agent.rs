//! Owns sending an agent at a conflict: one fresh run a try, each told why the ones before were refused.

use std::path::Path;
use std::time::Duration;

use super::outcome::{Report, Verdict};
use super::proof::{Kind, Leave, Reference, kind_of};
use super::push::Push;
use super::request::Request;
use super::resolve::{self, Resolved, Start, give_up, judge, lay_out, require_open, take};
use super::resolve_error::ResolveError;
use super::{Error, prompt};
use crate::agent::{self, Asked, Job};
use crate::event::Approvals;
use crate::explain::Explain;
use crate::lane::{self, Project, effective_state};
use crate::store::records::{LaneRecord, LaneState, ResolveRecord, RunRecord, Strategy};
use crate::store::{Guard, Record};

/// How often is looked whether the agent has ended, or somebody wants it to.
const GLANCE: Duration = Duration::from_millis(30);

/// Who is sent at conflicts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolver<'a> {
    /// A known agent, or any program on `PATH`.
    pub(crate) agent: &'a str,
    /// How many tries more than one.
    pub(crate) retries: u32,
    /// What the user allows beyond the proof.
    pub(crate) leave: &'a Leave,
    /// What its run is to be like.
    pub(crate) asked: &'a Asked,
    /// This program.
    pub(crate) exe: &'a Path,
    /// Where a relative path to the agent begins.
    pub(crate) dir: &'a Path,
}

/// How one try ended.
enum Tried {
    /// The conflict is over.
    Over(Resolved),
    /// What speaks against the result, in a sentence.
    Refused(String),
}

/// Has an agent resolve the conflict of a lane, in as many tries as are allowed.
///
/// # Errors
/// [`ResolveError::GaveUp`] after the last one, which is left laid out; the others are kept.
pub(crate) fn by_agent(project: &Project, name: &str, resolver: &Resolver<'_>) -> Result<Resolved, Error> {
    agent::require(project, resolver.agent, resolver.dir)?;
    let mut refusals: Vec<String> = Vec::new();
    loop {
        let (lane, lock) = project.hold_idle(name)?;
        let open = match lay_out(project, &lane, &lock, Some(resolver.agent), refusals.clone())? {
            Start::Open(open) => open,
            Start::Over(resolved) => return Ok(resolved),
        };
        let dir = open.path.clone();
        let why = match attempt(project, &lane, lock, &open, resolver)? {
            Tried::Over(resolved) => return Ok(resolved),
            Tried::Refused(why) => why,
        };
        project.update_lane(&lane.name, |record| {
            record.detail = Some(format!("{}'s resolution was refused: {why}", resolver.agent));
        })?;
        refusals.push(why.clone());
        let tries = u32::try_from(refusals.len()).unwrap_or(u32::MAX);
        if tries > resolver.retries {
            let (lane, agent) = (lane.name, resolver.agent.to_owned());
            return Err(ResolveError::GaveUp { lane, agent, tries, why, dir }.into());
        }
        project.listener.step(format!("refused: {why}"));
    }
}

/// The same where another process may have sent that agent already and was killed: what came of it is judged first.
///
/// # Errors
/// As [`by_agent`].
pub(crate) fn go_on_by_agent(
    project: &Project,
    name: &str,
    resolver: &Resolver<'_>,
) -> Result<Resolved, Error> {
    let lane = project.lane(name)?;
    let open = project.resolving(&lane.name)?.is_some_and(|open| open.agent.is_some());
    let run = RunRecord::find(&project.store.layout().run_record(&lane.name, lane.attempt))?;
    if open && run.is_some_and(|run| run.resolves) {
        wait(project, &lane.name)?;
        if let Tried::Over(resolved) = conclude(project, &lane.name, lane.attempt, resolver)? {
            return Ok(resolved);
        }
    }
    by_agent(project, name, resolver)
}

fn attempt(
    project: &Project,
    lane: &LaneRecord,
    lock: Guard,
    open: &ResolveRecord,
    resolver: &Resolver<'_>,
) -> Result<Tried, Error> {
    let begun = begin(project, lane, open, resolver);
    let (job, prompt) = match begun {
        Ok(begun) => begun,
        Err(e) => {
            drop(give_up(project, lane, open)?);
            return Err(e);
        }
    };
    if let Some(warning) = job.warning_of_power() {
        project.listener.warn(warning);
    }
    let lane = agent::launch_to_resolve(project, &lane.clone().any(), lock, &job, resolver.exe, &prompt)?;
    let files =
        if open.paths.len() == 1 { "1 file".to_owned() } else { format!("{} files", open.paths.len()) };
    project.listener.step(format!(
        "{} resolves the conflict of {} with {} in {files}; follow it: git proq logs -f {}",
        resolver.agent, lane.name, open.onto, lane.name
    ));
    wait(project, &lane.name)?;
    conclude(project, &lane.name, lane.attempt, resolver)
}

/// Judges what an agent has come to, and takes it if nothing speaks against it.
fn conclude(project: &Project, lane: &str, attempt: u32, resolver: &Resolver<'_>) -> Result<Tried, Error> {
    let run = RunRecord::load(&project.store.layout().run_record(lane, attempt))?;
    let (lane, _lock) = project.hold_idle(lane)?;
    // Somebody may have given it up meanwhile.
    let open = require_open(project, &lane.name)?;
    match run.outcome {
        Some(LaneState::Done) => {}
        Some(LaneState::Stopped) => return Err(ResolveError::Stopped { lane: lane.name }.into()),
        _ => return Ok(Tried::Refused(how_it_failed(project, &lane.name, &run))),
    }
    let (tree, against) = judge(project, &open, resolver.leave, true)?;
    if against.is_empty() {
        return take(project, &open, tree, resolver.agent).map(Tried::Over);
    }
    Ok(Tried::Refused(against.join("; ")))
}

fn how_it_failed(project: &Project, name: &str, run: &RunRecord) -> String {
    match (run.exit_code, run.signal) {
        (Some(code), _) => format!("it failed with exit code {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => lane::died(project, name),
    }
}

/// The command and what it is told, when this is a conflict for an agent.
fn begin(
    project: &Project,
    lane: &LaneRecord,
    open: &ResolveRecord,
    resolver: &Resolver<'_>,
) -> Result<(Job, String), Error> {
    let repo = &project.repo;
    let scratch = project.store.layout().scratch()?;
    let reference = Reference::read(repo, open, scratch.path())?;
    let mut why = Vec::new();
    for path in open.paths.iter().filter(|p| !resolver.leave.covers(&p.path)) {
        let text = reference.text(repo, &path.path)?;
        let marked = text.as_deref().is_some_and(|text| reference.marked(text).is_some());
        if let Kind::Other(what) = kind_of(path, marked) {
            why.push(format!("{0} {what} (--allow {0} lets the agent decide)", path.path));
        }
    }
    if !why.is_empty() {
        return Err(ResolveError::NeedsPerson { lane: lane.name.clone(), why }.into());
    }
    let task = crate::regular_file::record_text(project.store.layout().task(&lane.name)).unwrap_or_default();
    let checks = agent::checks_of(project, &lane.clone().any())?;
    let prompt = prompt::write(repo, open, &reference, &task, &checks, resolver.leave)?;
    Ok((Job::agent(project, resolver.agent, &prompt, resolver.dir, resolver.asked)?, prompt))
}

/// Waits for the end of a run. Ctrl-C stops it first.
fn wait(project: &Project, lane: &str) -> Result<(), Error> {
    while effective_state(project, &project.lane(lane)?)?.0.is_busy() {
        if let Err(interrupted) = crate::interrupt::check() {
            drop(agent::stop(project, lane)?);
            return Err(interrupted.into());
        }
        std::thread::sleep(GLANCE);
    }
    Ok(())
}

/// Whether the agent that the settings send at conflicts may run: one that the repository names must have been approved.
///
/// # Errors
/// [`Error::UnapprovedAgent`] when nobody has.
pub(crate) fn require_approved(project: &Project, agent: &str) -> Result<(), Error> {
    let approvals = Approvals::read(&project.repo, &project.store)?;
    let command = approvals.of_agent(&project.layers, agent);
    match command.from {
        Some(path) if !command.approved => Err(Error::UnapprovedAgent { path, agent: command.line }),
        _ => Ok(()),
    }
}

/// Sends an agent at every lane that a landing found in conflict, and lands those that it resolves, one after the other:
/// each conflict is the one with the base as it is by then.
pub(super) fn after_landing(
    project: &Project,
    request: &Request<'_>,
    resolver: &Resolver<'_>,
    report: &mut Report,
) -> Result<(), Error> {
    // A resolution is a merge, of which a rebase can make no commits of one line.
    let strategy = match request.strategy(&project.settings) {
        Strategy::Rebase => Strategy::Squash,
        other => other,
    };
    for line in report.lanes.iter_mut().filter(|line| line.result == Verdict::Conflict) {
        let tip = project.lane(&line.lane).ok();
        let tip = tip.and_then(|lane| project.repo.branch_tip(&lane.place.branch).ok().flatten());
        let resolved = match by_agent(project, &line.lane, resolver) {
            Ok(resolved) => resolved,
            Err(e) => {
                crate::interrupt::check()?;
                line.hints = e.hints().iter().map(ToString::to_string).collect();
                line.message = Some(e.to_string());
                continue;
            }
        };
        if let (true, Some(tip), Some(commit)) = (request.by_itself, tip, resolved.commit) {
            let lane = project.lane(&resolved.lane)?;
            lane::extend_run(project, &lane, tip, commit)?;
        }
        let lanes = [resolved.lane];
        let again = Request {
            lanes: &lanes,
            all: false,
            resolver: None,
            push: Push::No,
            stop: None,
            strategy: Some(strategy),
            ..*request
        };
        if let Some(mut landed) = super::run(project, &again)?.lanes.pop() {
            if landed.result == Verdict::Landed && resolved.commit.is_some() {
                landed.result = Verdict::Resolved;
                landed.files = resolved.files;
            }
            *line = landed;
        }
    }
    Ok(())
}

/// Whether a lane's conflict is laid out, and what it is, for whoever only looks.
pub(crate) fn look(project: &Project, name: &str) -> Result<(LaneRecord, Option<ResolveRecord>), Error> {
    let lane = project.lane(name)?;
    resolve::conflict_of(project, &lane.name)?;
    let open = project.resolving(&lane.name)?;
    Ok((lane, open))
}
