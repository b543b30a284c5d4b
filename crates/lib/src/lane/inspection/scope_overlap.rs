//! Overlap of a new lane's scope with other lanes: lanes that have changed files in it, or whose own scope
//! meets it.

use std::cell::OnceCell;

use proq_base::lane_name::LaneName;
use proq_git::history::tree_diff;
use proq_git::status::scope::Scope;
use proq_git::status::status_query;
use proq_git::{CommitId, Repo, RepoPath};
use proq_store::records::lane::LaneRecord;

use super::evidence::has_landed_on;
use crate::lane::state::lane_state::effective_state;
use crate::lane::{Error, Project};

/// Lane that may change the same files as a new lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlappingLane {
    /// Name of the lane.
    pub lane: LaneName,
    /// Whether the lane's agent runs; otherwise the lane has work that has not landed.
    pub is_busy: bool,
    /// Glob of the new lane's scope that overlaps.
    pub glob: String,
    /// Files or glob of this lane that overlap with `glob`.
    pub overlap: ScopeOverlap,
}

/// Part of a lane that overlaps with another lane's scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeOverlap {
    /// Files in the scope that the lane has changed since it left its base, including uncommitted ones.
    Files(Vec<RepoPath>),
    /// Glob of the lane's own scope.
    Scope(String),
}

/// Returns the lanes that are running or have unlanded work, and overlap with `scope`: they have changed
/// files in it, or their own scope overlaps by name or at a file of the commit `start`. Running lanes come
/// first.
///
/// # Errors
/// Fails when a lane's record or its changes cannot be read.
pub fn overlapping_lanes(
    project: &Project,
    start: CommitId,
    scope: &Scope,
) -> Result<Vec<OverlappingLane>, Error> {
    let mut lanes = Vec::new();
    for lane in project.owned_lanes()? {
        let is_busy = effective_state(project, &lane)?.0.is_busy();
        lanes.push((lane, is_busy));
    }
    let folders: Vec<_> = lanes.iter().map(|(lane, _)| lane.path.clone()).collect();
    let files = OnceCell::new();
    let mut out = Vec::new();
    let committed_of_all =
        || lanes.iter().map(|(lane, _)| unlanded_paths(&project.repo, lane)).collect::<Vec<_>>();
    let (statuses, unlanded) = status_query::query_statuses(&project.repo, &folders, committed_of_all);
    for (((lane, is_busy), dirty), changed) in lanes.into_iter().zip(statuses).zip(unlanded) {
        let mut changed = changed?;
        changed.extend(dirty.map(|dirty| dirty.paths()).unwrap_or_default());
        changed.sort();
        changed.dedup();
        if !is_busy && changed.is_empty() {
            continue;
        }
        if let Some((glob, overlap)) =
            first_overlap(scope, &lane, &changed, &|| start_files(&project.repo, start, &files))?
        {
            out.push(OverlappingLane { lane: lane.name, is_busy, glob, overlap });
        }
    }
    out.sort_by_key(|lane| !lane.is_busy);
    Ok(out)
}

/// Returns the files that a lane's commits change, or none if the commits have landed.
fn unlanded_paths(repo: &Repo, lane: &LaneRecord) -> Result<Vec<RepoPath>, Error> {
    let Some(tip) = repo.branch_tip(&lane.kind.branch)? else { return Ok(Vec::new()) };
    let mut from = lane.start;
    if let Some(base) = repo.branch_tip(&lane.base)? {
        if has_landed_on(lane, repo, tip, base)? {
            return Ok(Vec::new());
        }
        // The current fork point: the base may have been merged into the lane since its start.
        from = repo.merge_base(tip, base)?.unwrap_or(from);
    }
    Ok(tree_diff::tree_changes(repo, from, tip)?.into_iter().map(|change| change.path).collect())
}

/// Returns the paths of all files of the commit `start`, read once into `files`.
fn start_files<'f>(
    repo: &Repo,
    start: CommitId,
    files: &'f OnceCell<Vec<RepoPath>>,
) -> Result<&'f [RepoPath], Error> {
    if files.get().is_none() {
        drop(files.set(tree_diff::tree_paths(repo, start)?));
    }
    Ok(files.get().map(Vec::as_slice).unwrap_or_default())
}

/// Returns the first glob of `scope` that overlaps with a lane, and the overlap. `files` returns the existing
/// files.
fn first_overlap<'f>(
    scope: &Scope,
    lane: &LaneRecord,
    changed: &[RepoPath],
    files: &dyn Fn() -> Result<&'f [RepoPath], Error>,
) -> Result<Option<(String, ScopeOverlap)>, Error> {
    if let Some(glob) = changed.iter().find_map(|path| scope.matching_glob(path)) {
        let inside = changed.iter().filter(|path| scope.matching_glob(path).is_some()).cloned().collect();
        return Ok(Some((glob.to_owned(), ScopeOverlap::Files(inside))));
    }
    // Globs written by a later version of git-proq may not parse and are ignored.
    let Ok(lane_scope) = Scope::parse(&lane.scope) else { return Ok(None) };
    if lane.scope.is_empty() {
        return Ok(None);
    }
    let overlap = match scope.overlapping_globs(&lane_scope) {
        None => scope.overlapping_globs_at(&lane_scope, files()?),
        overlap => overlap,
    };
    Ok(overlap.map(|(glob, lane_glob)| (glob.to_owned(), ScopeOverlap::Scope(lane_glob.to_owned()))))
}
