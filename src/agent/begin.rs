//! Owns how a supervisor begins: the lock that it is handed, its answer to whoever started it, and the note that its agent runs.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use super::Error;
use crate::explain::with_causes;
use crate::lane::{Inbox, Project};
use crate::store::records::{self, AnyLane, LaneState, RunRecord};
use crate::store::{Guard, LockName, Record};
use crate::{event, fault, process};

/// Writes that the agent runs, as which process.
pub(super) fn note_start(
    project: &Project,
    lane: &AnyLane,
    attempt: u32,
    group: u32,
    mark: &str,
) -> Result<AnyLane, Error> {
    fault::point("run.begun");
    let path = project.store.layout().run_record(&lane.name, attempt);
    let mut run = RunRecord::load(&path)?;
    // It has them now. Before its process: killed in between, nothing is told twice.
    Inbox::of(project, &lane.name).told(&run.tells)?;
    run.pid = Some(group);
    run.birth = process::birth_of(group);
    run.mark = Some(mark.to_owned());
    let me = std::process::id();
    run.supervisor = Some(records::Supervisor { pid: me, birth: process::birth_of(me) });
    run.save(&path)?;
    let lane = project.update_lane(&lane.name, |record| {
        record.state = LaneState::Running;
    })?;
    let told = format!("lane '{}': {} started", lane.name, run.agent);
    project.tell(event::Name::RunStarted, Some(&lane), told);
    Ok(lane)
}

/// Takes a lock over from standard input, which becomes empty: no agent must inherit it.
pub(crate) fn adopt_lock(project: &Project, name: &LockName) -> Result<Guard, Error> {
    let failed = |source| process::Error::Start { program: "the supervisor".into(), source };
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let null = File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&null).map_err(|e| failed(e.into()))?;
    Ok(project.store.locks().adopt(name, File::from(stdin)))
}

/// Answers the starter, if it listens still, that its agent does not run, and why.
pub(crate) fn answer_not_begun(why: &dyn std::error::Error) {
    say(&with_causes(why));
}

/// Answers the starter that all is well.
pub(crate) fn answer_begun() {
    say(super::launch::STARTED);
}

/// Answers the starter and lets go of the pipe, so that it does not wait for the agent's end.
pub(super) fn say(line: &str) {
    let line = line.replace('\n', " ");
    let mut out = std::io::stdout();
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _stays_open = rustix::stdio::dup2_stdout(&null);
    }
}
