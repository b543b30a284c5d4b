//! Comparison of several attempts at one task: size, checks, costs, and conflicts with the base and with each
//! other.

use std::collections::BTreeSet;

use proq_base::lane_name::LaneName;
use proq_git::status::diff::FileLineCounts;
use proq_git::{CommitId, RepoPath};
use proq_store::records::draft::RunCosts;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use crate::lane::Project;
use crate::lane::inspection::list;
use crate::lane::inspection::list::LaneView;
use crate::merge::Error;
use crate::merge::comparison::forecast::changed_lines::LineCounting;
use crate::merge::comparison::forecast::compute::{ForecastRequest, forecast_lanes};
use crate::merge::comparison::forecast::report::{ForecastPair, SkippedLane};
use crate::merge::types::outcome::CheckStatus;
use crate::merge::verify::dry_verify;
use crate::run::lane_costs;

/// One attempt, as `git proq compare` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct AttemptSummary {
    /// Name of the attempt's lane.
    pub lane: LaneName,
    /// First line of the task.
    pub title: String,
    /// Group of attempts that the lane belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Agent of the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// State of the lane.
    pub state: LaneState,
    /// Details of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Branch that the lane lands on.
    pub base: String,
    /// Commit that the lane was created from.
    pub start: CommitId,
    /// Tip of the lane's branch; none when the branch is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<CommitId>,
    /// Number of commits that the base lacks; none when the branch or the base is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<usize>,
    /// Number of uncommitted files, which no other field includes; none when unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<usize>,
    /// Files that the lane's commits change, with line counts.
    pub files: Vec<FileLineCounts>,
    /// Files that only this attempt changes.
    #[serde(rename = "only")]
    pub exclusive_files: Vec<RepoPath>,
    /// Result of the checks on what the attempt would land.
    pub checks: CheckStatus,
    /// Costs of the lane's runs.
    #[serde(flatten)]
    pub costs: RunCosts,
}

/// Result of comparing attempts.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Attempts in the order in which they were requested.
    pub attempts: Vec<AttemptSummary>,
    /// Forecast of each compared lane with its base, and with every other compared lane of the same base.
    pub pairs: Vec<ForecastPair>,
    /// Lanes that the forecast skipped.
    #[serde(rename = "left_out")]
    pub skipped: Vec<SkippedLane>,
}

/// Source of the check results.
#[derive(Debug, Clone, Copy)]
pub enum CheckSource<'a> {
    /// Results of earlier runs.
    Cached,
    /// New runs of the commands of the settings and of more commands.
    Run {
        /// Command lines to run after those of the settings.
        extra_commands: &'a [String],
        /// Number of states checked in parallel; none for the setting.
        jobs: Option<usize>,
    },
}

/// Compares lanes with each other. Nothing lands, and no lane changes.
///
/// # Errors
/// Fails when a lane cannot be read, or when commands to run are not approved.
pub fn compare_attempts(
    project: &Project,
    lanes: &[LaneRecord],
    check_source: CheckSource<'_>,
) -> Result<Comparison, Error> {
    let checks = match check_source {
        CheckSource::Cached => dry_verify::cached_statuses(project, lanes)?,
        CheckSource::Run { extra_commands: more, jobs } => {
            dry_verify::check_lanes_alone(project, lanes, more, jobs)?
        }
    };
    let mut attempts = Vec::new();
    for (view, checks) in
        list::lane_views(project, lanes.iter().cloned().map(LaneRecord::into_any).collect())?
            .into_iter()
            .zip(checks)
    {
        attempts.push(summarize_attempt(project, view, checks)?);
    }
    for index in 0..attempts.len() {
        attempts[index].exclusive_files = exclusive_files(&attempts, index);
    }
    let request = ForecastRequest {
        lanes: lanes.to_vec(),
        include_uncommitted: false,
        time_limit: None,
        only_lane: None,
        line_counting: LineCounting::Skip,
    };
    let lane_forecast = forecast_lanes(project, request)?;
    Ok(Comparison { attempts, pairs: lane_forecast.pairs, skipped: lane_forecast.skipped })
}

fn summarize_attempt(
    project: &Project,
    view: LaneView,
    checks: CheckStatus,
) -> Result<AttemptSummary, Error> {
    let (repo, lane) = (&project.repo, view.lane);
    let files = match view.tip {
        None => Vec::new(),
        Some(tip) => {
            // The merge base is computed now: the base may have been merged into the lane since its start.
            let base = repo.branch_tip(&lane.base)?;
            let ancestor = base.map(|base| repo.merge_base(tip, base)).transpose()?.flatten();
            repo.line_counts(ancestor.unwrap_or(lane.start), tip)?
        }
    };
    Ok(AttemptSummary {
        costs: lane_costs::total_costs(&project.store, &lane)?,
        lane: lane.name,
        title: lane.title,
        group: lane.group,
        agent: lane.agent,
        state: view.status.state(),
        detail: view.detail,
        base: lane.base,
        start: lane.start,
        tip: view.tip,
        commits: view.distance.map(|distance| distance.ahead),
        uncommitted: view.dirty.map(|dirt| dirt.entries.len()),
        files,
        exclusive_files: Vec::new(),
        checks,
    })
}

/// Returns the files that the attempt at `index` changes and no other does.
fn exclusive_files(attempts: &[AttemptSummary], index: usize) -> Vec<RepoPath> {
    let others = attempts.iter().enumerate().filter(|(other, _)| *other != index);
    let other_paths: BTreeSet<&RepoPath> =
        others.flat_map(|(_, other)| &other.files).map(|file| &file.path).collect();
    let own_paths = attempts[index].files.iter().map(|file| &file.path);
    own_paths.filter(|path| !other_paths.contains(path)).cloned().collect()
}
