//! The data that a list of lanes shows.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_lib::agent::task_loop::loop_status::LoopStatus;
use proq_lib::lane::inspection::list::LaneView;
use proq_lib::merge::comparison::forecast::report::Forecast;
use proq_lib::preview::main_checkout::PreviewStatus;
use proq_lib::swarm::landing::batch_landing::UnlandedBatch;
use proq_store::records::lane::AnyLane;
use proq_store::records::run::RunSummary;

/// All data that a list shows.
pub(crate) struct LaneList {
    pub(crate) views: Vec<LaneView>,
    pub(crate) stored: StoredInfo,
    pub(crate) unrecorded_worktrees: Vec<PathBuf>,
    /// Batches that no scheduler runs now, and whose branches have commits that their bases lack.
    pub(crate) unlanded_batches: Vec<UnlandedBatch>,
    /// The conflict forecast; `None` if it failed.
    pub(crate) forecast: Option<Forecast>,
}

/// Data of a list that is available at once, from records.
pub(crate) struct StoredInfo {
    /// Removed lanes, each by its name in the history (`name@N`); empty unless requested.
    pub(crate) past_lanes: Vec<(String, AnyLane)>,
    /// The open preview, if there is one.
    pub(crate) preview: Option<PreviewStatus>,
    /// Usage of all runs of a lane, by lane name; `None` unless requested.
    pub(crate) usage: Option<BTreeMap<LaneName, RunSummary>>,
    /// Progress of the tasks that are folders with steps, by lane name.
    pub(crate) task_loops: BTreeMap<LaneName, LoopStatus>,
}

/// Returns what a lane has lost: `worktree`, `branch`, both or nothing.
pub(crate) fn missing_parts(view: &LaneView) -> Vec<&'static str> {
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
pub(crate) fn is_previewed(stored: &StoredInfo, name: &LaneName) -> bool {
    stored.preview.as_ref().is_some_and(|s| s.is_shown && s.lane == *name)
}
