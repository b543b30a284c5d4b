//! Start of a supervisor: it takes over the lock from its starter, replies to the starter, and records that
//! its agent runs.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use proq_base::explain::describe_with_causes;
use proq_base::process::identity;
use proq_base::{fail_points, process};
use proq_store::Store;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::RunState;
use proq_store::records::run;
use proq_store::records::run::RunRecord;

use crate::agent::Error;
use crate::event::log;
use crate::lane::Project;
use crate::lane::messages::inbox::Inbox;

/// Records that the agent runs: its process group and process mark, the supervisor's process, the delivered
/// messages, and the lane's state.
pub(crate) fn record_start(
    project: &Project,
    lane: &AnyLane,
    run_number: RunNumber,
    process_group: u32,
    process_mark: &str,
) -> Result<AnyLane, Error> {
    fail_points::hit("run.begun");
    let path = project.store.layout().run_record(&lane.name, run_number);
    let mut run = RunRecord::load(&path)?;
    // The agent has its messages now. They are marked before its process is recorded: if git-proq is killed
    // in between, no message is sent twice.
    Inbox::new(&project.store, &lane.name).mark_delivered(&run.prompt_message_ids)?;
    run.pid = Some(process_group);
    run.start_time = identity::start_time_of(process_group);
    run.process_mark = Some(process_mark.to_owned());
    let supervisor_pid = std::process::id();
    run.supervisor = Some(run::SupervisorProcess {
        pid: supervisor_pid,
        start_time: identity::start_time_of(supervisor_pid),
    });
    run.save(&path)?;
    let lane = project.update_lane(&lane.name, |record| {
        record.status.run = RunState::Running;
    })?;
    let message = format!("lane '{}': {} started", lane.name, run.agent);
    project.emit(log::EventName::RunStarted, Some(&lane), message);
    Ok(lane)
}

/// Takes over the lock whose file is this process's standard input. Replaces standard input by /dev/null, so
/// that no agent inherits the lock.
pub fn adopt_lock_from_stdin(store: &Store, name: &LockName) -> Result<LockGuard, Error> {
    let start_error = |source| process::Error::NotStarted { program: "the supervisor".into(), source };
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().map_err(start_error)?;
    let null = File::open("/dev/null").map_err(start_error)?;
    rustix::stdio::dup2_stdin(&null).map_err(|e| start_error(e.into()))?;
    Ok(store.locks().adopt(name, File::from(stdin)))
}

/// Reports to the starter, if it still reads, why the agent did not start.
pub fn report_start_failure(error: &dyn std::error::Error) {
    reply_to_starter(&describe_with_causes(error));
}

/// Reports to the starter that the agent has started.
pub fn report_started() {
    reply_to_starter(crate::agent::launch::start_supervisor::STARTED_LINE);
}

/// Writes a line to the starter and closes the pipe, so that the starter does not wait until the agent has
/// exited.
pub(crate) fn reply_to_starter(line: &str) {
    let line = line.replace('\n', " ");
    let mut out = std::io::stdout();
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _stays_open = rustix::stdio::dup2_stdout(&null);
    }
}
