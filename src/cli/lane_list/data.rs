//! The data that a list of lanes shows.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::agent::LoopStatus;
use crate::lane::LaneView;
use crate::merge::Forecast;
use crate::preview::PreviewStatus;
use crate::store::records::{AnyLane, RunSummary};
use crate::swarm::UnlandedBatch;

/// All data that a list shows.
pub(in crate::cli) struct LaneList {
    pub(in crate::cli) views: Vec<LaneView>,
    pub(in crate::cli) stored: StoredInfo,
    pub(in crate::cli) unrecorded_worktrees: Vec<PathBuf>,
    /// Batches that no scheduler runs now, and whose branches have commits that their bases lack.
    pub(in crate::cli) unlanded: Vec<UnlandedBatch>,
    /// The conflict forecast; `None` if it failed.
    pub(in crate::cli) forecast: Option<Forecast>,
}

/// Data of a list that is available at once, from records.
pub(in crate::cli) struct StoredInfo {
    pub(in crate::cli) past: Vec<(String, AnyLane)>,
    pub(in crate::cli) preview: Option<PreviewStatus>,
    /// Usage of all runs of a lane, by lane name; `None` unless requested.
    pub(in crate::cli) usage: Option<BTreeMap<String, RunSummary>>,
    /// Progress of the tasks that are folders with steps, by lane name.
    pub(in crate::cli) tasks: BTreeMap<String, LoopStatus>,
}

pub(in crate::cli) fn missing_parts(view: &LaneView) -> Vec<&'static str> {
    let mut out = Vec::new();
    if view.is_folder_missing {
        out.push("worktree");
    }
    if view.tip.is_none() && view.lane.branch().is_some() {
        out.push("branch");
    }
    out
}

pub(in crate::cli) fn is_previewed(stored: &StoredInfo, name: &str) -> bool {
    stored.preview.as_ref().is_some_and(|s| s.is_shown && s.lane == name)
}
