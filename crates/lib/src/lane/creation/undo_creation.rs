//! Undo of the creation of a lane: the lane is removed, unless it has later work.

use proq_git::worktrees::worktree::WorktreeList;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockGuard;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::preview::PreviewRecord;

use super::create_worktree::CreateWorktree;
use crate::errors::undo_error::UndoError;
use crate::lane::Error;
use crate::lane::inspection::evidence::{RemovalEvidence, count_unlanded, gather as gather_evidence};
use crate::lane::removal::remove_lane::{RemovalReason, refuse_removal, remove_locked};
use crate::lane::state::run_lock::HeldRunLocks;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast};

impl CreateWorktree {
    /// Removes the lane. Refuses if it has later work, unless forced; that is checked as for any removal.
    pub(super) fn remove_lane(&self, undo: &StepUndo<'_, '_>) -> Result<(), Error> {
        let (lane, lock) = self.lock_lane(undo.op)?;
        undo.op.with_memory(|held: &mut HeldRunLocks| held.0.insert(lane.name.clone(), lock));
        self.require_removable(undo, &lane, current_evidence(undo, &lane)?)?;
        remove_locked(undo.op, &lane, RemovalReason::Discard, true).map(drop)
    }

    /// Checks the removal of the lane, and records it in `forecast` with the lane's records and git's
    /// registration of its worktree.
    pub(super) fn check_removal(
        &self,
        undo: &StepUndo<'_, '_>,
        forecast: &mut UndoForecast,
    ) -> Result<(), Error> {
        let (lane, evidence, _lock) = if forecast.is_newest {
            let (lane, lock) = self.lock_lane(undo.op)?;
            let evidence = current_evidence(undo, &lane)?;
            (lane, evidence, Some(lock))
        } else {
            let Some((lane, evidence)) = self.forecast_evidence(undo, forecast)? else { return Ok(()) };
            (lane, evidence, None)
        };
        self.require_removable(undo, &lane, evidence)?;
        let project = undo.op.project;
        forecast.ref_tips.insert(format!("refs/heads/{}", lane.kind.branch), None);
        forecast.removed_paths.extend([lane.path.clone(), project.store.layout().lane(&lane.name)]);
        forecast.removed_paths.extend(project.repo.worktree_admin_dir(&lane.path));
        Ok(())
    }

    /// Returns the lane with the evidence as it will be once newer operations are undone; none for a lane
    /// that is not on record. That undo may first restore the lane; then only its commits are checked. It may
    /// also remove the lane's landed commits from its base.
    fn forecast_evidence(
        &self,
        undo: &StepUndo<'_, '_>,
        forecast: &UndoForecast,
    ) -> Result<Option<(LaneRecord, RemovalEvidence)>, Error> {
        let project = undo.op.project;
        let record_path = project.store.layout().lane_record(&self.lane);
        let current_record = forecast.current_path(&record_path);
        let is_unmoved = current_record == record_path;
        let loaded = match is_unmoved {
            true => project.any_lane(&self.lane).ok(),
            false => AnyLane::load_if_exists(&current_record)?,
        };
        let Some(Ok(lane)) = loaded.map(AnyLane::into_owned_lane) else { return Ok(None) };
        let mut evidence = match is_unmoved {
            true => current_evidence(undo, &lane)?,
            false => RemovalEvidence::default(),
        };
        let tip_of = |branch: &str| forecast.tip_of(undo, &format!("refs/heads/{branch}"));
        if let (Some(tip), Some(base)) = (tip_of(&lane.kind.branch)?, tip_of(&lane.base)?) {
            (evidence.tip, evidence.unlanded_commits) = (Some(tip), count_unlanded(project, tip, base)?);
        }
        Ok(Some((lane, evidence)))
    }

    /// Returns the lane with its run lock. Fails if the lane is busy, shown in the open preview, or missing.
    fn lock_lane(&self, op: &Operation<'_>) -> Result<(LaneRecord, LockGuard), Error> {
        let (name, layout) = (&self.lane, op.project.store.layout());
        if AnyLane::load_if_exists(&layout.lane_record(name))?.is_none() {
            return Err(Error::UnknownLane {
                name: name.to_string(),
                may_be_group: false,
                removed: None,
                similar: None,
            });
        }
        let open = PreviewRecord::load_if_exists(&layout.preview_record())?;
        if open.is_some_and(|open| open.lane == *name) {
            return Err(UndoError::LanePreviewed { name: name.clone() }.into());
        }
        // A later operation may concern this lane too, and this process would block on its own lock.
        drop(op.with_memory(|held: &mut HeldRunLocks| held.0.remove(name)));
        op.project.lock_idle_lane(name)
    }

    /// Refuses the removal if the evidence forbids it. Commits that the lane was created with and that
    /// another branch has too are no reason: they stay reachable.
    fn require_removable(
        &self,
        undo: &StepUndo<'_, '_>,
        lane: &LaneRecord,
        mut evidence: RemovalEvidence,
    ) -> Result<(), Error> {
        let (repo, branch) = (&undo.op.project.repo, &lane.kind.branch);
        if evidence.tip == Some(self.start)
            && repo.is_in_other_ref(self.start, &format!("refs/heads/{branch}"))?
        {
            evidence.unlanded_commits = 0;
        }
        refuse_removal(lane, &evidence, undo.force)
    }
}

fn current_evidence(undo: &StepUndo<'_, '_>, lane: &LaneRecord) -> Result<RemovalEvidence, Error> {
    gather_evidence(undo.op.project, lane, &WorktreeList::read(&undo.op.project.repo)?)
}
