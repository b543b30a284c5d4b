//! Retries of automatic merges that wait for the next landing on their base.

use std::collections::BTreeSet;

use proq_base::lane_name::LaneName;
use proq_lib::agent::supervise::follow_up;
use proq_lib::agent::supervise::follow_up::MergeTrigger;
use proq_lib::lane::Project;
use proq_lib::merge::types::outcome::LandingReport;
use proq_lib::run::auto_merge;

use crate::cli::invocation::context::CommandContext;

/// Returns the base branches of a landing.
pub(crate) fn landing_bases(report: &LandingReport) -> BTreeSet<&str> {
    report.lanes.iter().map(|line| line.onto.as_str()).collect()
}

/// Starts a background process that retries waiting automatic merges on `bases`, and warns of lanes that will
/// no longer land. Called after a landing. Lanes in `attempted` are skipped. The background process starts no
/// further retries.
pub(crate) fn start_auto_merge_retries(
    context: &CommandContext,
    project: &Project,
    bases: &BTreeSet<&str>,
    attempted: &[LaneName],
) {
    for warning in auto_merge::refuse_moved_lanes(project, bases, attempted) {
        context.ui.warn(warning);
    }
    let waiting = auto_merge::lanes_waiting_to_land(project, bases).into_iter().map(|lane| lane.name);
    let lanes: Vec<LaneName> = waiting.filter(|name| !attempted.contains(name)).collect();
    if lanes.is_empty() {
        return;
    }
    if let Err(e) = follow_up::start_auto_merge(project, MergeTrigger::Landing, &lanes) {
        context.ui.warn(format!("{} could not be tried again: {e}", lanes.join(", ")));
    }
}
