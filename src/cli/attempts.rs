//! Owns several attempts at one task: `git proq spawn` with --count or --agents.

use std::path::Path;

use serde::Serialize;

use super::spawn::{Asked, Spawn};
use super::uncommitted::Uncommitted;
use super::wishes::warn_of;
use super::{Done, Failure, Mistake, Session, approve, report, resolve, terms, wait};
use crate::agent::{self, Job, Until};
use crate::explain::Exit;
use crate::lane::{self, Created, NewLane, Plan, Project};
use crate::store::path_form;
use crate::store::records::{AnyLane, LaneRecord, LaneState};

/// How many attempts there may be.
const MOST: usize = 99;

/// What `--agents` names: one agent for each attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agents(Vec<String>);

/// Reads `claude:2,codex`.
pub(super) fn agents(text: &str) -> Result<Agents, String> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (name, count) = match part.rsplit_once(':') {
            Some((name, count)) if count.bytes().all(|b| b.is_ascii_digit()) => (name, count),
            _ => (part, "1"),
        };
        let count = count.parse::<usize>().ok().filter(|count| (1..=MOST).contains(count));
        let Some(count) = count.filter(|_| !name.is_empty()) else {
            return Err(format!("'{part}' is no agent with a number of attempts, like claude:2"));
        };
        all.extend(std::iter::repeat_n(name.to_owned(), count));
    }
    if all.len() > MOST { Err(format!("more than {MOST} attempts")) } else { Ok(Agents(all)) }
}

/// What each attempt is asked for with, as if it were alone.
pub(super) struct Attempts(Vec<Spawn>);

impl Attempts {
    /// What the command line asks for; none when that is a single lane.
    ///
    /// # Errors
    /// [`Mistake::Missing`] when both a list and an argument name the agents; what keeps the prompt from being read.
    pub(super) fn read(args: &Spawn) -> Result<Option<Attempts>, Failure> {
        let alone = Spawn { count: None, agents: None, ..args.clone() };
        if let Some(count) = args.count {
            return Ok(Some(Attempts(vec![alone.with_prompt_read()?; usize::from(count)])));
        }
        let Some(Agents(names)) = &args.agents else { return Ok(None) };
        // Without an agent, what stands first is the prompt.
        if args.prompt.is_some() || (args.agent.is_some() && args.file.is_some()) {
            let what = "--agents says who does it, and so does an argument";
            let example = "git proq spawn --agents claude:2,codex:1 \"implement payments\"";
            return Err(Mistake::Missing { what, example }.into());
        }
        let alone = Spawn { agent: None, prompt: args.agent.clone(), ..alone }.with_prompt_read()?;
        let with = |name: &String| Spawn { agent: Some(name.clone()), ..alone.clone() };
        Ok(Some(Attempts(names.iter().map(with).collect())))
    }

    /// The first of them.
    pub(super) fn first(&self) -> &Spawn {
        &self.0[0]
    }

    /// Makes the lanes, all or none, then starts what is to run in each. `wanted` is the first of them.
    ///
    /// # Errors
    /// When one of them cannot be made; then nothing was.
    pub(super) fn spawn(
        &self,
        session: &Session,
        project: &Project,
        wanted: &NewLane<'_>,
        here: Option<&Path>,
    ) -> Done {
        let mut asked = Vec::new();
        for args in &self.0 {
            asked.push(Asked::read(session, project, args)?);
        }
        let attached = asked.first().map(|asked| asked.attached.clone()).unwrap_or_default();
        let jobs: Vec<Option<Job>> = asked.into_iter().map(|asked| asked.job).collect();
        warn_of(session, project, jobs.iter().flatten())?;
        let agents: Vec<Option<String>> =
            jobs.iter().map(|job| job.as_ref().map(|job| job.agent.clone())).collect();
        let plans = lane::plan_attempts(project, wanted, &agents)?;
        if let Some(first) = plans.first() {
            terms::warn_of_neighbours(session, project, first);
        }
        let uncommitted = Uncommitted::of(project, self.first(), here);
        if self.first().dry_run {
            uncommitted.warn(session, None);
            say_plan(session, &plans, &jobs);
            return Ok(Exit::Done);
        }
        let exe = resolve::this_program()?;
        approve::before_set_up(session, project, wanted.given)?;
        let created = lane::create_attempts(project, wanted, &agents, plans)?;
        let unchanged = created.first().and_then(|first| first.unchanged.clone());
        let mut started = Vec::new();
        for (Created { lane, lock, .. }, job) in created.into_iter().zip(&jobs) {
            let begun = job.as_ref().map(|job| {
                lane::attach(project, &lane.name, &attached)?;
                agent::launch(project, &lane.clone().any(), lock, job, &exe)
            });
            started.push(Started::new(project, lane, job.as_ref(), begun.transpose().err()));
        }
        uncommitted.warn(session, unchanged.as_deref());
        tell(session, project, self.first().wait, started)
    }
}

/// One attempt whose lane is there.
struct Started<'j> {
    lane: LaneRecord,
    state: LaneState,
    job: Option<&'j Job>,
    /// Why nothing runs in it.
    failure: Option<Failure>,
}

impl<'j> Started<'j> {
    fn new(
        project: &Project,
        lane: LaneRecord,
        job: Option<&'j Job>,
        error: Option<agent::Error>,
    ) -> Started<'j> {
        let lane = project.lane(&lane.name).unwrap_or(lane);
        Started { state: lane.state, lane, job, failure: error.map(Failure::from) }
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    group: &'a str,
    lanes: Vec<Row<'a>>,
    dry_run: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    lane: &'a str,
    branch: &'a str,
    #[serde(serialize_with = "path_form::serialize")]
    path: &'a Path,
    base: &'a str,
    start: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    state: LaneState,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn say_plan(session: &Session, plans: &[Plan<'_>], jobs: &[Option<Job>]) {
    let Some(first) = plans.first() else { return };
    let (group, base) = (first.group().unwrap_or_default(), first.base());
    if session.ui.json {
        let row = |(plan, job): (&'_ Plan<'_>, &Option<Job>)| {
            serde_json::to_value(Row {
                lane: plan.name.as_str(),
                branch: &plan.branch,
                path: &plan.path,
                base: &base.branch,
                start: base.start.to_string(),
                agent: job.as_ref().map(|job| job.agent.as_str()),
                command: job.as_ref().map(Job::shown),
                state: LaneState::Idle,
                error: None,
            })
            .unwrap_or_default()
        };
        let lanes: Vec<serde_json::Value> = plans.iter().zip(jobs).map(row).collect();
        session.ui.object(serde_json::json!({ "group": group, "lanes": lanes, "dry_run": true }));
        return;
    }
    session.ui.answer(format!("would make {} of group '{group}'", super::ui::count(plans.len(), "attempt")));
    session.ui.answer(format!("  from      {} ({})", base.start.short(), base.branch));
    terms::say(session, first);
    for (plan, job) in plans.iter().zip(jobs) {
        let runs = job.as_ref().map_or_else(|| "nothing".to_owned(), Job::shown);
        session.ui.answer(format!("  {} on {}: {runs}", plan.name, plan.branch));
    }
}

/// Says what was made, waits if that is asked for, and returns the exit code: that of the first that could not be started, or
/// else of the first whose agent failed.
fn tell(session: &Session, project: &Project, wait: bool, mut started: Vec<Started<'_>>) -> Done {
    let mut exit = Exit::Done;
    let text = !session.ui.json;
    for one in &started {
        if text && !wait {
            session.ui.answer(made(one));
        }
        if let Some(failure) = &one.failure {
            let code = if text { report::show(failure, false) } else { failure.0.exit() };
            exit = if exit == Exit::Done { code } else { exit };
        }
    }
    let group = started[0].lane.group.clone().unwrap_or_default();
    if wait {
        // From here on Ctrl-C leaves; the agents go on under their supervisors.
        crate::interrupt::disarm();
        let lanes: Vec<AnyLane> = started.iter().map(|one| one.lane.clone().any()).collect();
        let all = agent::wait_for(project, &lanes, Until::All, None, &mut |waited| {
            if text {
                session.ui.answer(wait::line(&waited.lane, waited.state));
            }
        })?;
        for (one, waited) in started.iter_mut().zip(all) {
            exit = if exit == Exit::Done { wait::exit_of(waited.state) } else { exit };
            one.state = waited.state;
            if let Ok(lane) = waited.lane.with_tree() {
                one.lane = lane;
            }
        }
    }
    if !text {
        let lanes = started.iter().map(Row::from).collect();
        session.ui.object(Answer { group: &group, lanes, dry_run: false });
    } else if wait {
        session.ui.hint(format!("compare them: git proq compare {group}"));
    } else {
        session
            .ui
            .hint(format!("wait for them: git proq wait {group}   compare them: git proq compare {group}"));
    }
    Ok(exit)
}

fn made(one: &Started<'_>) -> String {
    let LaneRecord { name, base, .. } = &one.lane;
    let branch = &one.lane.place.branch;
    let at_work = match (&one.failure, one.job) {
        (None, Some(job)) => format!("; {} there", job.begun()),
        _ => String::new(),
    };
    format!("lane '{name}' on branch {branch}, from {base}{at_work}")
}

impl<'a> From<&'a Started<'_>> for Row<'a> {
    fn from(one: &'a Started<'_>) -> Row<'a> {
        let lane = &one.lane;
        Row {
            lane: &lane.name,
            branch: &lane.place.branch,
            path: &lane.path,
            base: &lane.base,
            start: lane.start.to_string(),
            agent: lane.agent.as_deref(),
            command: one.job.map(Job::shown),
            state: one.state,
            error: one.failure.as_ref().map(|failure| failure.0.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_named_with_a_number_each() {
        let list = |text| agents(text).map(|Agents(all)| all.join(" "));
        assert_eq!(list("claude:2,codex:1").unwrap(), "claude claude codex");
        assert_eq!(list("claude, codex").unwrap(), "claude codex");
        assert_eq!(list("./my:agent:2").unwrap(), "./my:agent ./my:agent");
        assert_eq!(list("./my:agent").unwrap(), "./my:agent");
        for bad in
            ["", ":2", "claude:", "claude:0", "claude:100", "claude:99,codex", "claude,,codex", "claude:-1,"]
        {
            assert!(agents(bad).is_err(), "{bad}");
        }
    }
}
