//! Records that a lane's state depends on beside its own.

use proq_store::base::lazy_record::LazyRecord;
use proq_store::paths::layout::Layout;
use proq_store::records::agent::{Activity, ActivityRecord};
use proq_store::records::check::FailedCheckRecord;
use proq_store::records::conflict::ConflictRecord;
use proq_store::records::lane::LaneRecord;
use proq_store::records::run::RunRecord;

/// Records that a lane's state depends on, each read when it is first needed, and at most once.
#[derive(Debug, Clone)]
pub struct StateRecords {
    /// What the agent of the last run reported last.
    pub activity: LazyRecord<ActivityRecord>,
    /// The last run.
    pub run: LazyRecord<RunRecord>,
    /// Captured conflict of the lane.
    pub conflict: LazyRecord<ConflictRecord>,
    /// Check that the lane failed.
    pub failed_check: LazyRecord<FailedCheckRecord>,
}

impl StateRecords {
    /// Creates the records of a lane, which are not read yet.
    pub fn new<P>(layout: &Layout, lane: &LaneRecord<P>) -> StateRecords {
        StateRecords {
            activity: LazyRecord::new(layout.run_activity(&lane.name, lane.last_run)),
            run: LazyRecord::new(layout.run_record(&lane.name, lane.last_run)),
            conflict: LazyRecord::new(layout.conflict_record(&lane.name)),
            failed_check: LazyRecord::new(layout.failed_check_record(&lane.name)),
        }
    }

    /// Returns the activity that the agent of the last run reported last; none when the record cannot be read.
    pub fn last_activity(&self) -> Option<Activity> {
        self.activity.get().map(|record| record.activity)
    }

    /// Returns whether the last activity of the lane's interactive agent was the end of its turn. An unreadable
    /// record counts as not idle.
    pub fn is_agent_idle(&self) -> bool {
        self.last_activity() == Some(Activity::Idle) && self.is_interactive()
    }

    /// Returns whether the last run is interactive and works on the task, not on a conflict.
    pub fn is_interactive(&self) -> bool {
        self.run.get().is_some_and(|run| run.interactive && !run.resolves_conflict)
    }
}
