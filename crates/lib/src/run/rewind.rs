//! Rewind of a lane to its state before a run, so that the run can be retried. The work of the run is saved.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

use proq_git::base::head::RefMove;
use proq_git::status::status_query::status;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Repo, RepoPath};
use proq_store::base::id::new_id;
use proq_store::records::lane::LaneRecord;

use crate::lane::{Error, Project};
use crate::operation::run_operation::operate;

/// Saved work of a run that was rewound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RewindOutcome {
    /// Ref that keeps the commits of the run.
    pub saved_ref: Option<String>,
    /// Snapshot id of the uncommitted changes. Ignored files stay in the worktree.
    pub snapshot_id: Option<String>,
}

impl RewindOutcome {
    /// Describes where the work was saved, with the commands that show it, or `None` if there was none.
    pub fn describe(&self) -> Option<String> {
        let saved = self.saved_ref.as_ref().map(|name| format!("its commits are saved: git log {name}"));
        let snap = self
            .snapshot_id
            .as_ref()
            .map(|id| format!("its uncommitted changes are saved: git proq snap show {id}"));
        let parts: Vec<String> = saved.into_iter().chain(snap).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Size of a file in bytes, and its ctime in seconds and nanoseconds.
type DirtyFileStamp = (u64, i64, i64);

/// Fingerprint of a lane between two of its runs, to detect work that was done in it in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaneFingerprint {
    tip: Option<CommitId>,
    /// Uncommitted paths, each with a stamp that changes when the file is written.
    dirty_files: Vec<(RepoPath, Option<DirtyFileStamp>)>,
}

impl LaneFingerprint {
    /// Captures the current fingerprint of a lane.
    pub fn capture(repo: &Repo, lane: &LaneRecord) -> Result<LaneFingerprint, Error> {
        let stamp = |path: &RepoPath| {
            let meta = path.to_fs_path(&lane.path).symlink_metadata().ok()?;
            Some((meta.size(), meta.ctime(), meta.ctime_nsec()))
        };
        let paths = status(repo, &lane.path, true)?.paths();
        Ok(LaneFingerprint {
            tip: repo.branch_tip(&lane.kind.branch)?,
            dirty_files: paths.into_iter().map(|path| (path.clone(), stamp(&path))).collect(),
        })
    }

    /// Returns the hash of the fingerprint as 16 hex digits, the form in which records keep it. The hashed text
    /// is the one of the first version, since a review may outlive an update of git-proq.
    pub fn hash_text(&self) -> String {
        let tip = self.tip.map(CommitId::oid);
        let mut hasher = DefaultHasher::new();
        format!("Traces {{ tip: {tip:?}, files: {:?} }}", self.dirty_files).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }
}

/// Rewinds a lane's branch and files to the commit `target`, as one operation. The caller holds the lane's
/// run lock.
///
/// # Errors
/// [`Error::OffBranch`] when HEAD is not on the lane's branch, and the refusals of a transition. Nothing was
/// changed then.
pub(crate) fn rewind_lane(
    project: &Project,
    lane: &LaneRecord,
    target: CommitId,
    reason: &str,
) -> Result<RewindOutcome, Error> {
    let worktrees = WorktreeList::read(&project.repo)?;
    let on_branch = worktrees.with_top_folder(&lane.path).is_some_and(|w| w.is_on_branch(&lane.kind.branch));
    let tip = project.repo.branch_tip(&lane.kind.branch)?.filter(|_| on_branch);
    let tip =
        tip.ok_or_else(|| Error::OffBranch { name: lane.name.clone(), branch: lane.kind.branch.clone() })?;
    operate(project, "retry", |op| {
        op.set_reflog_message(format!("git-proq retry: {reason}"));
        let snap = op.take_snapshot(&lane.path, tip, reason, &[])?.map(|snap| snap.id);
        // Commits that `target` descends from are not lost.
        let abandons_commits = tip != target && !project.repo.is_ancestor(tip, target)?;
        let saved_ref = abandons_commits.then(|| format!("refs/proq/saved/{}-{}", lane.name, new_id()));
        if let Some(saved_ref) = &saved_ref {
            op.anchor(saved_ref, tip)?;
        }
        if let Some(snap) = &snap {
            op.park_snapshot_files(&lane.path, snap)?;
        }
        if tip != target {
            op.transition(&lane.path, tip, target, RefMove::Branch(lane.kind.branch.clone()))?;
        }
        Ok(RewindOutcome { saved_ref, snapshot_id: snap })
    })
}

#[cfg(test)]
mod tests {
    use proq_git::Oid;

    use super::*;

    #[test]
    fn the_hash_of_a_fingerprint_is_the_one_in_older_records() {
        let fingerprint = LaneFingerprint {
            tip: Oid::from_hex("ab".repeat(20).as_bytes()).map(CommitId::from_oid),
            dirty_files: vec![
                (RepoPath::new("src/a.rs"), Some((12, 1_700_000_000, 5))),
                (RepoPath::new("gone"), None),
            ],
        };
        assert_eq!(fingerprint.hash_text(), "324347ea4f074ad9");
    }
}
