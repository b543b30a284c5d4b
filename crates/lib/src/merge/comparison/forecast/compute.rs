//! Computation of a forecast: every lane with its base and with every other lane, the cheapest method first.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use proq_base::lane_name::LaneName;
use proq_git::history::fork_points::CommonAncestor;
use proq_git::merge::forecast::{MergeInput, PathConflict, forecast_environment, forecast_merges};
use proq_git::merge::git_forecast::{GitForecast, forecast_with_git, write_temporary_commit};
use proq_git::repository::objects::TempObjectStore;
use proq_git::{CommitId, Oid, Repo, TreeId};
use proq_store::operations::scratch::ScratchDir;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::LaneRecord;

use super::cache::ForecastCache;
use super::changed_lines::{LineCounting, count_lines};
use super::disjoint::find_disjoint;
use super::lanes::{BaseGroup, ForecastLane, GatheredLanes, TempFiles, gather_lanes};
use super::report::{ComparedLane, Forecast, ForecastPair, PairResult};
use crate::lane::Project;
use crate::merge::Error;

/// Options of a forecast.
#[derive(Debug, Clone)]
pub struct ForecastRequest {
    /// Lanes to compare.
    pub lanes: Vec<LaneRecord>,
    /// Whether uncommitted work is included.
    pub include_uncommitted: bool,
    /// Time limit; with one, git is not started and slow merges stay unknown.
    pub time_limit: Option<Duration>,
    /// Name of the one lane to compare with the others; none for all pairs.
    pub only_lane: Option<LaneName>,
    /// Whether changed lines are counted.
    pub line_counting: LineCounting,
}

/// Minimum number of new entries for which a time-limited forecast writes the cache file.
const MIN_ENTRIES_TO_SAVE: usize = 100;

/// Forecasts whether lanes would merge with their base and with each other. No lane and no base changes.
pub fn forecast_lanes(project: &Project, request: ForecastRequest) -> Result<Forecast, Error> {
    let deadline = request.time_limit.map(|time| Instant::now() + time);
    let layout = project.store.layout();
    let mut cache =
        ForecastCache::read(layout, project.repo.fingerprint(&[&forecast_environment(&project.repo)?])?);
    let mut gathered = gather_lanes(&project.repo, request.lanes, &mut cache)?;
    let mut temp_storage = TempStorage::default();
    if request.include_uncommitted {
        let dirty = gathered.dirty_worktrees(&project.repo);
        if !dirty.is_empty() {
            gathered.add_uncommitted(&project.repo, &dirty, &temp_storage.open_or_create(project)?);
        }
    }
    gathered.skip_unchanged();
    let mut pending_pairs = list_pairs(&project.repo, &gathered.groups, request.only_lane.as_ref())?;
    mark_disjoint_clean(&project.repo, &mut pending_pairs, temp_storage.objects(), deadline, &mut cache)?;
    for pair in pending_pairs.iter_mut().filter(|m| m.path_conflicts.is_none()) {
        pair.cache_key = pair.compute_cache_key(&project.repo)?;
        pair.path_conflicts = pair.cache_key.and_then(|key| cache.find_conflicts(key));
    }
    forecast_in_process(&project.repo, &mut pending_pairs, temp_storage.objects(), deadline, &mut cache)?;
    if deadline.is_none() {
        forecast_by_git(project, &mut pending_pairs, &mut temp_storage, &mut cache)?;
    }
    proq_base::interrupt::require_no_signal().map_err(Error::from)?;
    let changes = pending_pairs.iter().filter(|pair| pair.ours.is_none()).filter_map(|pair| {
        let input = pair.merge_input?;
        Some((pair.theirs.compared.lane.clone(), [input.base, input.theirs]))
    });
    let lines = count_lines(&project.repo, changes.collect(), request.line_counting, &mut cache)?;
    let min_added = if deadline.is_none() || lines.is_costly { 1 } else { MIN_ENTRIES_TO_SAVE };
    cache.save(layout, min_added);
    let pairs = pending_pairs.into_iter().map(PendingPair::into_forecast).collect();
    let GatheredLanes { groups, skipped: left_out } = gathered;
    let with_lines = |s: ForecastLane| ComparedLane { lines: lines.of_lane(&s.compared.lane), ..s.compared };
    let lanes = groups.into_iter().flat_map(|g| g.lanes).map(with_lines).collect();
    Ok(Forecast { lanes, skipped: left_out, pairs })
}

/// Lane with its base or with another lane, while their merge is being forecast.
struct PendingPair<'g> {
    group: &'g BaseGroup<'g>,
    /// Lane that `theirs` would be merged into; none if that is the base itself.
    ours: Option<&'g ForecastLane>,
    theirs: &'g ForecastLane,
    /// Common ancestor of both sides.
    common: CommonAncestor,
    /// Trees of the merge, if there is a single merge base.
    merge_input: Option<MergeInput>,
    /// Cache key, if the sides are not disjoint.
    cache_key: Option<Oid>,
    /// Conflicting paths, empty for a clean merge; none while there is no result.
    path_conflicts: Option<Vec<PathConflict>>,
}

impl PendingPair<'_> {
    /// Returns the cache key of the merge; none if both sides have no history in common.
    fn compute_cache_key(&self, repo: &Repo) -> Result<Option<Oid>, Error> {
        let ids = match (self.common, self.merge_input) {
            (CommonAncestor::Unrelated, _) => return Ok(None),
            (_, Some(three)) => [three.base, three.ours, three.theirs].map(Oid::from).to_vec(),
            (_, None) => {
                let base_ids = (self.group.tip, self.group.tree);
                let (tip, tree) = self.ours.map_or(base_ids, |s| (s.compared.tip, s.compared.tree));
                vec![tip.oid(), tree.oid(), self.theirs.compared.tip.oid(), self.theirs.compared.tree.oid()]
            }
        };
        let id_bytes: Vec<&[u8]> = ids.iter().map(Oid::as_bytes).collect();
        repo.fingerprint(&id_bytes).map(Some).map_err(Error::from)
    }

    /// Returns the pair with its outcome, which is unknown if there is no result.
    fn into_forecast(self) -> ForecastPair {
        ForecastPair {
            ours: self.ours.map_or_else(|| self.group.base.clone(), |s| s.compared.lane.to_string()),
            theirs: self.theirs.compared.lane.clone(),
            with_base: self.ours.is_none(),
            result: match (self.path_conflicts, self.common) {
                (Some(path_conflicts), _) => PairResult::from_conflicts(path_conflicts),
                (None, CommonAncestor::Unrelated) => {
                    PairResult::Unknown { reason: "they have no common history".into() }
                }
                (None, _) => PairResult::Unknown { reason: "git could not merge them".into() },
            },
        }
    }
}

/// Lists each lane with its base and with every other lane of that base, or only `only_lane` with the others.
fn list_pairs<'g>(
    repo: &Repo,
    groups: &'g [BaseGroup<'g>],
    only_lane: Option<&LaneName>,
) -> Result<Vec<PendingPair<'g>>, Error> {
    let is_requested = |lane: &ForecastLane| only_lane == Some(&lane.compared.lane);
    let mut trees = HashMap::new();
    let mut out = Vec::new();
    for group in groups {
        for theirs in group.lanes.iter().filter(|_| only_lane.is_none()) {
            out.push(create_pair(repo, group, None, theirs, &mut trees)?);
        }
        for (index, ours) in group.lanes.iter().enumerate() {
            let others = group.lanes[index + 1..].iter();
            for theirs in
                others.filter(|theirs| only_lane.is_none() || is_requested(ours) || is_requested(theirs))
            {
                out.push(create_pair(repo, group, Some(ours), theirs, &mut trees)?);
            }
        }
    }
    Ok(out)
}

/// Pairs `theirs` with `ours` or, without `ours`, with the base. `trees` caches the trees of common
/// ancestors.
fn create_pair<'g>(
    repo: &Repo,
    group: &'g BaseGroup<'g>,
    ours: Option<&'g ForecastLane>,
    theirs: &'g ForecastLane,
    trees: &mut HashMap<CommitId, TreeId>,
) -> Result<PendingPair<'g>, Error> {
    let common = match ours {
        None => group.fork_points.common_ancestor_with_base(&theirs.branch_fork)?,
        Some(ours) => group.fork_points.common_ancestor(&ours.branch_fork, &theirs.branch_fork)?,
    };
    let our_tree = ours.map_or(group.tree, |s| s.compared.tree);
    let their_tree = theirs.compared.tree;
    let three = match common {
        CommonAncestor::Single(base) => {
            let base = match trees.get(&base) {
                Some(tree) => *tree,
                None => *trees.entry(base).or_insert(repo.tree_of(base)?),
            };
            Some(MergeInput { base, ours: our_tree, theirs: their_tree })
        }
        CommonAncestor::Ambiguous | CommonAncestor::Unrelated => None,
    };
    Ok(PendingPair { group, ours, theirs, common, merge_input: three, cache_key: None, path_conflicts: None })
}

/// Sets the result of pairs whose sides touched different paths: a clean merge.
fn mark_disjoint_clean(
    repo: &Repo,
    pairs: &mut [PendingPair<'_>],
    temp_objects: Option<&TempObjectStore>,
    deadline: Option<Instant>,
    cache: &mut ForecastCache,
) -> Result<(), Error> {
    let unresolved: Vec<&mut PendingPair<'_>> =
        pairs.iter_mut().filter(|m| m.merge_input.is_some()).collect();
    let merges: Vec<MergeInput> = unresolved.iter().filter_map(|m| m.merge_input).collect();
    let disjoint = find_disjoint(repo, temp_objects, &merges, deadline, cache)?;
    for (pair, _) in unresolved.into_iter().zip(disjoint).filter(|(_, apart)| *apart) {
        pair.path_conflicts = Some(Vec::new());
    }
    Ok(())
}

/// Forecasts the pairs that git-proq can merge without starting git.
fn forecast_in_process(
    repo: &Repo,
    pairs: &mut [PendingPair<'_>],
    temp_objects: Option<&TempObjectStore>,
    deadline: Option<Instant>,
    cache: &mut ForecastCache,
) -> Result<(), Error> {
    let unresolved: Vec<&mut PendingPair<'_>> =
        pairs.iter_mut().filter(|m| m.path_conflicts.is_none() && m.merge_input.is_some()).collect();
    let merges: Vec<MergeInput> = unresolved.iter().filter_map(|m| m.merge_input).collect();
    let results = forecast_merges(repo, temp_objects, &merges, deadline)?;
    for (pair, path_conflicts) in unresolved.into_iter().zip(results) {
        pair.set_and_cache_result(path_conflicts, cache);
    }
    Ok(())
}

/// Forecasts the pairs that still have no result by running git.
fn forecast_by_git(
    project: &Project,
    pending_pairs: &mut [PendingPair<'_>],
    temp_storage: &mut TempStorage,
    cache: &mut ForecastCache,
) -> Result<(), Error> {
    let unresolved: Vec<&mut PendingPair<'_>> = pending_pairs
        .iter_mut()
        .filter(|m| m.path_conflicts.is_none() && m.common != CommonAncestor::Unrelated)
        .collect();
    if unresolved.is_empty() {
        return Ok(());
    }
    let temp_files = temp_storage.open_or_create(project)?;
    let mut commits = HashMap::new();
    let mut commit = |subject: &ForecastLane| -> Result<CommitId, Error> {
        let compared = &subject.compared;
        if compared.uncommitted == 0 {
            return Ok(compared.tip);
        }
        if let Some(known) = commits.get(&compared.lane) {
            return Ok(*known);
        }
        let temp_commit =
            write_temporary_commit(&project.repo, temp_files.objects, compared.tree, compared.tip)?;
        commits.insert(compared.lane.clone(), temp_commit);
        Ok(temp_commit)
    };
    let mut commit_pairs = Vec::new();
    for pair in &unresolved {
        let ours = pair.ours.map_or(Ok(pair.group.tip), &mut commit)?;
        commit_pairs.push((ours, commit(pair.theirs)?));
    }
    let answers = forecast_with_git(&project.repo, temp_files.objects, temp_files.scratch, &commit_pairs)?;
    for (pair, answer) in unresolved.into_iter().zip(answers) {
        let path_conflicts = match answer {
            GitForecast::Merged(clashes) => Some(clashes),
            GitForecast::Failed => None,
        };
        pair.set_and_cache_result(path_conflicts, cache);
    }
    Ok(())
}

impl PendingPair<'_> {
    /// Sets the result, none if it could not be computed, and adds it to the cache if the pair has a key.
    fn set_and_cache_result(&mut self, path_conflicts: Option<Vec<PathConflict>>, cache: &mut ForecastCache) {
        if let (Some(key), Some(path_conflicts)) = (self.cache_key, &path_conflicts) {
            cache.add_conflicts(key, path_conflicts);
        }
        self.path_conflicts = path_conflicts;
    }
}

/// Temporary folder and object store, created on first use and removed on drop.
#[derive(Default)]
struct TempStorage(Option<(TempObjectStore, ScratchDir)>);

impl TempStorage {
    fn open_or_create(&mut self, project: &Project) -> Result<TempFiles<'_>, Error> {
        let storage = if let Some(made) = self.0.take() {
            made
        } else {
            let scratch = project.store.layout().create_scratch()?;
            (TempObjectStore::new(&project.repo, &Layout::scratch_objects(scratch.path()))?, scratch)
        };
        let (objects, scratch) = self.0.insert(storage);
        Ok(TempFiles { objects, scratch: scratch.path() })
    }

    fn objects(&self) -> Option<&TempObjectStore> {
        self.0.as_ref().map(|(objects, _)| objects)
    }
}
