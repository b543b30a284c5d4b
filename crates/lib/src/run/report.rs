//! Report of a lane's agent: detection of the lane that reports, size limits, and storage.

use std::path::Path;

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;
use proq_store::base::atomic::write_in_existing_dir;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::locks::lock::LockName;
use proq_store::records::agent::ReportRecord;
use proq_store::records::lane::AnyLane;
use serde::{Deserialize, Serialize};

use crate::event::log;
use crate::lane::state::lane_state::effective_state;
use crate::lane::{Error, Project};

/// Maximum length of one text of a report, in bytes. A longer text belongs in a file of the lane.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Maximum length of all texts of a report together, in bytes.
const MAX_REPORT_BYTES: usize = 256 * 1024;

/// Maximum number of findings, and maximum number of human steps.
const MAX_ITEMS_PER_LIST: usize = 100;

/// Report that an agent submits. It replaces the previous report of the lane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentReport {
    /// Progress of the agent with its task.
    #[serde(default)]
    pub status: Option<String>,
    /// Findings of the agent.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Steps that only a human can do.
    #[serde(default)]
    pub human_steps: Vec<String>,
}

/// Reason why a text is not a report.
#[derive(Debug, thiserror::Error, Explain)]
#[error("cannot read the report: {reason}; the earlier report is kept")]
#[hint("write {{\"status\": \"…\", \"findings\": [\"…\"], \"human_steps\": [\"…\"]}}, or plain text")]
pub struct MalformedReport {
    reason: String,
}

impl AgentReport {
    /// Reads a report from a text: JSON if it starts with `{`, otherwise all of it as one finding.
    ///
    /// # Errors
    /// Fails when the JSON is not that of a report.
    pub fn from_text(text: String) -> Result<AgentReport, MalformedReport> {
        if !text.trim_start().starts_with('{') {
            return Ok(AgentReport { findings: vec![text], ..AgentReport::default() });
        }
        serde_json::from_str(&text).map_err(|e| MalformedReport { reason: e.to_string() })
    }
}

/// Report on a lane that was saved or would be. It serializes to the JSON output.
#[derive(Debug, Serialize)]
pub struct ReportOutcome {
    /// Name of the lane.
    pub lane: LaneName,
    /// The report as it is saved.
    pub report: ReportRecord,
    /// Whether nothing was saved.
    pub dry_run: bool,
}

/// Lane that the current process works in.
#[derive(Debug, Clone)]
pub struct CurrentLane {
    /// Record of the lane.
    pub lane: AnyLane,
    /// Whether the process works in the worktree where the lane's conflict is resolved.
    pub is_in_resolve_worktree: bool,
}

/// Finds the lane that the current process works in, by the worktree of its working directory. `claimed` is
/// the lane that the environment of the process names. It must be the same lane: an agent that changed into
/// another lane's worktree may report for neither.
///
/// # Errors
/// [`Error::NoLaneHere`] outside of any lane, [`Error::LaneMismatch`] if the two lanes differ.
pub fn find_current_lane(project: &Project, claimed: Option<&str>) -> Result<CurrentLane, Error> {
    let worktree = project.repo.current_worktree();
    let detected = worktree.map(|dir| find_lane_at(project, dir, claimed)).transpose()?.flatten();
    match (detected, claimed) {
        (Some(current), Some(claimed)) if current.lane.name != claimed => {
            Err(Error::LaneMismatch { actual_lane: current.lane.name, claimed_lane: sanitize_name(claimed) })
        }
        (Some(current), _) => Ok(current),
        (None, claimed) => Err(Error::NoLaneHere {
            dir: worktree.unwrap_or(project.repo.command_dir()).to_owned(),
            claimed_lane: claimed.map(sanitize_name),
        }),
    }
}

fn sanitize_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// Finds the lane that works in `worktree`: by its worktree or resolve worktree, else the busy guest lane
/// `claimed`. None when there is none.
fn find_lane_at(
    project: &Project,
    worktree: &Path,
    claimed: Option<&str>,
) -> Result<Option<CurrentLane>, Error> {
    let is_here = |dir: &Path| dir == worktree || dir.canonicalize().is_ok_and(|dir| dir == worktree);
    for lane in project.owned_lanes()? {
        if is_here(&lane.path) {
            return Ok(Some(CurrentLane { lane: lane.into_any(), is_in_resolve_worktree: false }));
        }
        if is_here(&project.resolution_dir(&lane.name)) {
            return Ok(Some(CurrentLane { lane: lane.into_any(), is_in_resolve_worktree: true }));
        }
    }
    // A read-only agent has no worktree, and there may be many in one. Only its environment identifies it,
    // while its run lasts.
    let reader = claimed.and_then(|name| project.lane_with_exact_name(name).ok().flatten());
    let reader = reader.filter(|lane| lane.purpose().is_some() && is_here(&lane.path));
    Ok(match reader {
        Some(lane) if effective_state(project, &lane)?.0.is_busy() => {
            Some(CurrentLane { lane, is_in_resolve_worktree: false })
        }
        _ => None,
    })
}

/// Loads the last report of a lane's agent; none if there was none.
///
/// # Errors
/// Fails when the record cannot be read.
pub fn load_report(project: &Project, lane: &LaneName) -> Result<Option<ReportRecord>, Error> {
    Ok(ReportRecord::load_if_exists(&project.store.layout().lane_report(lane))?)
}

/// Saves the report of a lane's agent, and replaces the previous report.
///
/// # Errors
/// [`Error::InvalidReport`] if the report is empty or too long, [`Error::UnknownLane`] if the lane was removed
/// concurrently. The previous report is retained in both cases.
pub fn save_report(
    project: &Project,
    lane: &LaneName,
    submitted: AgentReport,
) -> Result<ReportRecord, Error> {
    let validated = validate(submitted, RunNumber::NONE)?;
    // A concurrent removal moves the lane's folder; saving the report must not create it again.
    let lock = project.store.locks().acquire(&LockName::Store)?;
    let lane = project.any_lane(lane)?;
    let report = ReportRecord { run: lane.last_run, at: now(), ..validated };
    let path = project.store.layout().lane_report(&lane.name);
    // A report of a newer version of git-proq is an error here, so it is not overwritten.
    ReportRecord::load_if_exists(&path)?;
    write_in_existing_dir(&path, report.to_toml(&path)?.as_bytes())?;
    drop(lock);
    project.emit(log::EventName::TaskUpdated, Some(&lane), summarize(&lane.name, &report));
    Ok(report)
}

/// Checks the limits of a report on a run, and returns it as it would be saved now: without its blank texts.
///
/// # Errors
/// [`Error::InvalidReport`] if the report is empty or too long.
pub fn validate(report: AgentReport, run: RunNumber) -> Result<ReportRecord, Error> {
    let refused = |reason: &str| Err(Error::InvalidReport { reason: reason.to_owned() });
    let is_not_blank = |text: &String| !text.trim().is_empty();
    let report = ReportRecord {
        run,
        at: now(),
        status: report.status.filter(is_not_blank),
        findings: report.findings.into_iter().filter(is_not_blank).collect(),
        human_steps: report.human_steps.into_iter().filter(is_not_blank).collect(),
    };
    let texts = || report.status.iter().chain(&report.findings).chain(&report.human_steps);
    if texts().next().is_none() {
        return refused("is empty");
    }
    if report.findings.len() > MAX_ITEMS_PER_LIST || report.human_steps.len() > MAX_ITEMS_PER_LIST {
        return refused("has more than 100 findings or steps");
    }
    if texts().any(|text| text.len() > MAX_TEXT_BYTES) {
        return refused("has a text of more than 64 KiB");
    }
    if texts().map(String::len).sum::<usize>() > MAX_REPORT_BYTES {
        return refused("is longer than 256 KiB");
    }
    Ok(report)
}

fn summarize(lane: &LaneName, report: &ReportRecord) -> String {
    let count =
        |n: usize, noun: &str| (n > 0).then(|| format!("{n} {noun}{}", if n == 1 { "" } else { "s" }));
    let steps = count(report.human_steps.len(), "step").map(|steps| format!("{steps} for a person"));
    let parts: Vec<String> = count(report.findings.len(), "finding").into_iter().chain(steps).collect();
    match parts.is_empty() {
        true => format!("lane '{lane}' reported where it is"),
        false => format!("lane '{lane}' reported {}", parts.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validate_findings(findings: Vec<String>) -> Result<ReportRecord, Error> {
        validate(AgentReport { findings, ..AgentReport::default() }, RunNumber::NONE)
    }

    #[test]
    fn refuses_empty_or_oversized_reports() {
        assert!(validate(AgentReport::default(), RunNumber::NONE).is_err());
        assert!(validate_findings(vec![" \n".to_owned()]).is_err());
        assert!(validate_findings(vec!["x".repeat(MAX_TEXT_BYTES)]).is_ok());
        assert!(validate_findings(vec!["x".repeat(MAX_TEXT_BYTES + 1)]).is_err());
        assert!(validate_findings(vec!["x".repeat(MAX_TEXT_BYTES); 5]).is_err());
        assert!(validate_findings(vec!["x".to_owned(); MAX_ITEMS_PER_LIST]).is_ok());
        assert!(validate_findings(vec!["x".to_owned(); MAX_ITEMS_PER_LIST + 1]).is_err());
    }
}
