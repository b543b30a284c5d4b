//! Stop gate of an agent: runs a lane's checks at the end of a turn, and refuses that end while a check
//! fails.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use proq_base::config::settings::Settings;
use proq_base::process;
use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::limited_process::{ExitOutcome, LimitedProcess};
use proq_base::process::strays::RUN_CONTEXT_VARS;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::ports::Ports;
use proq_store::records::run::RunRecord;

use crate::agent::Error;
use crate::event::approval::Approvals;
use crate::lane;
use crate::lane::Project;

/// Time limit of an agent hook that only records something.
const RECORDING_HOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// First words of every refusal that is sent back to the agent.
pub(crate) const REFUSAL_PREFIX: &str = "The lane cannot land yet";
/// Maximum number of bytes of a failed command's output that the agent receives, counted from the end.
const MAX_LOG_TAIL_BYTES: u64 = 6_000;

/// Returns the checks that a landing of the lane runs: the approved commands of the settings, and those of
/// the lane's task. Empty for a read-only lane, which lands nothing.
pub fn lane_checks(project: &Project, lane: &AnyLane) -> Result<Vec<String>, Error> {
    if lane.is_read_only() { Ok(Vec::new()) } else { merge_checks(project, &lane.base, &lane.checks) }
}

/// Returns the checks that a landing on `base` runs for a lane whose task has `task_checks`.
pub fn merge_checks(project: &Project, base: &str, task_checks: &[String]) -> Result<Vec<String>, Error> {
    let approvals = Approvals::load(&project.repo, &project.store)?;
    let checks = project.landing_checks(base)?;
    let configured = approvals.commands_for_verify(&checks.layers, &checks.commands);
    let mut out: Vec<String> = configured.into_iter().filter(|c| c.approved).map(|c| c.line).collect();
    out.extend(task_checks.iter().filter(|line| !out.contains(line)).cloned().collect::<Vec<_>>());
    Ok(out)
}

/// Returns the time limit of the hook that runs at the end of a turn. With `agent.gate` it includes the time
/// limit of each check.
pub(crate) fn stop_hook_timeout(settings: &Settings, checks: &[String]) -> Duration {
    if !settings.stop_gate {
        return RECORDING_HOOK_TIMEOUT;
    }
    let count = u32::try_from(checks.len()).unwrap_or(u32::MAX);
    RECORDING_HOOK_TIMEOUT + (settings.verify_timeout + settings.stop_grace).saturating_mul(count)
}

/// Runs the lane's checks one after another in the folder that the agent works in. Returns a message for the
/// agent about the first check that fails, or `None`. Checks nothing in a run that resolves a conflict, since
/// the process that started that run verifies its result.
pub(crate) fn run_stop_gate_checks(
    project: &Project,
    lane: &AnyLane,
    run_number: RunNumber,
) -> Result<Option<String>, Error> {
    let layout = project.store.layout();
    if RunRecord::load(&layout.run_record(&lane.name, run_number))?.resolves_conflict {
        return Ok(None);
    }
    let log = layout.stop_gate_log(&lane.name, run_number);
    for check in lane_checks(project, lane)? {
        let ended = run_check(project, lane, &check, &log)?;
        if !ended.is_success() {
            let output = read_log_tail(&log)?;
            let output_text = match output.trim_end() {
                "" => "The command printed no output.".to_owned(),
                text => format!("The end of its output:\n\n{text}"),
            };
            return Ok(Some(format!(
                "{REFUSAL_PREFIX}: `{check}` fails ({ended}). Fix the cause, commit the fix, and finish then. {output_text}"
            )));
        }
    }
    Ok(None)
}

fn run_check(project: &Project, lane: &AnyLane, check: &str, log: &Path) -> Result<ExitOutcome, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| process::Error::NotStarted { program: check.to_owned(), source })?;
    let mut watched = start_check(project, lane, check, log)?;
    Ok(runtime.block_on(watched.wait_for_exit())?)
}

/// Starts a check in the folder that the agent works in, with the time limit `verify.timeout`. The check's
/// output is written to `log`.
pub(crate) fn start_check<P>(
    project: &Project,
    lane: &LaneRecord<P>,
    check: &str,
    log: &Path,
) -> Result<LimitedProcess, Error> {
    let stdout_log = File::create(log).map_err(lane::Error::io("write", log))?;
    let stderr_log = stdout_log.try_clone().map_err(lane::Error::io("write", log))?;
    let mut start = CommandBuilder::new(Path::new("sh"), &lane.path)
        .args(["-c", check])
        .without_vars(RUN_CONTEXT_VARS)
        .env("PROQ_VERIFY", "1")
        .env("PROQ_LANES", lane.name.as_str())
        .env("PROQ_BASE", &lane.base)
        .with_output_files(stdout_log, stderr_log);
    // The file exists since the start of the run.
    let env_file = project.store.layout().lane_env_file(&lane.name);
    if env_file.exists() {
        start = start.env("PROQ_ENV_FILE", env_file);
    }
    for (name, value) in lane.ports.into_iter().flat_map(Ports::variables) {
        start = start.env(name, value);
    }
    let settings = &project.settings;
    Ok(start.spawn_limited(settings.verify_timeout, settings.stop_grace)?)
}

/// Returns the last [`MAX_LOG_TAIL_BYTES`] of a command's log.
fn read_log_tail(log: &Path) -> Result<String, Error> {
    let read_error = || lane::Error::io("read", log);
    let mut file = proq_base::regular_file::open_store_file(log).map_err(read_error())?;
    let length = file.metadata().map_err(read_error())?.len();
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_LOG_TAIL_BYTES)))
        .and_then(|_| file.read_to_end(&mut bytes))
        .map_err(read_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
