//! Options of a landing, and the landing itself: its lanes and the agents that it may use or end.

use std::collections::{BTreeMap, BTreeSet};

use proq_base::config::settings::Settings;
use proq_base::lane_name::LaneName;
use proq_git::CommitId;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PushMode {
    /// Bases are not pushed.
    #[default]
    Never,
    /// Bases are pushed; git may not prompt.
    WithoutPrompt,
    /// Bases are pushed; git may prompt at the terminal, for example for a password.
    MayPrompt,
}

/// Options of a landing that do not depend on the state of its lanes.
#[derive(Debug, Clone, Default)]
pub struct LandingOptions {
    /// Whether every eligible lane lands.
    pub all: bool,
    /// Branch to land on instead of each lane's own base.
    pub onto: Option<String>,
    /// Whether named lanes land despite a failed or stopped run, conflict markers, or submodule commits that
    /// no remote has.
    pub force: bool,
    /// Whether lanes land that delete more than half of their base's files.
    pub allow_deletions: bool,
    /// Whether the lanes are picked: a lane is refused if another attempt of its group has landed.
    pub pick: bool,
    /// Whether the landing runs automatically, without a user's request: it changes nothing that the main
    /// checkout shows.
    pub is_automatic: bool,
    /// Whether landed lanes are not removed.
    pub keep_lanes: bool,
    /// Strategy to use instead of the setting.
    pub strategy: Option<MergeStrategy>,
    /// Full messages of the commits by which lanes land, instead of those of the settings.
    pub messages: BTreeMap<LaneName, String>,
    /// Whether the user's sign-off is added to the messages, even without `merge.signoff`.
    pub signoff: bool,
    /// Whether the repository's hooks that can refuse are skipped.
    pub skip_hooks: bool,
    /// Whether uncommitted changes in a checkout of the base that are in the way are saved, and restored after
    /// the base has moved; none for the setting.
    pub autostash: Option<bool>,
    /// Order in which lanes are stacked.
    pub order: StackOrder,
    /// Whether all lanes land or none.
    pub atomic: bool,
    /// Command lines to check with, after those of the settings.
    pub extra_checks: Vec<String>,
    /// Whether the commands of the settings and of the lanes' tasks are skipped; `extra_checks` still run.
    pub no_checks: bool,
    /// Whether a check that fails on the base itself is ignored, even without `verify.base_failures`.
    pub ignore_base_failures: bool,
    /// Number of states to check in parallel; none for the setting.
    pub jobs: Option<usize>,
    /// Time to wait in the merge queue.
    pub queue_wait: WaitLimit,
}

impl LandingOptions {
    /// Returns the strategy by which lanes land: the requested one, or else the setting.
    pub fn strategy(&self, settings: &Settings) -> MergeStrategy {
        self.strategy
            .or_else(|| MergeStrategy::from_name(&settings.merge_strategy))
            .unwrap_or(MergeStrategy::Merge)
    }

    /// Returns whether changes in the way are saved and restored: as requested, or else by the setting.
    pub fn uses_autostash(&self, settings: &Settings) -> bool {
        self.autostash.unwrap_or(settings.merge_autostash)
    }
}

/// One landing: its options, the lanes that were requested, and the agents that it may use or end.
#[derive(Debug, Clone, Default)]
pub struct Landing {
    /// Options of the landing.
    pub options: LandingOptions,
    /// Whether the landing is only simulated.
    pub dry_run: bool,
    /// Records of the named lanes; empty if every eligible lane lands.
    pub lanes: Vec<LaneRecord>,
    /// Names or branches of the named lanes as the user gave them, for hooks.
    pub given_names: Vec<String>,
    /// Whether the lanes are not on record: a dry run treats each record as it would be created.
    pub is_simulated: bool,
    /// Names of the lanes whose agents were stopped for this landing; none without `--stop`. A stopped lane
    /// then lands; if every eligible lane lands, only if it was stopped for this landing.
    pub stopped_lanes: Option<Vec<LaneName>>,
    /// Lanes whose agents' sessions may be ended, if the agents are done and idle when the landing's turn
    /// comes.
    pub endable_sessions: Vec<LaneName>,
    /// Agent that resolves conflicts.
    pub resolver: Option<Resolver>,
    /// Whether bases that lanes landed on are pushed.
    pub push: PushMode,
    /// Tips that the plan of the landing was made of; none if any may land.
    pub pinned_tips: Option<PinnedTips>,
}

/// Tips that a landing is bound to: from another one nothing lands.
#[derive(Debug, Clone, Default)]
pub struct PinnedTips {
    /// Tip of each base, by its branch.
    pub(crate) bases: BTreeMap<String, CommitId>,
    /// Tip of each lane whose uncommitted files are not committed for the landing.
    pub(crate) lanes: BTreeMap<LaneName, CommitId>,
}

impl PinnedTips {
    /// Requires that `base` is the tip of the branch `onto`.
    ///
    /// # Errors
    /// [`Error::PlanOutdated`].
    pub(crate) fn require_base(&self, onto: &str, base: CommitId) -> Result<(), Error> {
        if self.bases.get(onto) == Some(&base) { Ok(()) } else { Err(Error::PlanOutdated) }
    }

    /// Requires that a lane would land with the tip that was shown. `examined` is its tip when the landing
    /// began, after its uncommitted files were committed, and `tip` that of now.
    ///
    /// # Errors
    /// [`Error::PlanOutdated`].
    pub(crate) fn require_lane(
        &self,
        lane: &LaneName,
        examined: CommitId,
        tip: CommitId,
    ) -> Result<(), Error> {
        let is_shown = self.lanes.get(lane).is_none_or(|shown| *shown == tip);
        if is_shown && examined == tip { Ok(()) } else { Err(Error::PlanOutdated) }
    }
}

impl Landing {
    /// Returns the landing of these lanes in the given order, one independent of the other; they are kept.
    pub(crate) fn from_lanes(lanes: Vec<LaneRecord>) -> Landing {
        let options =
            LandingOptions { keep_lanes: true, order: StackOrder::Given, ..LandingOptions::default() };
        Landing { options, lanes, ..Landing::default() }
    }

    /// Returns whether the landing would stop agents but is a dry run: lanes with a running agent are taken
    /// as they are.
    pub(crate) fn would_stop(&self) -> bool {
        self.dry_run && self.stopped_lanes.is_some()
    }

    /// Returns the branches that lanes may land on: `onto`, or the base of each lane.
    ///
    /// # Errors
    /// Fails when the records of lanes cannot be read.
    pub fn bases(&self, project: &Project) -> Result<BTreeSet<String>, Error> {
        if let Some(onto) = &self.options.onto {
            return Ok(std::iter::once(project.repo.resolve_symbolic_branch(onto)).collect());
        }
        let mut bases: BTreeSet<String> = self.lanes.iter().map(|lane| lane.base.clone()).collect();
        if self.options.all {
            let open_lanes =
                project.owned_lanes()?.into_iter().filter(|lane| !lane.status.landing.is_closed());
            bases.extend(open_lanes.map(|lane| lane.base));
        }
        Ok(bases)
    }
}

/// Functions that a landing calls on its way.
#[derive(Clone, Copy)]
pub struct LandingCallbacks<'a> {
    /// Called when the landing's turn has come, before an agent is stopped or anything moves. It may limit the
    /// landing to some of its lanes. An error ends the landing.
    pub on_turn: &'a dyn Fn(&mut Landing) -> Result<(), Error>,
    /// Receives the plan before anything moves.
    pub on_plan: &'a dyn Fn(&LandingPlan),
}
