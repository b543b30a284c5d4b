//! The data that a list of lanes shows.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_git::status::diff::DiffStat;
use proq_store::records::lane::AnyLane;
use proq_store::records::pull_request::PullRequestStatus;
use proq_store::records::run::RunSummary;

use crate::agent::task_loop::loop_status::LoopStatus;
use crate::lane::inspection::list::LaneView;
use crate::merge::comparison::forecast::report::Forecast;
use crate::preview::main_checkout::PreviewStatus;
use crate::swarm::batch::folded_batch::ListedBatch;
use crate::swarm::landing::batch_landing::UnlandedBatch;

/// All data that a list shows.
#[derive(Debug)]
pub struct LaneList {
    /// The present lanes: attempts of a group next to each other, those of batches last.
    pub views: Vec<LaneView>,
    /// What the records have beside the lanes themselves.
    pub stored: StoredInfo,
    /// Worktrees in lane locations that belong to no record.
    pub unrecorded_worktrees: Vec<PathBuf>,
    /// All batches that were not cleaned up.
    pub batches: Vec<ListedBatch>,
    /// Those that no scheduler runs now, and whose branches have commits that their bases lack.
    pub unlanded_batches: Vec<UnlandedBatch>,
    /// The conflict forecast; `None` if it failed.
    pub forecast: Option<Forecast>,
}

/// Data of a list that is available at once, from records.
#[derive(Debug)]
pub struct StoredInfo {
    /// Removed lanes, each by its name in the history (`name@N`); empty unless requested.
    pub past_lanes: Vec<(String, AnyLane)>,
    /// The open preview, if there is one.
    pub preview: Option<PreviewStatus>,
    /// Usage of all runs of a lane, by lane name; `None` unless requested.
    pub usage: Option<BTreeMap<LaneName, RunSummary>>,
    /// Last known status of the pull requests of present lanes, by lane name.
    pub pull_requests: BTreeMap<LaneName, PullRequestStatus>,
    /// Progress of the tasks that are folders with steps, by lane name.
    pub task_loops: BTreeMap<LaneName, LoopStatus>,
}

/// A list that is still loading.
#[derive(Debug, Clone, Copy)]
pub struct PartialList<'a> {
    /// Views of all present lanes, some of them incomplete.
    pub views: &'a [LaneView],
    /// What the records have beside the lanes themselves.
    pub stored: &'a StoredInfo,
    /// The conflict forecast; `None` if it failed or is still running.
    pub forecast: Option<&'a Forecast>,
    /// Number of lanes, from the first on, that have been compared with their bases.
    pub compared_count: usize,
    /// For each lane, whether its worktree has been inspected; `None` once all are.
    pub inspected: Option<&'a [bool]>,
}

impl PartialList<'_> {
    /// Returns the size of a lane's committed changes; none if it is unknown or still being counted.
    #[must_use]
    pub fn changed_lines(&self, lane: &LaneName) -> Option<DiffStat> {
        self.forecast?.lanes.iter().find(|compared| compared.lane == *lane)?.lines
    }

    /// Returns whether the worktree state of lane `index` is known, or the lane has no worktree.
    #[must_use]
    pub fn is_inspected(&self, index: usize) -> bool {
        let has_tree = self.views[index].lane.branch().is_some();
        !has_tree || self.inspected.is_none_or(|inspected| inspected.get(index) == Some(&true))
    }
}

impl LaneList {
    /// Returns the list as one that is completely loaded.
    #[must_use]
    pub fn as_partial(&self) -> PartialList<'_> {
        PartialList {
            views: &self.views,
            stored: &self.stored,
            forecast: self.forecast.as_ref(),
            compared_count: self.views.len(),
            inspected: None,
        }
    }
}

/// Returns what a lane has lost: `worktree`, `branch`, both or nothing.
#[must_use]
pub fn missing_parts(view: &LaneView) -> Vec<&'static str> {
    let mut out = Vec::new();
    if view.is_folder_missing {
        out.push("worktree");
    }
    if view.tip.is_none() && view.lane.branch().is_some() {
        out.push("branch");
    }
    out
}

/// Returns whether the main checkout shows the lane now.
#[must_use]
pub fn is_previewed(stored: &StoredInfo, name: &LaneName) -> bool {
    stored.preview.as_ref().is_some_and(|s| s.is_shown && s.lane == *name)
}
