//! Options of a landing.

use std::collections::BTreeSet;

use proq_base::config::settings::Settings;
use proq_base::lane_name::LaneName;
use proq_store::locks::lock::WaitLimit;
use proq_store::records::lane::{LaneRecord, MergeStrategy};

use super::outcome::LandingPlan;
use super::resolver::Resolver;
use crate::lane::Project;
use crate::merge::Error;

/// Order in which lanes are stacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StackOrder {
    /// Order in which most lanes land.
    #[default]
    Best,
    /// Order of the arguments; with `--all`, the oldest first.
    Given,
    /// Fewest changed files first.
    FewestFiles,
    /// Oldest first.
    Oldest,
}

impl StackOrder {
    /// Returns the order with this option value.
    pub fn from_name(name: &str) -> Option<StackOrder> {
        match name {
            "best" => Some(StackOrder::Best),
            "given" => Some(StackOrder::Given),
            "fewest-files" => Some(StackOrder::FewestFiles),
            "oldest" => Some(StackOrder::Oldest),
            _ => None,
        }
    }
}

/// Whether bases are pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushMode {
    /// Bases are not pushed.
    Never,
    /// Bases are pushed; git may not prompt.
    WithoutPrompt,
    /// Bases are pushed; git may prompt at the terminal, for example for a password.
    MayPrompt,
}

/// Options of a landing.
#[derive(Clone, Copy)]
pub struct LandingOptions<'a> {
    /// Names or branches of the lanes to land, as the user gave them.
    pub lanes: &'a [String],
    /// The named lane as it would be created; a dry run treats it like a recorded lane.
    pub simulated_lane: Option<&'a LaneRecord>,
    /// Whether every eligible lane lands.
    pub all: bool,
    /// Branch to land on instead of each lane's own base.
    pub onto: Option<&'a str>,
    /// Whether named lanes land despite a failed or stopped run, conflict markers, or submodule commits that
    /// no remote has.
    pub force: bool,
    /// Whether lanes land that delete more than half of their base's files.
    pub allow_deletions: bool,
    /// Names of the lanes whose agents were stopped for this landing; none without `--stop`. A stopped lane
    /// then lands; with `all`, only if it was stopped for this landing.
    pub stopped_lanes: Option<&'a [LaneName]>,
    /// Lanes whose agents' sessions may be ended, if the agents are done and idle when the landing's turn
    /// comes.
    pub endable_sessions: &'a [LaneName],
    /// Whether the lanes are picked: a lane is refused if another attempt of its group has landed.
    pub pick: bool,
    /// Whether the landing runs automatically, without a user's request: it changes nothing that the main
    /// checkout shows.
    pub is_automatic: bool,
    /// Whether landed lanes are not removed.
    pub keep_lanes: bool,
    /// Strategy to use instead of the setting.
    pub strategy: Option<MergeStrategy>,
    /// Whether the repository's hooks that can refuse are skipped.
    pub skip_hooks: bool,
    /// Order in which lanes are stacked.
    pub order: StackOrder,
    /// Whether all lanes land or none.
    pub atomic: bool,
    /// Callback that receives the plan before anything moves.
    pub on_plan: &'a dyn Fn(&LandingPlan),
    /// Whether the landing is only simulated.
    pub dry_run: bool,
    /// Command lines to check with, after those of the settings.
    pub extra_checks: &'a [String],
    /// Whether the commands of the settings and of the lanes' tasks are skipped; `extra_checks` still run.
    pub no_checks: bool,
    /// Number of states to check in parallel; none for the setting.
    pub jobs: Option<usize>,
    /// Agent that resolves conflicts.
    pub resolver: Option<Resolver<'a>>,
    /// Whether bases that lanes landed on are pushed.
    pub push: PushMode,
    /// Time to wait in the merge queue.
    pub queue_wait: WaitLimit,
}

impl<'a> LandingOptions<'a> {
    /// Returns the options to land these lanes in the given order, one independent of the other, and keep
    /// them.
    pub(crate) fn from_lanes(lanes: &'a [String]) -> LandingOptions<'a> {
        LandingOptions {
            lanes,
            simulated_lane: None,
            all: false,
            onto: None,
            force: false,
            allow_deletions: false,
            stopped_lanes: None,
            endable_sessions: &[],
            pick: false,
            is_automatic: false,
            keep_lanes: true,
            strategy: None,
            skip_hooks: false,
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
    pub(crate) fn would_stop(&self) -> bool {
        self.dry_run && self.stopped_lanes.is_some()
    }

    /// Returns the branches that lanes may land on.
    ///
    /// # Errors
    /// Fails when the records of lanes cannot be read.
    pub fn landing_bases(&self, project: &Project) -> Result<BTreeSet<String>, Error> {
        let unrecorded = self.simulated_lane.filter(|_| self.onto.is_none()).map(|lane| lane.base.clone());
        Ok(unrecorded.into_iter().chain(landing_bases(project, self.lanes, self.all, self.onto)?).collect())
    }

    /// Returns the strategy by which lanes land: the requested one, or else the setting.
    pub fn strategy(&self, settings: &Settings) -> MergeStrategy {
        self.strategy
            .or_else(|| MergeStrategy::from_name(&settings.merge_strategy))
            .unwrap_or(MergeStrategy::Merge)
    }
}

/// Returns the branches that these lanes, given by name or branch, or all lanes, may land on: `onto`, or the
/// base of each.
///
/// # Errors
/// Fails when the records of lanes cannot be read.
pub fn landing_bases(
    project: &Project,
    lanes: &[String],
    all: bool,
    onto: Option<&str>,
) -> Result<BTreeSet<String>, Error> {
    if let Some(onto) = onto {
        return Ok(std::iter::once(project.repo.resolve_symbolic_branch(onto)).collect());
    }
    // The landing itself refuses an unknown lane.
    let mut records: Vec<LaneRecord> = lanes.iter().filter_map(|name| project.find_lane(name).ok()).collect();
    if all {
        records.extend(project.owned_lanes()?.into_iter().filter(|lane| !lane.status.landing.is_closed()));
    }
    Ok(records.into_iter().map(|lane| lane.base).collect())
}
