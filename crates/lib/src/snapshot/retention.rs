//! Retention of automatic snapshots: which are kept when there are many.

use std::time::Duration;

use proq_base::lane_name::LaneName;
use proq_store::base::clock::{Moment, now};
use proq_store::records::snapshot::AutomaticSnapshotInfo;

use crate::lane::parking::snapshot_store;
use crate::lane::{Error, Project};

/// Number of snapshots of a worktree that are retained whatever their age.
const NEWEST_SNAPSHOTS_RETAINED: usize = 5;

/// Minimum distance in time between older snapshots that are retained. Also the interval between passes if
/// none is configured.
pub(super) const SNAPSHOT_SPACING: Duration = Duration::from_mins(10);

/// Age at which an automatic snapshot is deleted, unless it is one of the newest of its worktree or an event
/// names it.
const MAX_SNAPSHOT_AGE: Duration = Duration::from_hours(24);

/// Deletes the automatic snapshots of a worktree that are too close to newer ones or too old. Snapshots that
/// an event names are retained.
pub(super) fn prune_snapshots(project: &Project, lane: Option<&LaneName>) -> Result<(), Error> {
    let mut all = Vec::new();
    for id in project.snap_ids()?.into_iter().rev() {
        let Ok(Some(record)) = project.find_any_snap(&id) else { continue };
        // A snapshot that was restored to a worktree is kept like any other: an undo may need it.
        let is_own =
            |automatic: &AutomaticSnapshotInfo| automatic.lane.as_ref() == lane && !automatic.is_in_event;
        if record.is_copy && record.automatic.as_ref().is_some_and(is_own) {
            all.push((id, record.at));
        }
    }
    let moments: Vec<Moment> = all.iter().map(|(_, at)| *at).collect();
    for ((id, _), is_retained) in all.iter().zip(select_retained(&moments, now())) {
        if !is_retained {
            snapshot_store::delete_automatic(project, id)?;
        }
    }
    Ok(())
}

/// Returns for each of the snapshot times, newest first, whether its snapshot is retained.
fn select_retained(moments: &[Moment], now: Moment) -> Vec<bool> {
    let mut last: Option<Moment> = None;
    let decide = |(n, at): (usize, &Moment)| {
        let is_spaced = last.is_none_or(|last| last.duration_since(*at) >= SNAPSHOT_SPACING);
        let is_retained =
            n < NEWEST_SNAPSHOTS_RETAINED || (is_spaced && now.duration_since(*at) < MAX_SNAPSHOT_AGE);
        if is_retained {
            last = Some(*at);
        }
        is_retained
    };
    moments.iter().enumerate().map(decide).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retains_newest_and_one_per_span() {
        let now = now();
        let minutes = |ages: &[u64]| -> Vec<Moment> {
            ages.iter().map(|age| now.saturating_sub(Duration::from_mins(*age))).collect()
        };
        let ages = [0, 0, 1, 1, 2, 3, 11, 12, 13, 22, 40, 24 * 60 - 1, 24 * 60 + 1];
        let kept = select_retained(&minutes(&ages), now);
        let kept: Vec<u64> = ages.iter().zip(kept).filter(|(_, stays)| *stays).map(|(age, _)| *age).collect();
        assert_eq!(kept, [0, 0, 1, 1, 2, 12, 22, 40, 24 * 60 - 1]);
    }
}
