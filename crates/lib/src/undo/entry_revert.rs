//! Reversal of one logged operation within an undo: the lanes and worktrees that it concerns.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_git::status::status_query;
use proq_store::base::operation_number::OperationNumber;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockGuard;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::preview::PreviewRecord;

use crate::errors::undo_error::UndoError;
use crate::lane::Error;
use crate::lane::inspection::evidence::RemovalEvidence;
use crate::lane::recovery;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::undo::StepUndo;
use crate::operation::journaled_operation::step::{BoxedStep, MovedBranch, MovedPath, OperationEntry};

/// Reversal of one logged operation, as part of an undo.
pub(crate) struct EntryRevert<'a, 'p> {
    pub op: &'a Operation<'p>,
    pub entry: &'a OperationEntry,
    pub number: OperationNumber,
    pub force: bool,
    /// Run locks of lanes. They are shared, since many operations may concern one lane.
    pub(crate) run_locks: &'a RefCell<BTreeMap<LaneName, LockGuard>>,
}

impl<'a, 'p> EntryRevert<'a, 'p> {
    /// Returns what the steps of the operation get to know about its reversal.
    pub(super) fn step_undo(&self) -> StepUndo<'a, 'p> {
        let EntryRevert { op, entry, number, force, .. } = *self;
        StepUndo { op, entry, number, force }
    }

    /// Returns the names of the lanes that the operation created.
    pub(crate) fn created_lanes(&self) -> Vec<&LaneName> {
        self.entry.applied_steps().filter_map(|step| step.created_lane()).collect()
    }

    /// Locks the lanes whose records are restored or removed.
    pub(crate) fn lock_moved_lanes(&self) -> Result<(), Error> {
        for name in self.lanes_with_moved_records() {
            if !self.run_locks.borrow().contains_key(&name) {
                let lock = recovery::run_lock_after_recovery(self.op.project, &name, None)?;
                self.run_locks.borrow_mut().insert(name, lock);
            }
        }
        Ok(())
    }

    /// Returns the names of the lanes whose records are restored or removed. No run may start in them, and
    /// their trash entries must not be deleted concurrently.
    fn lanes_with_moved_records(&self) -> BTreeSet<LaneName> {
        let lanes = self.op.project.store.layout().lanes();
        let lane_name = |path: &Path| {
            let is_lane = path.parent() == Some(&lanes);
            LaneName::parse(path.file_name().filter(|_| is_lane)?.to_str()?).ok()
        };
        let open_lanes = self.op.project.owned_lanes().unwrap_or_default();
        // Files of a lane that stays.
        let lane_containing = |path: &Path| {
            let lane = open_lanes.iter().find(|lane| path.starts_with(&lane.path) && *path != *lane.path);
            lane.map(|lane| lane.name.clone())
        };
        let step_lane = |step: &BoxedStep| {
            let MovedPath { from, to } = step.moved_path()?;
            lane_name(from)
                .or_else(|| lane_name(to))
                .or_else(|| lane_containing(from))
                .or_else(|| lane_containing(to))
        };
        self.entry.applied_steps().filter_map(step_lane).collect()
    }

    /// Refuses to move a lane to the trash again if it has uncommitted work that it did not have the first
    /// time.
    pub(super) fn refuse_new_work(&self) -> Result<(), Error> {
        let project = self.op.project;
        for lane in project.owned_lanes()? {
            let mut moves = self.entry.applied_steps().filter_map(|step| step.moved_path());
            if !moves.any(|moved| moved.to == lane.path) || !lane.path.exists() {
                continue;
            }
            let paths = status_query::status(&project.repo, &lane.path, true)?.paths();
            if !paths.is_empty() && !self.is_in_snapshot(&lane.path)? {
                return Err(UndoError::LaneUncommitted { name: lane.name, paths }.into());
            }
        }
        Ok(())
    }

    /// Returns whether an existing snapshot already holds all uncommitted changes of a worktree.
    fn is_in_snapshot(&self, dir: &Path) -> Result<bool, Error> {
        let project = self.op.project;
        let Some(head) = project.repo.head_commit(dir)? else { return Ok(false) };
        let is_held =
            self.op.lock_worktree(dir)?.write_snapshot(head, "uncommitted work", &[], |contents, _| {
                let ids = project.snap_ids()?;
                Ok(ids
                    .iter()
                    .filter_map(|id| project.load_snap(id).ok())
                    .any(|snap| snap.snapshot.has_same_content(&contents)))
            })?;
        Ok(is_held.unwrap_or(true))
    }

    /// Returns a lane that the operation created, with its run lock. Fails if the lane is busy, shown in the
    /// open preview, or missing.
    pub(crate) fn lock_created_lane(&self, name: &LaneName) -> Result<(LaneRecord, LockGuard), Error> {
        let project = self.op.project;
        let path = project.store.layout().lane_record(name);
        if AnyLane::load_if_exists(&path)?.is_none() {
            return Err(Error::UnknownLane { name: name.to_string(), similar: None });
        }
        let open = PreviewRecord::load_if_exists(&project.store.layout().preview_record())?;
        if open.is_some_and(|open| open.lane == *name) {
            return Err(UndoError::LanePreviewed { name: name.clone() }.into());
        }
        // A later operation may concern this lane too, and this process would block on its own lock.
        drop(self.run_locks.borrow_mut().remove(name));
        project.lock_idle_lane(name)
    }

    /// Ignores commits in the evidence that the lane was created with and that another branch has too: they
    /// stay reachable.
    pub(crate) fn discount_initial_commits(
        &self,
        lane: &LaneRecord,
        evidence: &mut RemovalEvidence,
    ) -> Result<(), Error> {
        let mut moves = self.entry.applied_steps().filter_map(|step| step.moved_branch());
        let created = moves.find(|moved| moved.name == lane.kind.branch && moved.old.is_none());
        let initial_tip = created.and_then(|moved| moved.new);
        if let Some(tip) = evidence.tip
            && initial_tip == Some(tip)
            && self.op.project.repo.is_in_other_ref(tip, &format!("refs/heads/{}", lane.kind.branch))?
        {
            evidence.unlanded_commits = 0;
        }
        Ok(())
    }
}

/// Returns the number of steps before those that create lanes. The creation starts with the branch of the
/// first lane.
pub(crate) fn count_steps_before_creation(steps: &[&BoxedStep]) -> usize {
    let first_worktree = steps.iter().position(|step| step.created_lane().is_some()).unwrap_or_default();
    let is_branch =
        |step: &&BoxedStep| matches!(step.moved_branch(), Some(MovedBranch { old: None, new: Some(_), .. }));
    steps[..first_worktree].iter().rposition(is_branch).unwrap_or_default()
}
