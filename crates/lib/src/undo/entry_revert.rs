//! Reversal of one logged operation within an undo: the lanes and worktrees that it concerns.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::base::head::Head;
use proq_git::status::local_state::LocalState;
use proq_store::base::operation_number::OperationNumber;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockGuard;
use proq_store::operations::operation_entry::OperationEntry;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::preview::PreviewRecord;
use proq_store::records::step::Step;

use crate::lane::Error;
use crate::lane::errors::undo_error::UndoError;
use crate::lane::execution::recovery;
use crate::lane::inspection::evidence::RemovalEvidence;
use crate::lane::operation::journaled_operation::Operation;
use crate::lane::operation::op_log_view::moved_branch;

/// Reversal of one logged operation, as part of an undo.
pub(crate) struct EntryRevert<'a, 'p> {
    pub op: &'a Operation<'p>,
    pub entry: &'a OperationEntry,
    pub number: OperationNumber,
    pub force: bool,
    /// Run locks of lanes. They are shared, since many operations may concern one lane.
    pub(crate) run_locks: &'a RefCell<BTreeMap<LaneName, LockGuard>>,
}

impl EntryRevert<'_, '_> {
    /// Returns the names of the lanes that the operation created.
    pub(crate) fn created_lanes(&self) -> Vec<&LaneName> {
        let created = self.entry.applied_steps().filter_map(|step| match step {
            Step::CreateWorktree { lane, .. } => Some(lane),
            _ => None,
        });
        created.collect()
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
        let step_lane = |step: &Step| match step {
            Step::MovePath { from, to } => lane_name(from)
                .or_else(|| lane_name(to))
                .or_else(|| lane_containing(from))
                .or_else(|| lane_containing(to)),
            _ => None,
        };
        self.entry.applied_steps().filter_map(step_lane).collect()
    }

    /// Returns whether HEAD of the worktree at `dir` is `head`, the same branch or detached commit.
    pub fn has_head(&self, dir: &Path, head: &Head) -> Result<bool, Error> {
        Ok(self.op.project.repo.worktree_head(dir)?.as_ref() == Some(head))
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
        let branch = format!("refs/heads/{}", lane.kind.branch);
        let initial_tip = self.entry.applied_steps().find_map(|step| match step {
            Step::MoveRef { name, old: None, new } if *name == branch => *new,
            _ => None,
        });
        if let Some(tip) = evidence.tip
            && initial_tip == Some(tip)
            && self.op.project.repo.is_in_other_ref(tip, &branch)?
        {
            evidence.unlanded_commits = 0;
        }
        Ok(())
    }

    /// Returns the empty folders and index flags that the worktree at `dir` lost when this operation moved it
    /// to `commit`; empty if no step did.
    pub fn dropped_state(&self, dir: &Path, commit: CommitId) -> LocalState {
        let step_state = |step: &Step| match step {
            Step::Checkout { dir: step_dir, to, dropped_state: drops, .. }
                if step_dir == dir && *to == commit =>
            {
                Some(drops.clone())
            }
            _ => None,
        };
        self.entry.applied_steps().find_map(step_state).unwrap_or_default()
    }
}

/// Returns the number of steps before those that create lanes. The creation starts with the branch of the
/// first lane.
pub(crate) fn count_steps_before_creation(steps: &[&Step]) -> usize {
    let first_worktree =
        steps.iter().position(|step| matches!(step, Step::CreateWorktree { .. })).unwrap_or_default();
    let is_branch = |step: &&Step| matches!(moved_branch(step), Some((_, None, Some(_))));
    steps[..first_worktree].iter().rposition(is_branch).unwrap_or_default()
}
