//! Owns the commands that a lane's work has to stand, and refusing the end of a turn while they fail.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use super::Error;
use crate::event::Approvals;
use crate::lane::{self, Project};
use crate::process::{self, Ended, OF_A_RUN, Start, Watched};
use crate::store::Record;
use crate::store::records::{AnyLane, LaneRecord, Ports, RunRecord};

/// How long a hook of an agent's may take that only notes something.
const QUICK: Duration = Duration::from_secs(10);
/// How what an agent is told begins that is sent back.
pub(super) const REFUSAL: &str = "The lane cannot land yet";
/// How much of what a failed command wrote an agent is told: its end.
const SHOWN: u64 = 6_000;

/// The commands that a landing of the lane will ask: those of the settings, as far as they may run, and those of its task. None
/// when there is nothing to land.
pub(crate) fn checks_of(project: &Project, lane: &AnyLane) -> Result<Vec<String>, Error> {
    if lane.only_looks() { Ok(Vec::new()) } else { checks_with(project, &lane.base, &lane.checks) }
}

/// The commands that a landing on `base` will ask of a lane whose task has these of its own.
pub(crate) fn checks_with(project: &Project, base: &str, own: &[String]) -> Result<Vec<String>, Error> {
    let approvals = Approvals::read(&project.repo, &project.store)?;
    let checks = project.checks_on(base)?;
    let by_settings = approvals.of_settings(&checks.layers, &checks.commands);
    let mut out: Vec<String> = by_settings.into_iter().filter(|c| c.approved).map(|c| c.line).collect();
    out.extend(own.iter().filter(|line| !out.contains(line)).cloned().collect::<Vec<_>>());
    Ok(out)
}

/// How long the hook at a turn's end may take: with `agent.gate` it runs the checks.
pub(super) fn hook_limit(project: &Project, checks: &[String]) -> Duration {
    let settings = &project.settings;
    if !settings.gate {
        return QUICK;
    }
    let count = u32::try_from(checks.len()).unwrap_or(u32::MAX);
    QUICK + (settings.verify_timeout + settings.stop_grace).saturating_mul(count)
}

/// Runs the lane's checks where the agent works, one after the other. Returns what the agent is told when one fails. A run
/// that resolves a conflict is judged by who sent it.
pub(super) fn refuse_end(project: &Project, lane: &AnyLane, attempt: u32) -> Result<Option<String>, Error> {
    let layout = project.store.layout();
    if RunRecord::load(&layout.run_record(&lane.name, attempt))?.resolves {
        return Ok(None);
    }
    let log = layout.gate_log(&lane.name, attempt);
    for check in checks_of(project, lane)? {
        let ended = run(project, lane, &check, &log)?;
        if !ended.is_success() {
            let said = end_of(&log)?;
            let said = match said.trim_end() {
                "" => "It wrote nothing.".to_owned(),
                text => format!("What it wrote ended with:\n\n{text}"),
            };
            return Ok(Some(format!(
                "{REFUSAL}: `{check}` fails ({ended}). Make it succeed, commit that, and end then. {said}"
            )));
        }
    }
    Ok(None)
}

fn run(project: &Project, lane: &AnyLane, check: &str, log: &Path) -> Result<Ended, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| process::Error::Start { program: check.to_owned(), source })?;
    let mut watched = begin(project, lane, check, log)?;
    Ok(runtime.block_on(watched.ended())?)
}

/// Starts a check where the agent works, for as long as `verify.timeout` allows. What it writes goes to `log`.
pub(super) fn begin<P>(
    project: &Project,
    lane: &LaneRecord<P>,
    check: &str,
    log: &Path,
) -> Result<Watched, Error> {
    let out = File::create(log).map_err(lane::Error::io("write", log))?;
    let second = out.try_clone().map_err(lane::Error::io("write", log))?;
    let mut start = Start::new(Path::new("sh"), &lane.path)
        .args(["-c", check])
        .without(OF_A_RUN)
        .env("PROQ_VERIFY", "1")
        .env("PROQ_LANES", &lane.name)
        .env("PROQ_BASE", &lane.base)
        .output(out, second);
    // It is there since the run began.
    let names = project.store.layout().lane_env(&lane.name);
    if names.exists() {
        start = start.env("PROQ_ENV_FILE", names);
    }
    for (name, value) in lane.port.into_iter().flat_map(Ports::variables) {
        start = start.env(name, value);
    }
    let settings = &project.settings;
    Ok(start.spawn_limited(settings.verify_timeout, settings.stop_grace)?)
}

/// The end of what a command wrote.
fn end_of(log: &Path) -> Result<String, Error> {
    let failed = || lane::Error::io("read", log);
    let mut file = crate::regular_file::open_record(log).map_err(failed())?;
    let length = file.metadata().map_err(failed())?.len();
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(SHOWN)))
        .and_then(|_| file.read_to_end(&mut bytes))
        .map_err(failed())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
