//! Options of a landing, and the candidates that it lands.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::Error;
use super::Resolver;
use super::order::StackOrder;
use super::plan::LandingPlan;
use super::push::PushMode;
use crate::config::Settings;
use crate::git::{Oid, WorktreeStatus};
use crate::lane::Project;
use crate::store::WaitLimit;
use crate::store::records::{LaneRecord, MergeStrategy};

/// Options of a landing.
#[derive(Clone, Copy)]
pub(crate) struct LandingOptions<'a> {
    /// Names of the lanes to land.
    pub(crate) lanes: &'a [String],
    /// The named lane as it would be created; a dry run treats it like a recorded lane.
    pub(crate) unrecorded_lane: Option<&'a LaneRecord>,
    /// Whether every eligible lane lands.
    pub(crate) all: bool,
    /// Branch to land on instead of each lane's own base.
    pub(crate) onto: Option<&'a str>,
    /// Whether named lanes land despite a failed or stopped run, conflict markers, or submodule commits that
    /// no remote has.
    pub(crate) force: bool,
    /// Whether lanes land that delete more than half of their base's files.
    pub(crate) allow_deletions: bool,
    /// Names of the lanes whose agents were stopped for this landing; none without `--stop`. A stopped lane
    /// then lands; with `all`, only if it was stopped for this landing.
    pub(crate) stop: Option<&'a [String]>,
    /// Lanes whose agents' sessions may be ended, if the agents are done and idle when the landing's turn
    /// comes.
    pub(crate) endable_sessions: &'a [String],
    /// Whether the lanes are picked: a lane is refused if another attempt of its group has landed.
    pub(crate) pick: bool,
    /// Whether the landing runs automatically, without a user's request: it changes nothing that the main
    /// checkout shows.
    pub(crate) is_automatic: bool,
    /// Whether landed lanes are not removed.
    pub(crate) keep_lanes: bool,
    /// Strategy to use instead of the setting.
    pub(crate) strategy: Option<MergeStrategy>,
    /// Whether the repository's hooks that can refuse are skipped.
    pub(crate) no_verify: bool,
    /// Order in which lanes are stacked.
    pub(crate) order: StackOrder,
    /// Whether all lanes land or none.
    pub(crate) atomic: bool,
    /// Callback that receives the plan before anything moves.
    pub(crate) on_plan: &'a dyn Fn(&LandingPlan),
    /// Whether the landing is only simulated.
    pub(crate) dry_run: bool,
    /// Command lines to check with, after those of the settings.
    pub(crate) extra_checks: &'a [String],
    /// Whether the commands of the settings are skipped.
    pub(crate) no_checks: bool,
    /// Number of states to check in parallel; none for the setting.
    pub(crate) jobs: Option<usize>,
    /// Agent that resolves conflicts.
    pub(crate) resolver: Option<Resolver<'a>>,
    /// Whether bases that lanes landed on are pushed.
    pub(crate) push: PushMode,
    /// Time to wait in the merge queue.
    pub(crate) queue_wait: WaitLimit,
}

impl<'a> LandingOptions<'a> {
    /// Returns the options to land these lanes in the given order, one independent of the other, and keep
    /// them.
    pub(super) fn from_lanes(lanes: &'a [String]) -> LandingOptions<'a> {
        LandingOptions {
            lanes,
            unrecorded_lane: None,
            all: false,
            onto: None,
            force: false,
            allow_deletions: false,
            stop: None,
            endable_sessions: &[],
            pick: false,
            is_automatic: false,
            keep_lanes: true,
            strategy: None,
            no_verify: false,
            order: StackOrder::Given,
            atomic: false,
            on_plan: &|_| {},
            dry_run: false,
            extra_checks: &[],
            no_checks: false,
            jobs: None,
            resolver: None,
            push: PushMode::Never,
            queue_wait: WaitLimit::Forever,
        }
    }

    /// Returns whether the landing would stop agents but is a dry run: lanes with a running agent are taken
    /// as they are.
    pub(super) fn would_stop(&self) -> bool {
        self.dry_run && self.stop.is_some()
    }

    /// Returns the branches that lanes may land on.
    ///
    /// # Errors
    /// Fails when the records of lanes cannot be read.
    pub(super) fn landing_bases(&self, project: &Project) -> Result<BTreeSet<String>, Error> {
        let unrecorded = self.unrecorded_lane.filter(|_| self.onto.is_none()).map(|lane| lane.base.clone());
        Ok(unrecorded.into_iter().chain(landing_bases(project, self.lanes, self.all, self.onto)?).collect())
    }

    /// Returns the strategy by which lanes land: the requested one, or else the setting.
    pub(super) fn strategy(&self, settings: &Settings) -> MergeStrategy {
        self.strategy
            .or_else(|| MergeStrategy::from_name(&settings.merge_strategy))
            .unwrap_or(MergeStrategy::Merge)
    }
}

/// Returns the branches that these lanes, or all lanes, may land on: `onto`, or the base of each.
///
/// # Errors
/// Fails when the records of lanes cannot be read.
pub(crate) fn landing_bases(
    project: &Project,
    lanes: &[String],
    all: bool,
    onto: Option<&str>,
) -> Result<BTreeSet<String>, Error> {
    if let Some(onto) = onto {
        return Ok(std::iter::once(project.repo.resolve_symbolic_branch(onto)).collect());
    }
    // The landing itself refuses an unknown lane.
    let mut records: Vec<LaneRecord> = lanes.iter().filter_map(|name| project.lane(name).ok()).collect();
    if all {
        records.extend(project.lanes()?.into_iter().filter(|lane| !lane.state.is_closed()));
    }
    Ok(records.into_iter().map(|lane| lane.base).collect())
}

/// Lane that may land.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Record of the lane.
    pub(super) lane: LaneRecord,
    /// Commit that will land.
    pub(super) tip: Oid,
    /// Branch that the lane lands on.
    pub(super) onto: String,
    /// Number of times that the lane did not land because of a conflict.
    pub(super) conflict_count: u32,
    /// Number of commits that the base lacks.
    pub(super) commits: usize,
    /// Number of files that the commits change.
    pub(super) files: usize,
    /// Part of the lane that lands; none if all of the lane lands.
    pub(super) part: Option<LanePart>,
    /// Uncommitted work that a landing would commit first; none if it has been committed.
    pub(super) pending_commit: Option<PendingCommit>,
}

/// Uncommitted work that a landing would commit and a dry run leaves.
#[derive(Debug, Clone)]
pub(super) struct PendingCommit {
    /// Differences from HEAD.
    pub(super) status: WorktreeStatus,
    /// Common ancestor of lane and base.
    pub(super) ancestor: Oid,
}

/// Part of a lane that lands separately: the commits between two of the lane's commits.
#[derive(Debug, Clone)]
pub(crate) struct LanePart {
    /// Number that identifies the part among those that land together.
    pub(crate) key: usize,
    /// Name of the lane.
    pub(crate) lane: String,
    /// Commit before the part's first one.
    pub(crate) start: Oid,
    /// Last commit of the part.
    pub(crate) end: Oid,
    /// Title of the part, one line.
    pub(crate) title: String,
    /// Shell command lines that must succeed with the part.
    pub(crate) checks: Vec<String>,
    /// Keys of the parts that must land before this one.
    pub(crate) required_parts: Vec<usize>,
    /// File for the landing proof, which the landing step itself writes.
    pub(crate) proof_path: PathBuf,
}

impl Candidate {
    /// Returns the key of the candidate's part; none if all of the lane lands.
    pub(super) fn part_key(&self) -> Option<usize> {
        self.part.as_ref().map(|part| part.key)
    }

    /// Returns whether `other` is the same part of the same lane.
    pub(super) fn is_same_part(&self, other: &Candidate) -> bool {
        (&self.lane.name, self.part_key()) == (&other.lane.name, other.part_key())
    }
}
