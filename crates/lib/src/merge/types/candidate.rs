//! Lanes and parts of lanes that may land.

use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_store::records::lane::LaneRecord;

/// Lane that may land.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Record of the lane.
    pub lane: LaneRecord,
    /// Commit that will land.
    pub tip: CommitId,
    /// Branch that the lane lands on.
    pub onto: String,
    /// Number of times that the lane did not land because of a conflict.
    pub(crate) conflicted_landings: u32,
    /// Number of commits that the base lacks.
    pub commits: usize,
    /// Number of files that the commits change.
    pub files: usize,
    /// Part of the lane that lands; none if all of the lane lands.
    pub part: Option<LanePart>,
    /// Uncommitted work that a landing would commit first; none if it has been committed.
    pub(crate) pending_commit: Option<PendingCommit>,
}

/// Uncommitted work that a landing would commit and a dry run leaves.
#[derive(Debug, Clone)]
pub(crate) struct PendingCommit {
    /// Differences from HEAD.
    pub status: WorktreeStatus,
    /// Common ancestor of lane and base.
    pub common_ancestor: CommitId,
}

/// Part of a lane that lands separately: the commits between two of the lane's commits.
#[derive(Debug, Clone)]
pub struct LanePart {
    /// Number that identifies the part among those that land together.
    pub key: usize,
    /// Name of the lane.
    pub lane: LaneName,
    /// Commit before the part's first one.
    pub commit_before: CommitId,
    /// Last commit of the part.
    pub last_commit: CommitId,
    /// Title of the part, one line.
    pub title: String,
    /// Shell command lines that must succeed with the part.
    pub checks: Vec<String>,
    /// Keys of the parts that must land before this one.
    pub(crate) required_parts: Vec<usize>,
    /// File for the landing proof, which the landing step itself writes.
    pub(crate) proof_path: PathBuf,
}

impl Candidate {
    /// Returns the key of the candidate's part; none if all of the lane lands.
    pub(crate) fn part_key(&self) -> Option<usize> {
        self.part.as_ref().map(|part| part.key)
    }

    /// Returns whether `other` is the same part of the same lane.
    pub(crate) fn is_same_part(&self, other: &Candidate) -> bool {
        (&self.lane.name, self.part_key()) == (&other.lane.name, other.part_key())
    }
}
