//! Lanes that a forecast compares: their commits and their uncommitted work.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_git::history::fork_points::{BranchFork, ForkPointLookup};
use proq_git::merge::uncommitted::{UncommittedWorktree, write_uncommitted_trees};
use proq_git::repository::objects::TempObjectStore;
use proq_git::status::status_query::query_statuses;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_git::{CommitId, Repo, TreeId};
use proq_store::records::lane::LaneRecord;

use super::cache::ForecastCache;
use super::report::{ComparedLane, SkippedLane};
use crate::merge::Error;

/// Lane that a forecast compares with its base and with other lanes.
pub(crate) struct ForecastLane {
    /// Entry of the lane in the forecast.
    pub compared: ComparedLane,
    /// Commits that the lane has on top of its base.
    pub(crate) branch_fork: BranchFork,
    /// Branch of the lane.
    branch: String,
    /// Worktree of the lane.
    path: PathBuf,
}

/// Lanes of one base.
pub(crate) struct BaseGroup<'a> {
    /// Name of the base.
    pub base: String,
    /// Tip of the base.
    pub tip: CommitId,
    /// Tree of the base's tip.
    pub tree: TreeId,
    /// Commits at which lanes forked from the base.
    pub fork_points: ForkPointLookup<'a>,
    pub lanes: Vec<ForecastLane>,
}

/// Temporary storage for uncommitted work during a forecast.
pub struct TempFiles<'a> {
    /// Store for git objects.
    pub objects: &'a TempObjectStore,
    /// Folder for all other files.
    pub scratch: &'a Path,
}

/// Requested lanes by base, and the lanes that cannot be compared.
pub(crate) struct GatheredLanes<'a> {
    pub groups: Vec<BaseGroup<'a>>,
    pub skipped: Vec<SkippedLane>,
}

/// Groups the lanes by base. Uncommitted work is not read here.
pub(crate) fn gather_lanes<'p>(
    repo: &'p Repo,
    lanes: Vec<LaneRecord>,
    cache: &mut ForecastCache,
) -> Result<GatheredLanes<'p>, Error> {
    let mut out = GatheredLanes { groups: Vec::new(), skipped: Vec::new() };
    let mut groups: BTreeMap<String, Option<BaseGroup<'_>>> = BTreeMap::new();
    for lane in lanes {
        let mut skip = |reason: String| out.skipped.push(SkippedLane { lane: lane.name.clone(), reason });
        if !groups.contains_key(&lane.base) {
            groups.insert(lane.base.clone(), base_group(repo, &lane.base)?);
        }
        let Some(Some(group)) = groups.get_mut(&lane.base) else {
            skip(format!("its base '{}' is missing", lane.base));
            continue;
        };
        let Some(tip) = repo.branch_tip(&lane.kind.branch)? else {
            skip(format!("its branch {} is missing", lane.kind.branch));
            continue;
        };
        let (tree, fork) = tree_and_fork(repo, group, tip, cache)?;
        let compared = ComparedLane {
            tree,
            commits: fork.commit_count(),
            uncommitted: 0,
            lines: None,
            note: None,
            lane: lane.name,
            base: lane.base,
            tip,
        };
        group.lanes.push(ForecastLane {
            compared,
            branch_fork: fork,
            branch: lane.kind.branch,
            path: lane.path,
        });
    }
    out.groups = groups.into_values().flatten().collect();
    Ok(out)
}

/// Returns the tree of a lane's tip and the lane's fork from its base, from the cache if neither has moved.
fn tree_and_fork(
    repo: &Repo,
    group: &BaseGroup<'_>,
    tip: CommitId,
    cache: &mut ForecastCache,
) -> Result<(TreeId, BranchFork), Error> {
    let key = group.fork_points.cache_key(tip)?;
    let line = key.and_then(|key| cache.find_line(key)?.split_once(';'));
    if let Some((tree, fork_text)) = line
        && let (Some(tree), Some(fork)) =
            (TreeId::from_hex(tree.as_bytes()), BranchFork::from_cache_line(tip, fork_text))
    {
        return Ok((tree, fork));
    }
    let (tree, fork) = (repo.tree_of(tip)?, group.fork_points.find_fork(tip)?);
    if let (Some(key), Some(line)) = (key, fork.to_cache_line()) {
        cache.add_line(key, format!("{tree};{line}"));
    }
    Ok((tree, fork))
}

/// Returns the group of a base, still without lanes; none if the base is gone.
fn base_group<'a>(repo: &'a Repo, base: &str) -> Result<Option<BaseGroup<'a>>, Error> {
    let Some(tip) = repo.branch_tip(base)? else { return Ok(None) };
    Ok(Some(BaseGroup {
        base: base.to_owned(),
        tip,
        tree: repo.tree_of(tip)?,
        fork_points: ForkPointLookup::new(repo, tip)?,
        lanes: Vec::new(),
    }))
}

/// Worktree of a lane with uncommitted work.
pub(crate) struct DirtyWorktree {
    lane: LaneName,
    dir: PathBuf,
    status: WorktreeStatus,
}

impl GatheredLanes<'_> {
    /// Returns the worktrees of lanes with uncommitted work. A lane whose worktree cannot be read or is not
    /// on the lane's branch gets a note.
    pub(crate) fn dirty_worktrees(&mut self, repo: &Repo) -> Vec<DirtyWorktree> {
        let subjects: Vec<&mut ForecastLane> = self.groups.iter_mut().flat_map(|g| &mut g.lanes).collect();
        let folders: Vec<PathBuf> = subjects.iter().map(|s| s.path.clone()).collect();
        let (lane_statuses, ()) = query_statuses(repo, &folders, || ());
        let mut out = Vec::new();
        for (subject, dirt) in subjects.into_iter().zip(lane_statuses) {
            let is_on = || repo.is_head_on_branch(&subject.path, &subject.branch);
            let note = match dirt {
                None => Some("its worktree could not be inspected".to_owned()),
                Some(status) if status.is_clean() => None,
                Some(_) if !is_on() => Some(format!("its worktree is not on {}", subject.branch)),
                Some(status) => {
                    let (lane, dir) = (subject.compared.lane.clone(), subject.path.clone());
                    out.push(DirtyWorktree { lane, dir, status });
                    None
                }
            };
            subject.compared.note = note;
        }
        out
    }

    /// Replaces the compared tree of each lane in `dirty` by a tree with its uncommitted work.
    pub(crate) fn add_uncommitted(
        &mut self,
        repo: &Repo,
        dirty: &[DirtyWorktree],
        temp_files: &TempFiles<'_>,
    ) {
        let mut readable = Vec::new();
        for worktree in dirty {
            match repo.worktree_git_dir(&worktree.dir) {
                Ok(git_dir) => {
                    readable.push((
                        worktree,
                        UncommittedWorktree { dir: &worktree.dir, git_dir, status: &worktree.status },
                    ));
                }
                Err(e) => self.note_unreadable(&worktree.lane, &e.to_string()),
            }
        }
        let (lanes, worktrees): (Vec<&DirtyWorktree>, Vec<UncommittedWorktree<'_>>) =
            readable.into_iter().unzip();
        let trees = write_uncommitted_trees(repo, temp_files.objects, temp_files.scratch, &worktrees);
        for (worktree, tree) in lanes.into_iter().zip(trees) {
            match tree {
                Ok(tree) => {
                    if let Some(subject) = self.find_lane(&worktree.lane).filter(|s| s.compared.tree != tree)
                    {
                        subject.compared.tree = tree;
                        subject.compared.uncommitted = worktree.status.entries.len();
                    }
                }
                Err(e) => self.note_unreadable(&worktree.lane, &e.to_string()),
            }
        }
    }

    /// Moves lanes without any change to the skipped ones.
    pub(crate) fn skip_unchanged(&mut self) {
        for group in &mut self.groups {
            let unchanged = |s: &ForecastLane| s.compared.commits == 0 && s.compared.uncommitted == 0;
            for subject in group.lanes.extract_if(.., |s| unchanged(s)) {
                let reason = subject.compared.note.unwrap_or_else(|| "it has changed nothing".to_owned());
                self.skipped.push(SkippedLane { lane: subject.compared.lane, reason });
            }
        }
        self.skipped.sort_by(|a, b| a.lane.cmp(&b.lane));
    }

    /// Notes in the lane's entry that its uncommitted work could not be read.
    fn note_unreadable(&mut self, lane: &LaneName, reason: &str) {
        if let Some(subject) = self.find_lane(lane) {
            subject.compared.note = Some(format!("its uncommitted work could not be read: {reason}"));
        }
    }

    fn find_lane(&mut self, lane: &LaneName) -> Option<&mut ForecastLane> {
        self.groups.iter_mut().flat_map(|g| &mut g.lanes).find(|s| s.compared.lane == *lane)
    }
}
