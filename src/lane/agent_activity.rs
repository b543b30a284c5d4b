//! Activity of a running agent, as its own hooks last reported it.

use super::Project;
use crate::store::Record;
use crate::store::records::{Activity, ActivityRecord, LaneRecord};

/// Returns the activity that the agent of a lane's last run reported last; none when the record cannot be
/// read.
pub(crate) fn last_activity<P>(project: &Project, lane: &LaneRecord<P>) -> Option<Activity> {
    let path = project.store.layout().run_activity(&lane.name, lane.attempt);
    Some(ActivityRecord::load_if_exists(&path).ok()??.activity)
}

/// Returns the last reported activity of the lane's agent in words; none while it works, and when the record
/// cannot be read.
pub(super) fn describe_activity<P>(project: &Project, lane: &LaneRecord<P>) -> Option<String> {
    let path = project.store.layout().run_activity(&lane.name, lane.attempt);
    let record = ActivityRecord::load_if_exists(&path).ok()??;
    let message_suffix = record.message.map(|text| format!(": {text}")).unwrap_or_default();
    match record.activity {
        Activity::Working => None,
        Activity::NeedsApproval => Some(format!("needs approval{message_suffix}")),
        Activity::Idle => Some("idle".to_owned()),
        Activity::Unknown => Some("its agent does not tell whether it works or waits".to_owned()),
    }
}
