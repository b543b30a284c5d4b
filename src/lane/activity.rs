//! Owns what is said of a lane whose agent is at work: what its own hooks said last.

use super::Project;
use crate::store::Record;
use crate::store::records::{Activity, ActivityRecord, LaneRecord};

/// What the agent of a lane's last run said last. A record that cannot be read says nothing.
pub(crate) fn said_last<P>(project: &Project, lane: &LaneRecord<P>) -> Option<Activity> {
    let path = project.store.layout().run_activity(&lane.name, lane.attempt);
    Some(ActivityRecord::find(&path).ok()??.activity)
}

/// What there is to say, if it is anything but that the agent works. A record that cannot be read says nothing.
pub(super) fn doing<P>(project: &Project, lane: &LaneRecord<P>) -> Option<String> {
    let path = project.store.layout().run_activity(&lane.name, lane.attempt);
    let record = ActivityRecord::find(&path).ok()??;
    let more = record.message.map(|text| format!(": {text}")).unwrap_or_default();
    match record.activity {
        Activity::Working => None,
        Activity::NeedsApproval => Some(format!("needs approval{more}")),
        Activity::Idle => Some("idle".to_owned()),
        Activity::Unknown => Some("its agent does not tell whether it works or waits".to_owned()),
    }
}
