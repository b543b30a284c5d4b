//! Resolution of conflicts by an agent: each attempt is a new run, whose prompt lists the reasons why earlier
//! attempts were refused.

use std::time::Duration;

use proq_base::lane_name::LaneName;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::LockGuard;
use proq_store::records::conflict::ResolutionRecord;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::RunState;
use proq_store::records::run::RunRecord;

use super::resolution_check::{ConflictKind, ReferenceMerge, conflict_kind};
use super::resolve::{
    ResolutionStart, ResolvedConflict, apply_resolution, check_resolution, close_resolution, open_resolution,
    require_open_resolution,
};
use super::resolve_prompt;
use crate::agent::command::agent_command::AgentCommand;
use crate::agent::control::stop;
use crate::agent::hook_events::stop_gate;
use crate::agent::launch::start_supervisor;
use crate::event::approval::Approvals;
use crate::lane::Project;
use crate::lane::state::crash_reason;
use crate::lane::state::lane_state::effective_state;
use crate::merge::Error;
use crate::merge::types::resolve_error::{Refusal, ResolveError};
use crate::merge::types::resolver::Resolver;

/// Interval at which the run's state and interrupts are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// Outcome of one attempt of an agent to resolve a conflict.
enum AttemptOutcome {
    /// The conflict is resolved.
    Resolved(ResolvedConflict),
    /// The resolution was refused, with the reasons as one text.
    Refused(String),
}

/// Runs an agent to resolve the conflict of a lane, in as many attempts as allowed.
///
/// # Errors
/// [`ResolveError::AttemptsExhausted`] after the last attempt, whose worktree stays open; the earlier
/// attempts are saved.
pub fn resolve_by_agent(
    project: &Project,
    name: &LaneName,
    resolver: &Resolver,
) -> Result<ResolvedConflict, Error> {
    start_supervisor::require_installed(&project.layers, &resolver.agent, &resolver.current_dir)?;
    let mut refusals: Vec<String> = Vec::new();
    loop {
        let (lane, lock) = project.lock_idle_lane(name)?;
        let resolution =
            match open_resolution(project, &lane, &lock, Some(&resolver.agent), refusals.clone())? {
                ResolutionStart::Open(open) => open,
                ResolutionStart::Resolved(resolved) => return Ok(resolved),
            };
        let dir = resolution.worktree_path.clone();
        let reason = match run_attempt(project, &lane, lock, &resolution, resolver)? {
            AttemptOutcome::Resolved(resolved) => return Ok(resolved),
            AttemptOutcome::Refused(why) => why,
        };
        project.update_lane(&lane.name, |record| {
            record.detail = Some(format!("{}'s resolution was refused: {reason}", resolver.agent));
        })?;
        refusals.push(reason.clone());
        let attempts = u32::try_from(refusals.len()).unwrap_or(u32::MAX);
        if attempts > resolver.retries {
            let (lane, agent) = (lane.name, resolver.agent.clone());
            return Err(ResolveError::AttemptsExhausted { lane, agent, tries: attempts, reason, dir }.into());
        }
        project.listener.step_done(format!("refused: {reason}"));
    }
}

/// Resolves the conflict of a lane by an agent when another process may have started that agent and was then
/// killed. The result of that run is checked first.
///
/// # Errors
/// Fails as [`resolve_by_agent`] does.
pub(crate) fn resume_by_agent(
    project: &Project,
    name: &LaneName,
    resolver: &Resolver,
) -> Result<ResolvedConflict, Error> {
    let lane = project.lane(name)?;
    let is_open = project.find_resolution(&lane.name)?.is_some_and(|open| open.agent.is_some());
    let run = RunRecord::load_if_exists(&project.store.layout().run_record(&lane.name, lane.last_run))?;
    if is_open && run.is_some_and(|run| run.resolves_conflict) {
        wait_for_run(project, &lane.name)?;
        if let AttemptOutcome::Resolved(resolved) =
            conclude_attempt(project, &lane.name, lane.last_run, resolver)?
        {
            return Ok(resolved);
        }
    }
    resolve_by_agent(project, name, resolver)
}

/// Runs the agent once on an open resolution, waits for it, and applies the result if it is accepted.
fn run_attempt(
    project: &Project,
    lane: &LaneRecord,
    lock: LockGuard,
    resolution: &ResolutionRecord,
    resolver: &Resolver,
) -> Result<AttemptOutcome, Error> {
    let prepared = prepare_agent(project, lane, resolution, resolver);
    let (agent_command, prompt) = match prepared {
        Ok(begun) => begun,
        Err(e) => {
            drop(close_resolution(project, lane, resolution)?);
            return Err(e);
        }
    };
    if let Some(warning) = agent_command.unrestricted_warning() {
        project.listener.warn(warning);
    }
    let lane = start_supervisor::launch_to_resolve(
        project,
        &lane.clone().into_any(),
        lock,
        &agent_command,
        &prompt,
    )?;
    let file_count = if resolution.paths.len() == 1 {
        "1 file".to_owned()
    } else {
        format!("{} files", resolution.paths.len())
    };
    project.listener.step_done(format!(
        "{} resolves the conflict of {} with {} in {file_count}; follow it: git proq logs -f {}",
        resolver.agent, lane.name, resolution.onto, lane.name
    ));
    wait_for_run(project, &lane.name)?;
    conclude_attempt(project, &lane.name, lane.last_run, resolver)
}

/// Checks the result of an agent's run, and applies it if it is accepted.
fn conclude_attempt(
    project: &Project,
    lane: &LaneName,
    run_number: RunNumber,
    resolver: &Resolver,
) -> Result<AttemptOutcome, Error> {
    let run = RunRecord::load(&project.store.layout().run_record(lane, run_number))?;
    let (lane, _lock) = project.lock_idle_lane(lane)?;
    // Another process may have closed the resolution concurrently.
    let resolution = require_open_resolution(project, &lane.name)?;
    match run.outcome {
        Some(RunState::Done) => {}
        Some(RunState::Stopped) => return Err(ResolveError::Stopped { lane: lane.name }.into()),
        _ => return Ok(AttemptOutcome::Refused(failure_reason(project, &lane.name, &run))),
    }
    let (tree, refusals) = check_resolution(project, &resolution, &resolver.allowance, true)?;
    if refusals.is_empty() {
        return apply_resolution(project, &resolution, tree, &resolver.agent).map(AttemptOutcome::Resolved);
    }
    Ok(AttemptOutcome::Refused(Refusal::reasons(&refusals).join("; ")))
}

/// Returns why a run failed, as a clause.
fn failure_reason(project: &Project, name: &LaneName, run: &RunRecord) -> String {
    match (run.exit_code, run.signal) {
        (Some(code), _) => format!("it failed with exit code {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => crash_reason::describe_crash(project, name),
    }
}

/// Returns the agent's command and its prompt, if an agent may decide this conflict.
fn prepare_agent(
    project: &Project,
    lane: &LaneRecord,
    resolution: &ResolutionRecord,
    resolver: &Resolver,
) -> Result<(AgentCommand, String), Error> {
    let repo = &project.repo;
    let scratch = project.store.layout().create_scratch()?;
    let reference = ReferenceMerge::compute(repo, resolution, scratch.path())?;
    let mut reasons = Vec::new();
    for path in resolution.paths.iter().filter(|p| !resolver.allowance.covers(&p.path)) {
        let text = reference.conflicted_text(repo, &path.path)?;
        let has_regions = text.as_deref().is_some_and(|text| reference.parse_regions(text).is_some());
        if let ConflictKind::NotText(description) = conflict_kind(path, has_regions) {
            reasons.push(format!("{0} {description} (--allow {0} lets the agent decide)", path.path));
        }
    }
    if !reasons.is_empty() {
        return Err(ResolveError::NeedsUser { lane: lane.name.clone(), why: reasons }.into());
    }
    let task = proq_base::regular_file::read_store_text(project.store.layout().task_prompt(&lane.name))
        .unwrap_or_default();
    let checks = stop_gate::lane_checks(project, &lane.clone().into_any())?;
    let prompt =
        resolve_prompt::build_prompt(repo, resolution, &reference, &task, &checks, &resolver.allowance)?;
    Ok((
        AgentCommand::from_profile(
            project,
            &resolver.agent,
            &prompt,
            &resolver.current_dir,
            &resolver.run_options,
        )?,
        prompt,
    ))
}

/// Waits until a run has finished. Ctrl-C stops the run first.
fn wait_for_run(project: &Project, lane: &LaneName) -> Result<(), Error> {
    while effective_state(project, &project.lane(lane)?)?.0.is_busy() {
        if let Err(interrupted) = proq_base::interrupt::require_no_signal() {
            drop(stop::stop(project, lane)?);
            return Err(interrupted.into());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Checks that the conflict agent of the settings may run: one that the repository names must be approved.
///
/// # Errors
/// [`Error::UnapprovedAgent`] if it is not approved.
pub fn require_agent_approved(project: &Project, agent: &str) -> Result<(), Error> {
    let approvals = Approvals::load(&project.repo, &project.store)?;
    let command = approvals.conflict_agent_command(&project.layers, agent);
    match command.source_file {
        Some(path) if !command.approved => Err(Error::UnapprovedAgent { path, agent: command.line }),
        _ => Ok(()),
    }
}
