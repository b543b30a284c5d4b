//! Owns starting a supervisor for a lane.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::Error;
use super::job::Job;
use super::profile::{Places, Profile};
use crate::event;
use crate::lane::{Project, state_after};
use crate::process::Start;
use crate::store::records::{LaneRecord, LaneState, RunRecord};
use crate::store::{Guard, Record, now, write_atomically};

/// What a supervisor says when its agent runs.
pub(super) const STARTED: &str = "started";

/// Starts the next run of a lane under a supervisor, `exe` being this program, and returns when the agent runs. `lock`
/// is the lane's run lock; it goes to the supervisor, without a gap.
///
/// # Errors
/// [`Error::NotStarted`] when the agent could not be started; the lane is `failed` then.
pub(crate) fn launch(
    project: &Project,
    lane: &LaneRecord,
    lock: Guard,
    job: &Job,
    exe: &Path,
) -> Result<LaneRecord, Error> {
    start(project, lane, lock, job, exe, &Errand::Task)
}

/// The same for a run that resolves the lane's conflict where it is laid out, told `prompt` instead of the lane's task.
///
/// # Errors
/// [`Error::NotStarted`] when the agent could not be started; the lane is in `conflict` as before then.
pub(crate) fn launch_to_resolve(
    project: &Project,
    lane: &LaneRecord,
    lock: Guard,
    job: &Job,
    exe: &Path,
    prompt: &str,
) -> Result<LaneRecord, Error> {
    start(project, lane, lock, job, exe, &Errand::Conflict(prompt))
}

/// What a run is for.
enum Errand<'a> {
    /// The lane's task, in its worktree.
    Task,
    /// Its conflict, with this prompt.
    Conflict(&'a str),
}

fn start(
    project: &Project,
    lane: &LaneRecord,
    lock: Guard,
    job: &Job,
    exe: &Path,
    errand: &Errand<'_>,
) -> Result<LaneRecord, Error> {
    let layout = project.store.layout();
    let attempt = lane.attempt + 1;
    let resolves = matches!(errand, Errand::Conflict(_));
    if let Errand::Conflict(prompt) = errand {
        write_atomically(&layout.run_prompt(&lane.name, attempt), prompt.as_bytes())?;
    }
    let (dir, task) = desk(project, lane, attempt, resolves);
    let prompt = std::fs::read_to_string(&task).unwrap_or_default();
    let words = job.words(&Places {
        prompt: &prompt,
        prompt_file: &task,
        common_dir: project.repo.common_dir(),
        git_dir: &project.repo.git_dir_of(&dir)?,
    });
    let run = record_of(project, lane, job, &words, (attempt, resolves))?;
    run.save(&layout.run_record(&lane.name, attempt))?;
    let lane = project.update_lane(&lane.name, |record| {
        record.state = LaneState::Starting;
        record.attempt = attempt;
        if resolves {
            record.detail = Some("resolving its conflict".to_owned());
        } else {
            record.detail = None;
            record.agent = Some(job.agent.clone());
        }
    })?;
    let mut start = Start::new(exe, project.repo.home())
        .args(["_supervise", "--lane"])
        .args([lane.name.clone(), "--attempt".to_owned(), attempt.to_string(), "--".to_owned()])
        .args(words)
        .env("PROQ_LANE", &lane.name)
        .env("PROQ_TASK_FILE", &task)
        .stdin(lock.into_file());
    for (key, value) in &job.env {
        start = start.env(key, value);
    }
    hear(project, &lane, start)?;
    Ok(project.lane(&lane.name)?)
}

/// The record of a run that is about to start.
fn record_of(
    project: &Project,
    lane: &LaneRecord,
    job: &Job,
    words: &[OsString],
    (attempt, resolves): (u32, bool),
) -> Result<RunRecord, Error> {
    Ok(RunRecord {
        attempt,
        agent: job.agent.clone(),
        command: words.iter().map(|w| w.to_string_lossy().chars().take(400).collect()).collect(),
        prompt_on_stdin: job.prompt_on_stdin,
        resolves,
        tip_before: project.repo.require_commit(&format!("refs/heads/{}", lane.branch))?,
        started: now(),
        pid: None,
        birth: None,
        ended: None,
        outcome: None,
        exit_code: None,
        signal: None,
        tip_after: None,
    })
}

/// Where a run works, and the file that tells it what to do.
pub(super) fn desk(project: &Project, lane: &LaneRecord, attempt: u32, resolves: bool) -> (PathBuf, PathBuf) {
    let layout = project.store.layout();
    match resolves {
        true => (project.resolve_dir(&lane.name), layout.run_prompt(&lane.name, attempt)),
        false => (lane.path.clone(), layout.task(&lane.name)),
    }
}

/// Starts the supervisor and listens for its first line.
fn hear(project: &Project, lane: &LaneRecord, start: Start) -> Result<(), Error> {
    let mut line = String::new();
    let heard = start.spawn_talking().map(|mut child| {
        if let Some(stdout) = child.stdout.take() {
            drop(BufReader::new(stdout).read_line(&mut line));
        }
    });
    let why = match (heard, line.trim()) {
        (Ok(()), STARTED) => return Ok(()),
        (Ok(()), "") => "its supervisor ended early".to_owned(),
        (Ok(()), said) => said.to_owned(),
        (Err(e), _) => e.to_string(),
    };
    let state = state_after(project, &lane.name, LaneState::Failed);
    let failed = project.update_lane(&lane.name, |record| {
        record.state = state;
        record.detail = Some(why.clone());
    })?;
    project.tell(event::Name::RunEnded, Some(&failed), format!("lane '{}': {why}", lane.name));
    Err(match state {
        LaneState::Conflict => Error::NotStartedThere { lane: lane.name.clone(), why },
        _ => Error::NotStarted { lane: lane.name.clone(), why },
    })
}

/// Refuses an agent that is not installed, before anything is begun for it.
pub(crate) fn require(agent: &str, dir: &Path) -> Result<(), Error> {
    Profile::of(agent).find(dir).map(drop)
}
