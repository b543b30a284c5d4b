//! Events for lanes that have started to conflict with each other: one event per pair, and no further one
//! while the conflict lasts.

use std::collections::{BTreeSet, HashMap, HashSet};

use proq_base::lane_name::LaneName;
use proq_git::RepoPath;
use proq_git::base::error;
use proq_store::Store;
use proq_store::base::atomic::write_unsynced;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::LaneRecord;
use serde::{Deserialize, Serialize};

use crate::event::log::{Event, EventName};
use crate::lane::Project;
use crate::merge::Error;
use crate::merge::comparison::forecast::changed_lines::LineCounting;
use crate::merge::comparison::forecast::compute::{ForecastRequest, forecast_lanes};
use crate::merge::comparison::forecast::report::{Forecast, ForecastPair, PairResult};

/// Maximum number of bytes of paths in one event: a process that searches for the last event number reads
/// only that much from the end of the log.
const MAX_PATH_BYTES: usize = 8 * 1024;

/// Forecasts which other lanes of its base a lane conflicts with, by commits only, and emits an event for
/// each new conflict.
///
/// # Errors
/// Fails when lanes or commits cannot be read.
pub fn emit_new_overlaps_of_lane(project: &Project, name: &LaneName) -> Result<(), Error> {
    let lane = project.lane(name)?;
    let lanes = project.owned_lanes()?;
    let shares_base = |other: &&LaneRecord| other.base == lane.base && !other.status.landing.is_closed();
    let other_lanes = lanes.iter().filter(shares_base).cloned().collect();
    let request = ForecastRequest {
        lanes: other_lanes,
        include_uncommitted: false,
        time_limit: None,
        only_lane: Some(lane.name.clone()),
        line_counting: LineCounting::Skip,
    };
    let lane_forecast = forecast_lanes(project, request)?;
    emit_new_overlaps(project, &lanes, &lane_forecast, false, Some(&lane.name))
}

/// Emits an event for each two lanes that conflict in this forecast and did not in the last one. `lanes` are
/// all lanes. `with_uncommitted` is whether the forecast includes uncommitted work. `moved_lane` is the lane
/// that has moved, if known.
///
/// # Errors
/// Fails when the store cannot be written.
pub fn emit_new_overlaps(
    project: &Project,
    lanes: &[LaneRecord],
    lane_forecast: &Forecast,
    with_uncommitted: bool,
    moved_lane: Option<&LaneName>,
) -> Result<(), Error> {
    // Usually no conflict is new; this check needs no lock.
    if OverlapUpdate::new(lanes, lane_forecast, with_uncommitted)
        .update_known(&mut KnownOverlaps::read(&project.store))
        .is_none()
    {
        return Ok(());
    }
    let _lock = project.store.locks().acquire(&LockName::Store)?;
    let mut known = KnownOverlaps::read(&project.store);
    // A pair that another process reported concurrently may include a lane that did not exist before.
    let lanes = project.owned_lanes()?;
    let Some(new_pairs) =
        OverlapUpdate::new(&lanes, lane_forecast, with_uncommitted).update_known(&mut known)
    else {
        return Ok(());
    };
    for pair in new_pairs {
        emit_overlap(project, &lanes, pair, moved_lane);
    }
    // Saved last: after a crash, missing events are emitted once more.
    known.save(&project.store)
}

/// Emits the event of a conflict between two lanes. It names `moved_lane` first, if that is one of them.
fn emit_overlap(project: &Project, lanes: &[LaneRecord], pair: &ForecastPair, moved_lane: Option<&LaneName>) {
    let PairResult::Conflict { conflicts } = &pair.result else { return };
    let (lane_name, other_name) = match moved_lane == Some(&pair.theirs) {
        true => (pair.theirs.as_str(), pair.ours.as_str()),
        false => (pair.ours.as_str(), pair.theirs.as_str()),
    };
    let paths: BTreeSet<RepoPath> = conflicts.iter().map(|conflict| conflict.path.clone()).collect();
    let all_paths: Vec<RepoPath> = paths.into_iter().collect();
    let message =
        format!("lanes '{lane_name}' and '{other_name}' conflict in {}", error::list_paths(&all_paths));
    let mut bytes = 0;
    let paths = all_paths.into_iter().take_while(|path| {
        bytes += path.to_string().len();
        bytes <= MAX_PATH_BYTES
    });
    let mut event = Event::new(EventName::LaneOverlap, message);
    event.lane = Some(lane_name.to_owned());
    event.state = lanes.iter().find(|lane| lane.name == *lane_name).map(|lane| lane.state().to_string());
    event.other = Some(other_name.to_owned());
    event.paths = paths.collect();
    project.emit_event(event);
}

/// Pairs of lanes that conflicted in the last forecast. An unreadable file counts as empty, and its pairs are
/// reported again.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KnownOverlaps {
    pairs: Vec<KnownOverlap>,
}

/// Two lanes that conflicted in the last forecast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KnownOverlap {
    /// Identities of both lanes as [`lane_identity`] returns them, sorted.
    lanes: [String; 2],
    /// Whether the conflict includes uncommitted work. A forecast without uncommitted work cannot end such a
    /// conflict.
    #[serde(rename = "uncommitted")]
    with_uncommitted: bool,
}

impl KnownOverlaps {
    fn read(store: &Store) -> KnownOverlaps {
        let text =
            proq_base::regular_file::read_store_file(store.layout().overlap_cache()).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn save(&self, store: &Store) -> Result<(), Error> {
        let text = serde_json::to_vec(self).unwrap_or_default();
        Ok(write_unsynced(&store.layout().overlap_cache(), &text)?)
    }
}

/// Returns a text that distinguishes a lane from a later one with its name.
fn lane_identity(lane: &LaneRecord) -> String {
    format!("{} {} {}", lane.name, lane.created, lane.start)
}

/// Forecast to compare with the known conflicts.
struct OverlapUpdate<'a> {
    /// Identity of each lane, by name.
    lane_identities: HashMap<&'a str, String>,
    lane_forecast: &'a Forecast,
    with_uncommitted: bool,
}

impl<'a> OverlapUpdate<'a> {
    fn new(
        lanes: &'a [LaneRecord],
        lane_forecast: &'a Forecast,
        with_uncommitted: bool,
    ) -> OverlapUpdate<'a> {
        let lane_identities = lanes.iter().map(|lane| (lane.name.as_str(), lane_identity(lane))).collect();
        OverlapUpdate { lane_identities, lane_forecast, with_uncommitted }
    }

    /// Updates the known pairs and returns the pairs to report; none if nothing has changed.
    fn update_known(&self, known: &mut KnownOverlaps) -> Option<Vec<&'a ForecastPair>> {
        let old_pairs = known.pairs.clone();
        self.remove_outdated(known);
        let positions = self.positions_by_name(known);
        let dirty: HashSet<&str> =
            self.lane_forecast.lanes.iter().filter(|l| l.uncommitted > 0).map(|l| l.lane.as_str()).collect();
        let (mut new_pairs, mut resolved) = (Vec::new(), HashSet::new());
        for pair in self.lane_forecast.pairs.iter().filter(|pair| !pair.with_base) {
            let is_uncommitted =
                || dirty.contains(pair.ours.as_str()) || dirty.contains(pair.theirs.as_str());
            match (pair.result.is_conflict(), positions.get(&sorted_pair(&pair.ours, pair.theirs.as_str()))) {
                (true, Some(position)) => known.pairs[*position].with_uncommitted &= is_uncommitted(),
                (true, None) => {
                    let Some(lanes) = self.pair_identities(pair) else { continue };
                    known.pairs.push(KnownOverlap { lanes, with_uncommitted: is_uncommitted() });
                    new_pairs.push(pair);
                }
                (false, Some(position))
                    if self.with_uncommitted || !known.pairs[*position].with_uncommitted =>
                {
                    resolved.insert(*position);
                }
                (false, _) => {}
            }
        }
        let mut positions_left = 0..;
        known.pairs.retain(|_| positions_left.next().is_none_or(|position| !resolved.contains(&position)));
        (known.pairs != old_pairs).then_some(new_pairs)
    }

    /// Removes pairs with a lane that is gone or unchanged: a lane without any change conflicts with no
    /// other.
    fn remove_outdated(&self, known: &mut KnownOverlaps) {
        let existing: HashSet<&String> = self.lane_identities.values().collect();
        let skipped = self.lane_forecast.skipped.iter();
        let unchanged: HashSet<&String> =
            skipped.filter_map(|lane| self.lane_identities.get(lane.lane.as_str())).collect();
        let is_outdated = |pair: &KnownOverlap| {
            (self.with_uncommitted || !pair.with_uncommitted)
                && pair.lanes.iter().any(|lane| unchanged.contains(lane))
        };
        known
            .pairs
            .retain(|pair| pair.lanes.iter().all(|lane| existing.contains(lane)) && !is_outdated(pair));
    }

    /// Returns the position of each known pair, by the names of its lanes.
    fn positions_by_name(&self, known: &KnownOverlaps) -> HashMap<(&'a str, &'a str), usize> {
        let names: HashMap<&String, &'a str> =
            self.lane_identities.iter().map(|(name, id)| (id, *name)).collect();
        let named_position = |(position, pair): (usize, &KnownOverlap)| {
            let [first, second] = pair.lanes.each_ref().map(|id| names.get(id).copied());
            Some((sorted_pair(first?, second?), position))
        };
        known.pairs.iter().enumerate().filter_map(named_position).collect()
    }

    /// Returns the identities of both lanes, sorted; none if a lane no longer exists.
    fn pair_identities(&self, pair: &ForecastPair) -> Option<[String; 2]> {
        let id = |lane: &str| self.lane_identities.get(lane).cloned();
        let mut lanes = [id(&pair.ours)?, id(pair.theirs.as_str())?];
        lanes.sort();
        Some(lanes)
    }
}

/// Returns two names in sorted order.
fn sorted_pair<'n>(first: &'n str, second: &'n str) -> (&'n str, &'n str) {
    (first.min(second), first.max(second))
}
