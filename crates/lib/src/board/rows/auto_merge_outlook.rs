//! Outlook of a lane with automatic merge: whether it will land once its run is done, or the reason why not.

use proq_store::locks::lock::LockName;
use proq_store::records::lane::AnyLane;

use crate::lane::Project;
use crate::run::auto_merge;
use crate::run::auto_merge::AutoMergeStatus;

/// Why a lane that lands automatically has not landed although its run is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoMergeOutlook {
    /// It is landing now.
    Landing,
    /// Something keeps it from landing until a person acts, for this reason.
    Blocked(String),
    /// Its last landing was refused for this reason, and is tried again after the next landing on its base.
    Refused(String),
    /// Its landing ended early, and is tried again after the next landing on its base.
    Interrupted,
}

impl AutoMergeOutlook {
    /// Reads the outlook of a lane that lands automatically and whose run is done.
    #[must_use]
    pub fn read(project: &Project, lane: &AnyLane) -> AutoMergeOutlook {
        if project.store.locks().is_held(&LockName::AutoMerge(lane.name.clone())).unwrap_or(false) {
            return AutoMergeOutlook::Landing;
        }
        let owned_lane = lane.clone().into_owned_lane().ok();
        match owned_lane.and_then(|lane| auto_merge::auto_merge_status(project, &lane).ok()) {
            Some(AutoMergeStatus::Blocked(reason) | AutoMergeStatus::BranchMoved(reason)) => {
                AutoMergeOutlook::Blocked(reason)
            }
            _ => lane.auto_merge_refusal.as_ref().map_or(AutoMergeOutlook::Interrupted, |refused| {
                AutoMergeOutlook::Refused(refused.refusal_reason.clone())
            }),
        }
    }
}
