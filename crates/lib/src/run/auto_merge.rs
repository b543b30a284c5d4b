//! Automatic merges of lanes: which lanes can land automatically, how a refused attempt is recorded, and how
//! auto-merge is turned off.

use std::borrow::Cow;
use std::collections::BTreeSet;

use proq_base::explain::Exit;
use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_store::Store;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::{AutoMergeRefusal, LaneRecord};
use proq_store::records::lane_state::LaneState;
use proq_store::records::run::RunRecord;

use crate::event::log;
use crate::lane::messages::inbox::{Inbox, pending_text as pending_messages_text};
use crate::lane::state::lane_state::effective_state;
use crate::lane::{Error, Project};

/// Returns the lanes with auto-merge and one of the `bases` that can land now and that no process is landing.
/// Their earlier attempt was refused, or the process that would have landed them was killed.
pub fn lanes_waiting_to_land(project: &Project, bases: &BTreeSet<&str>) -> Vec<LaneRecord> {
    let candidates = unlocked_auto_merge_lanes(project, bases);
    candidates.filter(|(_, status)| *status == AutoMergeStatus::Ready).map(|(lane, _)| lane).collect()
}

/// Records a refusal for each lane with auto-merge and one of the `bases` whose branch has moved since its
/// run ended. Returns a message for each, except for those that were refused for the same reason before.
/// Leaves out the lanes that the current landing has `attempted`, so that a branch that moves during the
/// landing is still reported later.
pub fn refuse_moved_lanes(project: &Project, bases: &BTreeSet<&str>, attempted: &[LaneName]) -> Vec<String> {
    let mut out = Vec::new();
    for (lane, status) in unlocked_auto_merge_lanes(project, bases) {
        let AutoMergeStatus::BranchMoved(reason) = status else { continue };
        // A concurrent landing may have committed what the run left, and have recorded that since.
        if attempted.contains(&lane.name)
            || !matches!(self::auto_merge_status(project, &lane), Ok(AutoMergeStatus::BranchMoved(_)))
        {
            continue;
        }
        if lane.auto_merge_refusal.as_ref().is_none_or(|before| before.refusal_reason != reason) {
            record_refused_merge(project, &lane, &reason, Exit::Refused);
            out.push(refusal_message(lane.name.as_str(), &reason));
        }
    }
    out
}

/// Lists the lanes with one of the `bases` and a lock for their automatic merge that no process holds, each
/// with its auto-merge status.
fn unlocked_auto_merge_lanes(
    project: &Project,
    bases: &BTreeSet<&str>,
) -> impl Iterator<Item = (LaneRecord, AutoMergeStatus)> {
    let locks = project.store.locks();
    let is_free = |lane: &LaneRecord| !locks.is_held(&LockName::AutoMerge(lane.name.clone())).unwrap_or(true);
    // A lane's landing lock exists before the lane can be done, and most repositories have none.
    let names = locks.lanes_with_auto_merge_file().into_iter();
    let lanes = names.filter_map(|name| project.lane(&name).ok());
    let lanes = lanes.filter(|lane| bases.contains(lane.base.as_str()));
    // A lane whose status cannot be read is left to a later landing.
    lanes
        .filter(move |lane| is_free(lane))
        .filter_map(move |lane| Some((auto_merge_status(project, &lane).ok()?, lane)))
        .map(|(status, lane)| (lane, status))
}

/// Result of the check whether a lane can land automatically now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoMergeStatus {
    /// The lane can land now.
    Ready,
    /// No automatic merge is due: the lane has no auto-merge, has landed, or is still running.
    NotDue,
    /// An automatic merge is due, but impossible for this reason.
    Blocked(String),
    /// An automatic merge is due, but the lane's branch has moved since its run ended. For this reason, in
    /// words, the user has to land it.
    BranchMoved(String),
}

/// Returns whether an automatic merge of a lane is due, and whether it is possible. Undelivered messages to
/// its agent block it.
///
/// # Errors
/// Fails when the lane's locks cannot be read.
pub fn auto_merge_status(project: &Project, lane: &LaneRecord) -> Result<AutoMergeStatus, Error> {
    if !lane.auto_merge {
        return Ok(AutoMergeStatus::NotDue);
    }
    Ok(match effective_state(project, lane)?.0 {
        LaneState::Done => {
            if let Some(refusal) = lane.auto_merge_refusal.as_ref().filter(|refused| refused.is_refusal_final)
            {
                return Ok(AutoMergeStatus::Blocked(refusal.refusal_reason.clone()));
            }
            // A git guard folder that still exists means that what the run changed outside of its lane could
            // not be recorded.
            if project.store.layout().git_guard(&lane.name, lane.last_run).is_dir() {
                let name = &lane.name;
                let reason =
                    format!("the other changes of its run are unknown; to merge it: git proq merge {name}");
                return Ok(AutoMergeStatus::Blocked(reason));
            }
            let tip = project.repo.branch_tip(&lane.kind.branch)?;
            let moved = moved_since_run_reason(&project.store, lane, tip)?.map(AutoMergeStatus::BranchMoved);
            moved
                .or_else(|| undelivered_reason(&project.store, &lane.name).map(AutoMergeStatus::Blocked))
                .unwrap_or(AutoMergeStatus::Ready)
        }
        LaneState::Orphaned if lane.state() == LaneState::Done => AutoMergeStatus::Blocked(format!(
            "a process of its agent is still running; stop it: git proq stop {}",
            lane.name
        )),
        _ => AutoMergeStatus::NotDue,
    })
}

/// Returns, in words, why a lane with its branch at `tip` does not land automatically. The branch is not
/// where its last run ended, and newer commits may not be ready. None when the branch is at the commit where
/// the run ended, or is missing.
///
/// # Errors
/// Fails when the run's record cannot be read.
pub(crate) fn moved_since_run_reason(
    store: &Store,
    lane: &LaneRecord,
    tip: Option<CommitId>,
) -> Result<Option<String>, Error> {
    let run = RunRecord::load_if_exists(&store.layout().run_record(&lane.name, lane.last_run))?;
    let run_tip = run.and_then(|run| run.tip_after);
    let reason =
        || format!("its branch has moved since its run ended; to merge it: git proq merge {}", lane.name);
    Ok((tip.is_some() && tip != run_tip).then(reason))
}

/// Records that the work of a lane's last run, which ended at `from`, now ends at `to`: a landing has
/// committed what the run left, or an agent has resolved a conflict.
///
/// # Errors
/// Fails when the run's record cannot be read or written.
pub(crate) fn advance_run_tip(
    store: &Store,
    lane: &LaneRecord,
    from: CommitId,
    to: CommitId,
) -> Result<(), Error> {
    let path = store.layout().run_record(&lane.name, lane.last_run);
    if let Some(mut run) = RunRecord::load_if_exists(&path)?
        && run.tip_after == Some(from)
    {
        run.tip_after = Some(to);
        run.save(&path)?;
    }
    Ok(())
}

/// Returns why a lane with undelivered messages to its agent does not land automatically; none when no
/// message waits.
pub(crate) fn undelivered_reason(store: &Store, lane: &LaneName) -> Option<String> {
    let count = Inbox::new(store, lane).count();
    (count > 0).then(|| pending_messages_text(lane, count))
}

/// Turns off automatic merges of a lane for `reason`, until the user lands it.
///
/// # Errors
/// Fails when the lane's record cannot be written.
pub(crate) fn hold_auto_merge(project: &Project, lane: &LaneRecord, reason: &str) -> Result<(), Error> {
    let exit = Exit::Refused.code();
    let refusal = AutoMergeRefusal {
        refused_at: now(),
        refusal_reason: reason.to_owned(),
        landing_exit_code: exit,
        is_refusal_final: true,
    };
    project.update_lane(&lane.name, |record| record.auto_merge_refusal = Some(refusal)).map(drop)
}

/// Records that the automatic merge of a lane was refused, and emits an event. The lane is unchanged and is
/// tried again after the next landing on its base, unless its landing is held.
pub fn record_refused_merge<P>(project: &Project, lane: &LaneRecord<P>, reason: &str, exit: Exit) {
    let (at, message, exit) = (now(), reason.to_owned(), exit.code());
    let updated = project.update_lane(&lane.name, |record| {
        if record.is_same_lane(lane) {
            let lasting = record.auto_merge_refusal.as_ref().is_some_and(|before| before.is_refusal_final);
            record.auto_merge_refusal = Some(AutoMergeRefusal {
                refused_at: at,
                refusal_reason: message,
                landing_exit_code: exit,
                is_refusal_final: lasting,
            });
        }
    });
    let lane = updated.ok().filter(|record| record.is_same_lane(lane));
    let name = lane.as_ref().map_or("that no longer exists", |lane| lane.name.as_str());
    project.emit(log::EventName::MergeRefused, lane.as_ref(), refusal_message(name, reason));
}

/// Formats the message that a lane did not land automatically, with the reason.
fn refusal_message(name: &str, reason: &str) -> String {
    format!("lane '{name}' was not merged automatically: {reason}")
}

/// Returns the command a user types to repeat `command`: an automatic merge is repeated by `git proq merge`
/// with the same lanes.
pub(crate) fn command_for_user(command: &str) -> Cow<'_, str> {
    let lane_args = ["run-ended", "retry"]
        .iter()
        .find_map(|trigger| command.strip_prefix("git proq merge --auto ")?.strip_prefix(trigger));
    lane_args.map_or(Cow::Borrowed(command), |lane_args| format!("git proq merge{lane_args}").into())
}
