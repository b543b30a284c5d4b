//! Owns bringing a lane back to where it was before a run, so that the run can be tried again. Nothing of what it did is lost.

use std::os::unix::fs::MetadataExt;

use super::operation::operate;
use super::{Error, Project};
use crate::git::{Oid, RefMove, RepoPath, WorktreeList, status};
use crate::store::new_id;
use crate::store::records::LaneRecord;

/// Where the work of a run went that was taken out of its lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PutBack {
    /// The ref that keeps its commits.
    pub(crate) saved: Option<String>,
    /// The snapshot that keeps what was uncommitted; ignored files stay where they are.
    pub(crate) snap: Option<String>,
}

impl PutBack {
    /// How to get at it, in a few words; none where there was nothing.
    pub(crate) fn in_words(&self) -> Option<String> {
        let saved = self.saved.as_ref().map(|name| format!("its commits are kept: git log {name}"));
        let snap =
            self.snap.as_ref().map(|id| format!("what was uncommitted is kept: git proq snap show {id}"));
        let all: Vec<String> = saved.into_iter().chain(snap).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// A file's size, and when it changed.
type Stamp = (u64, i64, i64);

/// What a lane is like between two of its runs, to know whether somebody worked in it meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Traces {
    tip: Option<Oid>,
    /// What is uncommitted, each with what changes when it is written to.
    files: Vec<(RepoPath, Option<Stamp>)>,
}

impl Traces {
    /// Those of a lane now.
    pub(crate) fn of(project: &Project, lane: &LaneRecord) -> Result<Traces, Error> {
        let stamp = |path: &RepoPath| {
            let meta = path.under(&lane.path).symlink_metadata().ok()?;
            Some((meta.size(), meta.ctime(), meta.ctime_nsec()))
        };
        let paths = status(&project.repo, &lane.path, true)?.paths();
        Ok(Traces {
            tip: project.repo.branch_tip(&lane.place.branch)?,
            files: paths.into_iter().map(|path| (path.clone(), stamp(&path))).collect(),
        })
    }
}

/// Brings a lane's branch and files to `to`, as one operation. The caller holds the lane's run lock.
///
/// # Errors
/// [`Error::OffBranch`] when HEAD is not on the lane's branch; whatever a transition refuses. Then nothing was changed.
pub(crate) fn put_back(project: &Project, lane: &LaneRecord, to: Oid, why: &str) -> Result<PutBack, Error> {
    let worktrees = WorktreeList::read(&project.repo)?;
    let on_branch = worktrees.at(&lane.path).is_some_and(|w| w.is_on(&lane.place.branch));
    let tip = project.repo.branch_tip(&lane.place.branch)?.filter(|_| on_branch);
    let tip =
        tip.ok_or_else(|| Error::OffBranch { name: lane.name.clone(), branch: lane.place.branch.clone() })?;
    operate(project, "retry", |op| {
        op.set_why(format!("git-proq retry: {why}"));
        let snap = op.snapshot(&lane.path, tip, why, &[])?.map(|snap| snap.id);
        // What `to` goes on from is not gone.
        let leaves = tip != to && !project.repo.is_ancestor(tip, to)?;
        let saved = leaves.then(|| format!("refs/proq/saved/{}-{}", lane.name, new_id()));
        if let Some(saved) = &saved {
            op.anchor(saved, tip)?;
        }
        if let Some(snap) = &snap {
            op.clear(&lane.path, snap)?;
        }
        if tip != to {
            op.transition(&lane.path, tip, to, RefMove::Branch(lane.place.branch.clone()))?;
        }
        Ok(PutBack { saved, snap })
    })
}
