//! Dry run of an undo: checks step by step whether operations can be undone, without undoing any.

use proq_base::lane_name::LaneName;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::base::record::Record;
use proq_store::records::lane::{AnyLane, LaneRecord};

use super::entry_revert::{EntryRevert, count_steps_before_creation};
use crate::lane::inspection::evidence::{RemovalEvidence, count_unlanded, gather as gather_evidence};
use crate::lane::removal::remove_lane::refuse_removal;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::step::BoxedStep;
use crate::operation::journaled_operation::step::undo::UndoForecast;

impl EntryRevert<'_, '_> {
    /// Checks whether the operation can be reverted, with the refusals of the real undo, and records the
    /// effects in `forecast`.
    pub(crate) fn check_revert(&self, forecast: &mut UndoForecast) -> Result<(), Error> {
        let mut steps: Vec<&BoxedStep> = self.entry.applied_steps().collect();
        let created = self.created_lanes();
        if forecast.is_newest {
            for lane in created.iter().rev() {
                self.check_removal(lane, forecast)?;
            }
            if created.is_empty() {
                self.lock_moved_lanes()?;
            }
            self.refuse_new_work()?;
        } else {
            for lane in created.iter().rev() {
                self.check_later_removal(lane, forecast)?;
            }
        }
        if !created.is_empty() {
            steps.truncate(count_steps_before_creation(&steps));
        }
        let undo = self.step_undo();
        steps.into_iter().rev().try_for_each(|step| step.check_undo(&undo, forecast))
    }

    /// Checks the removal of a lane that the newest operation created.
    fn check_removal(&self, name: &LaneName, forecast: &mut UndoForecast) -> Result<(), Error> {
        let project = self.op.project;
        let (lane, _lock) = self.lock_created_lane(name)?;
        let mut evidence = gather_evidence(project, &lane, &WorktreeList::read(&project.repo)?)?;
        self.discount_initial_commits(&lane, &mut evidence)?;
        refuse_removal(&lane, &evidence, self.force)?;
        record_lane_removal(forecast, project, &lane);
        Ok(())
    }

    /// Checks the removal of a lane that an older operation created, as it will be once newer operations are
    /// undone. That may first restore the lane; then only its commits are checked. It may also remove the
    /// lane's landed commits from its base.
    fn check_later_removal(&self, name: &LaneName, forecast: &mut UndoForecast) -> Result<(), Error> {
        let project = self.op.project;
        let record_path = project.store.layout().lane_record(name);
        let current_record = forecast.current_path(&record_path);
        let is_unmoved = current_record == record_path;
        let loaded =
            if is_unmoved { project.any_lane(name).ok() } else { AnyLane::load_if_exists(&current_record)? };
        let Some(Ok(lane)) = loaded.map(AnyLane::into_owned_lane) else { return Ok(()) };
        let mut evidence = match is_unmoved {
            true => gather_evidence(project, &lane, &WorktreeList::read(&project.repo)?)?,
            false => RemovalEvidence::default(),
        };
        let tip_of = |branch: &str| forecast.tip_of(&self.step_undo(), &format!("refs/heads/{branch}"));
        if let (Some(tip), Some(base)) = (tip_of(&lane.kind.branch)?, tip_of(&lane.base)?) {
            (evidence.tip, evidence.unlanded_commits) = (Some(tip), count_unlanded(project, tip, base)?);
        }
        self.discount_initial_commits(&lane, &mut evidence)?;
        refuse_removal(&lane, &evidence, self.force)?;
        record_lane_removal(forecast, project, &lane);
        Ok(())
    }
}

/// Records that a lane would be removed, with its records and git's registration of its worktree.
fn record_lane_removal(forecast: &mut UndoForecast, project: &Project, lane: &LaneRecord) {
    forecast.ref_tips.insert(format!("refs/heads/{}", lane.kind.branch), None);
    forecast.removed_paths.extend([lane.path.clone(), project.store.layout().lane(&lane.name)]);
    forecast.removed_paths.extend(project.repo.worktree_admin_dir(&lane.path));
}
