//! Automatic merges that wait for the next landing on their base.

use std::collections::BTreeSet;

use proq_base::lane_name::LaneName;

use crate::agent::supervise::follow_up;
use crate::agent::supervise::follow_up::MergeTrigger;
use crate::lane::Project;
use crate::run::auto_merge;

/// Starts a background process that retries waiting automatic merges on `bases`, after a landing there. Lanes
/// in `attempted` are skipped. Returns warnings: of lanes that will no longer land, and if the process could
/// not be started. The background process starts no further retries.
#[must_use]
pub(crate) fn retry_waiting_merges(
    project: &Project,
    bases: &BTreeSet<&str>,
    attempted: &[LaneName],
) -> Vec<String> {
    let mut warnings = auto_merge::refuse_moved_lanes(project, bases, attempted);
    let waiting = auto_merge::lanes_waiting_to_land(project, bases).into_iter().map(|lane| lane.name);
    let lanes: Vec<LaneName> = waiting.filter(|name| !attempted.contains(name)).collect();
    if !lanes.is_empty()
        && let Err(e) = follow_up::start_auto_merge(project, MergeTrigger::Landing, &lanes)
    {
        warnings.push(format!("cannot retry the merge of {}: {e}", lanes.join(", ")));
    }
    warnings
}
