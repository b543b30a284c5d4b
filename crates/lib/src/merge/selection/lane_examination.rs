//! Examination of a lane for a landing, and its refusal because of its state.

use std::sync::atomic::AtomicBool;

use proq_base::hint;
use proq_git::CommitId;
use proq_git::status::status_query;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::base::record::Record;
use proq_store::records::check::FailedCheckRecord;
use proq_store::records::conflict::ConflictRecord;
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;

use crate::lane::Project;
use crate::lane::inspection::idle_lane::{IDLE_DETAIL, is_idle_with_work};
use crate::lane::state::conflict_validity;
use crate::lane::state::lane_state::effective_state;
use crate::merge::Error;
use crate::merge::types::options::Landing;
use crate::merge::types::outcome::{LaneOutcome, NO_COMMITS};
use crate::operation::journaled_operation::Operation;
use crate::preview::leave::carried_tip;

/// Examination of one requested lane: whether it may land, or why not.
pub(crate) struct LaneExamination<'a, 'p> {
    pub op: &'a Operation<'p>,
    pub project: &'p Project,
    pub landing: &'a Landing,
    pub lane: LaneRecord,
    /// Branch that the lane would land on.
    pub onto: String,
    pub worktrees: &'a WorktreeList,
    /// Whether the lane's branch or worktree was missing or damaged. Another process may be removing or
    /// restoring the lane.
    pub(crate) was_incomplete: AtomicBool,
}

impl LaneExamination<'_, '_> {
    /// Returns the reason why the lane's state forbids a landing; none if it does not.
    pub(crate) fn state_refusal(&self) -> Result<Option<String>, Error> {
        let lane = &self.lane;
        let (state, detail) = effective_state(self.project, lane)?;
        let suffix = detail.map(|d| format!(": {d}")).unwrap_or_default();
        Ok(match state {
            // This is a dry run: the lane is taken as it is now, while its agent continues.
            state if state.is_busy() && self.landing.would_stop() => None,
            LaneState::Running if is_idle_with_work(self.project, lane)? => {
                let hint = format!("; to end its session and merge it: git proq merge --stop {}", lane.name);
                let hint = if self.landing.options.all { hint.as_str() } else { "" };
                Some(format!("it is done, and {IDLE_DETAIL}{hint}"))
            }
            LaneState::Starting | LaneState::Running => Some("its agent is running".into()),
            LaneState::Orphaned => Some(format!(
                "its agent is running without a supervisor; stop it: git proq stop {}",
                lane.name
            )),
            LaneState::Stopped if self.was_stopped_to_land() => {
                let is_skipped =
                    self.landing.options.all && !self.has_commits()? && !self.has_uncommitted()?;
                is_skipped.then(|| NO_COMMITS.into())
            }
            LaneState::Failed | LaneState::Stalled | LaneState::Stopped
                if self.landing.options.all || !self.landing.options.force =>
            {
                let name = &lane.name;
                let verb = past_tense(state);
                Some(format!("it {verb}{suffix}; to merge it anyway: git proq merge --force {name}"))
            }
            LaneState::NoChange => Some("it changed nothing".into()),
            LaneState::Idle if self.landing.options.all && !self.has_commits()? => Some(NO_COMMITS.into()),
            LaneState::Conflict
                if self.landing.options.all
                    && self.landing.resolver.is_none()
                    && self.has_same_conflict()? =>
            {
                Some("it conflicts, and neither the lane nor its base has moved since".into())
            }
            LaneState::CheckFailed if self.landing.options.all && !self.is_failed_check_outdated()? => {
                Some("its checks failed, and neither the lane nor its base has moved since".into())
            }
            _ => None,
        })
    }

    /// Returns the refusal of the lane for a `reason` that its state is, with hints.
    pub fn refuse_state(&self, reason: String) -> Result<LaneOutcome, Error> {
        let name = &self.lane.name;
        let hint = match effective_state(self.project, &self.lane)?.0 {
            state if !state.is_busy() => None,
            _ if is_idle_with_work(self.project, &self.lane)? => {
                Some(hint!("end its session and merge it: git proq merge --stop {name}"))
            }
            _ if self.has_commits()? => {
                Some(hint!("stop it and merge its commits: git proq merge --stop {name}"))
            }
            // The reason has the command that stops the agent.
            LaneState::Orphaned => None,
            _ => Some(hint!("wait for it: git proq wait {name}")),
        };
        Ok(LaneOutcome {
            hints: hint.into_iter().collect(),
            ..LaneOutcome::refused(name, &self.onto, reason)
        })
    }

    /// Returns whether `--stop` stopped the lane's agent for this landing, so that its stopped state is no
    /// reason to refuse it.
    fn was_stopped_to_land(&self) -> bool {
        let stopped = self.landing.stopped_lanes.as_ref();
        stopped.is_some_and(|stopped| !self.landing.options.all || stopped.contains(&self.lane.name))
    }

    /// Returns whether the lane's worktree has uncommitted changes; false if it is gone.
    fn has_uncommitted(&self) -> Result<bool, Error> {
        let has_worktree = self.project.repo.is_registered_worktree(&self.lane.path);
        Ok(has_worktree && !status_query::status(&self.project.repo, &self.lane.path, true)?.is_clean())
    }

    /// Returns the tip with which the lane would land; none without its branch.
    fn tip(&self) -> Result<Option<CommitId>, Error> {
        tip_to_land(self.project, &self.lane, self.landing.dry_run)
    }

    /// Returns whether the tip of the lane's branch differs from the lane's start.
    fn has_commits(&self) -> Result<bool, Error> {
        Ok(self.tip()?.is_some_and(|tip| tip != self.lane.start))
    }

    /// Returns whether a merge would meet the same two sides as the recorded conflict.
    fn has_same_conflict(&self) -> Result<bool, Error> {
        let path = self.project.store.layout().conflict_record(&self.lane.name);
        let Some(record) = ConflictRecord::load_if_exists(&path)? else { return Ok(false) };
        Ok(self.onto == record.onto
            && self.tip()? == Some(record.theirs)
            && conflict_validity::is_conflict_current(&self.project.repo, &self.lane.kind.branch, &record)?)
    }

    /// Returns whether the failed check is outdated: the lane or its base has moved, or the command is no
    /// longer one of the checks.
    fn is_failed_check_outdated(&self) -> Result<bool, Error> {
        let path = self.project.store.layout().failed_check_record(&self.lane.name);
        let Some(record) = FailedCheckRecord::load_if_exists(&path)? else { return Ok(true) };
        if record.command_lane.is_none() {
            let base_commands = match self.landing.options.no_checks {
                true => Vec::new(),
                false => self.project.landing_checks(&self.onto)?.commands,
            };
            if !base_commands
                .iter()
                .chain(&self.landing.options.extra_checks)
                .any(|command| *command == record.command)
            {
                return Ok(true);
            }
        }
        self.has_moved_since(record.lane_tip, record.base_tip_after_landing, &record.onto)
    }

    /// Returns whether the lane would now land on another branch than `onto`, or its tip is no longer `tip`,
    /// or that of its base no longer `base`.
    fn has_moved_since(&self, tip: CommitId, base: CommitId, onto: &str) -> Result<bool, Error> {
        let repo = &self.project.repo;
        Ok(self.onto != onto || self.tip()? != Some(tip) || repo.branch_tip(&self.onto)? != Some(base))
    }
}

/// Returns the tip with which a lane lands; none without its branch. A landing has left the lane's preview before;
/// a dry run has not.
pub(crate) fn tip_to_land(
    project: &Project,
    lane: &LaneRecord,
    dry_run: bool,
) -> Result<Option<CommitId>, Error> {
    if dry_run && let Some(tip) = carried_tip(project, &lane.name)? {
        return Ok(Some(tip));
    }
    Ok(project.repo.branch_tip(&lane.kind.branch)?)
}

/// Returns the verb phrase for a stopped, failed or stalled lane: `was stopped` or `failed`.
fn past_tense(state: LaneState) -> &'static str {
    match state {
        LaneState::Stopped => "was stopped",
        _ => "failed",
    }
}
