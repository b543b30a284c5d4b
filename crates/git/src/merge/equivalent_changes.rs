//! Detection of a branch's changes on its base under other commit ids: picked, rebased or squashed, commit
//! for commit or as one.
//!
//! `git cherry` reports a change as present even if it was picked and later reverted. git-proq reports it as
//! missing: the branch may be the last place to find a change that the base has reverted.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::patch_id::{inverse_patch_id, patch_id};
use crate::history::tree_diff::{TreeChange, TreeFile, tree_changes};
use crate::{CommitId, Error, Oid, Repo, RepoPath};

/// Maximum number of commits read on either side. Each costs a comparison of two trees, and the check should
/// take at most about a second. For a branch further from its base, the result is unknown.
const MAX_COMMITS_WALKED: usize = 1000;

/// Text that `git revert` puts into a commit message before the id of the reverted commit.
const REVERT_MESSAGE_PREFIX: &str = "This reverts commit ";

/// Paths of a change, each with the number of bytes its file grows by, modulo 2^64.
type SizeDeltas = Vec<(RepoPath, u64)>;

/// Patch ids of a change and of its revert.
struct PatchIds {
    /// Patch id of the change.
    patch_id: Oid,
    /// Patch id of the change's revert.
    revert_patch_id: Oid,
}

/// First-parent history of the base since the branch's fork point, newest first.
#[derive(Default)]
struct BaseHistory {
    /// Positions of each patch id in `commits`, newest first.
    positions_by_patch_id: HashMap<Oid, Vec<usize>>,
    /// Commits, newest first.
    base_commits: Vec<CommitId>,
    /// Reverted commits, each with the position of the newest commit that names it as reverted.
    revert_positions: HashMap<CommitId, usize>,
}

impl Repo {
    /// Returns whether `base` has all changes of `tip` under other ids. Each commit of the branch, or all of
    /// them squashed, must be in the base's first-parent history, identical to the last white space, and not
    /// reverted since. A merge counts as the changes it adds. Returns false where this is unknown: the
    /// history is shallow or too long, or the branch has merges.
    ///
    /// # Errors
    /// Fails when an object cannot be read.
    pub fn has_equivalent_changes(&self, base: CommitId, tip: CommitId) -> Result<bool, Error> {
        if self.has_altered_history()? {
            return Ok(false);
        }
        let Some(fork_point) = self.merge_base(base, tip)? else { return Ok(false) };
        let touched: HashSet<RepoPath> =
            tree_changes(self, fork_point, base)?.into_iter().map(|change| change.path).collect();
        if touched.is_empty() {
            return Ok(false);
        }
        let branch_changes = tree_changes(self, fork_point, tip)?;
        // A file that is unchanged on the base has none of the branch's changes, or they were reverted.
        if branch_changes.is_empty() || !branch_changes.iter().all(|change| touched.contains(&change.path)) {
            return Ok(false);
        }
        let (Some(branch_commits), Some(base_commits)) =
            (self.commits_not_in(tip, base)?, self.commits_not_in(base, tip)?)
        else {
            return Ok(false);
        };
        let mut wanted_deltas = BTreeSet::from(self.size_deltas(&branch_changes));
        let Some(squashed) = self.patch_ids(&branch_changes) else { return Ok(false) };
        let (mut patches, mut is_linear) = (Vec::new(), true);
        for (commit, parents) in &branch_commits {
            let [parent] = parents.as_slice() else {
                is_linear = false;
                continue;
            };
            let changes = tree_changes(self, *parent, *commit)?;
            wanted_deltas.extend(self.size_deltas(&changes));
            patches.extend(self.patch_ids(&changes));
        }
        let (squashed, base_history) =
            ([squashed], self.read_base_history(base, &base_commits, &wanted_deltas)?);
        Ok(base_history.has_all(&squashed, &patches)
            || (is_linear && base_history.has_all(&patches, &squashed)))
    }

    /// Returns the commits reachable from `tip` and not from `excluded`, with their parents; `None` when
    /// there are more than [`MAX_COMMITS_WALKED`].
    fn commits_not_in(
        &self,
        tip: CommitId,
        excluded: CommitId,
    ) -> Result<Option<HashMap<CommitId, Vec<CommitId>>>, Error> {
        let describe_object = || format!("history of {}", tip.short());
        let walk = self
            .gix
            .rev_walk([tip.0])
            .with_hidden([excluded.0])
            .all()
            .map_err(Error::object(describe_object()))?;
        let mut out = HashMap::new();
        for step in walk {
            let info = step.map_err(Error::object(describe_object()))?;
            if out.len() == MAX_COMMITS_WALKED {
                return Ok(None);
            }
            out.insert(CommitId(info.id), info.parent_ids.iter().map(|id| CommitId(*id)).collect());
        }
        Ok(Some(out))
    }

    fn patch_ids(&self, changes: &[TreeChange]) -> Option<PatchIds> {
        Some(PatchIds {
            patch_id: patch_id(self, changes)?,
            revert_patch_id: inverse_patch_id(self, changes)?,
        })
    }

    /// Returns by how many bytes each file grows in a change, and in its revert. Two changes with equal patch
    /// ids have equal growth, which is quick to compute.
    fn size_deltas(&self, changes: &[TreeChange]) -> [SizeDeltas; 2] {
        let size = |side: Option<TreeFile>| side.map_or(0, |s| self.object_size(s.oid).unwrap_or_default());
        let growth = |c: &TreeChange| size(c.new).wrapping_sub(size(c.old));
        let deltas = |sign: fn(u64) -> u64| -> SizeDeltas {
            changes.iter().map(|c| (c.path.clone(), sign(growth(c)))).collect()
        };
        [deltas(|n| n), deltas(u64::wrapping_neg)]
    }

    /// Reads the base's first-parent history. Computes patch ids only for changes whose paths and sizes match
    /// one of `wanted_deltas`.
    fn read_base_history(
        &self,
        base: CommitId,
        parents_by_commit: &HashMap<CommitId, Vec<CommitId>>,
        wanted_deltas: &BTreeSet<SizeDeltas>,
    ) -> Result<BaseHistory, Error> {
        let paths: HashSet<Vec<&RepoPath>> =
            wanted_deltas.iter().map(|shape| shape.iter().map(|(path, _)| path).collect()).collect();
        let mut history = BaseHistory::default();
        let mut commit = base;
        while let Some(parent) = parents_by_commit.get(&commit).and_then(|parents| parents.first()) {
            let position = history.base_commits.len();
            history.base_commits.push(commit);
            for reverted_id in reverted_commits(&self.commit_text(commit)?.message) {
                history.revert_positions.entry(reverted_id).or_insert(position);
            }
            let changes = tree_changes(self, *parent, commit)?;
            if paths.contains(&changes.iter().map(|c| &c.path).collect::<Vec<_>>())
                && wanted_deltas.contains(&self.size_deltas(&changes)[0])
                && let Some(id) = patch_id(self, &changes)
            {
                history.positions_by_patch_id.entry(id).or_default().push(position);
            }
            commit = *parent;
        }
        Ok(history)
    }
}

impl BaseHistory {
    /// Returns whether this history has all of the `wanted` changes, and none was reverted later, alone or as
    /// part of `alternatives`.
    fn has_all(&self, wanted: &[PatchIds], alternatives: &[PatchIds]) -> bool {
        let mut used: HashMap<Oid, usize> = HashMap::new();
        let mut oldest = None;
        for patch in wanted {
            let nth = used.entry(patch.patch_id).or_default();
            let Some(position) =
                self.positions_by_patch_id.get(&patch.patch_id).and_then(|all| all.get(*nth)).copied()
            else {
                return false;
            };
            *nth += 1;
            let revert = self.revert_positions.get(&self.base_commits[position]);
            if self.has_newer(patch.revert_patch_id, position) || revert.is_some_and(|at| *at < position) {
                return false;
            }
            oldest = oldest.max(Some(position));
        }
        let Some(oldest) = oldest else { return false };
        !alternatives.iter().any(|other| self.has_newer(other.revert_patch_id, oldest))
    }

    /// Returns whether a change with this patch id is newer than the commit at `position`.
    fn has_newer(&self, id: Oid, position: usize) -> bool {
        self.positions_by_patch_id.get(&id).and_then(|all| all.first()).is_some_and(|first| *first < position)
    }
}

/// Returns the ids of the commits that a message names as reverted.
fn reverted_commits(message: &str) -> impl Iterator<Item = CommitId> {
    message.split(REVERT_MESSAGE_PREFIX).skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        CommitId::from_hex(&rest.as_bytes()[..end])
    })
}
