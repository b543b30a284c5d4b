//! Cost of agents: usage of a run and of a lane, and the cost per line that landed.

use std::path::Path;

use proq_base::money::NanoDollars;
use proq_base::usage::Cost;
use proq_git::{CommitId, Repo};
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::{RunRecord, RunSummary};

use crate::agent::run::live_status;

/// Returns the usage summary of a run: the final one, or the live one so far while the run lasts. `dir` is the
/// folder of the lane's records.
#[must_use]
pub fn run_usage(dir: &Path, run: &RunRecord) -> RunSummary {
    if run.ended.is_some() {
        return run.summary.clone();
    }
    let live = live_status::read_summary(&Layout::run_live_view_in(dir, run.number));
    RunSummary { session: live.session.clone().or_else(|| run.summary.session.clone()), ..live }
}

/// Returns the summed usage of runs 1 to `last_run` of a lane; `None` without run records. `dir` is the
/// folder of the lane's records.
#[must_use]
pub fn summed_lane_usage(dir: &Path, last_run: RunNumber) -> Option<RunSummary> {
    let load_run =
        |run: RunNumber| RunRecord::load_if_exists(&Layout::run_record_in(dir, run)).ok().flatten();
    RunNumber::first()
        .through(last_run)
        .filter_map(load_run)
        .map(|run| run_usage(dir, &run))
        .reduce(|earlier, account| account.plus_usage_of(&earlier))
}

/// Returns the cost of a lane's runs per line that landed; none if the lane has not landed, or if no agent
/// reports its cost. The cost is estimated if that of a run is, or if a run has none.
#[must_use]
pub fn of_landed_line(repo: &Repo, lane: &AnyLane, runs: &[RunRecord]) -> Option<Cost> {
    let landed = lane.landed.as_ref()?;
    let cost = runs.iter().filter_map(|run| run.summary.cost).reduce(Cost::plus)?;
    let is_partial = runs.iter().any(|run| run.summary.cost.is_none());
    // The base may have been merged into the lane: what both had before the landing is not the lane's.
    let base_before = repo.require_commit(&format!("{}^", landed.commit)).ok();
    let common = base_before.and_then(|base| repo.merge_base(landed.tip, base).ok().flatten());
    let cost = Cost { estimated: cost.estimated || is_partial, ..cost };
    per_line(cost, changed_lines(repo, common.unwrap_or(lane.start), landed.tip)?)
}

/// Returns the number of lines that are added and removed from one commit to another, by git's counts; none if
/// a commit is gone.
#[must_use]
pub fn changed_lines(repo: &Repo, from: CommitId, to: CommitId) -> Option<usize> {
    let files = repo.line_counts(from, to).ok()?;
    Some(files.iter().map(|file| file.added.unwrap_or_default() + file.removed.unwrap_or_default()).sum())
}

/// Divides a cost by a number of lines, rounded to the nearest billionth of a dollar; none without lines.
#[must_use]
pub fn per_line(cost: Cost, lines: usize) -> Option<Cost> {
    let lines = u64::try_from(lines).ok().filter(|lines| *lines > 0)?;
    let nanos = cost.amount.nanos().saturating_add(lines / 2) / lines;
    Some(Cost { amount: NanoDollars::new(nanos), ..cost })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divides_cost_by_lines() {
        let cost = |nanos, estimated| Cost { amount: NanoDollars::new(nanos), estimated };
        assert_eq!(per_line(cost(1_000, true), 3), Some(cost(333, true)));
        assert_eq!(per_line(cost(5, false), 2), Some(cost(3, false)));
        assert_eq!(per_line(cost(5, false), 0), None);
    }
}
