//! Forecast of what a base would have after a landing.

use std::slice;

use proq_git::TreeId;
use proq_git::repository::objects::TempObjectStore;

use crate::lane::Project;
use crate::merge::Error;
use crate::merge::stack::lane_stack::{AppliedLane, Stack};
use crate::merge::types::outcome::{BaseForecast, LaneForecast};
use crate::merge::verify::verifier::Verifier;

/// Returns what the base of a stack would have after its landing, by the stack's trees; none if no lane lands.
/// Checks and hooks, which may still remove a lane or change a tree, are not run.
pub(crate) fn forecast_base(
    project: &Project,
    verifier: &mut Verifier,
    stack: &Stack,
    temp_objects: Option<&TempObjectStore>,
) -> Result<Option<BaseForecast>, Error> {
    let Some(top) = stack.applied_lanes.last() else { return Ok(None) };
    let mut below = project.repo.tree_of(stack.base)?;
    let mut pairs: Vec<[TreeId; 2]> = vec![[below, top.tree]];
    for applied in &stack.applied_lanes {
        pairs.push([below, applied.tree]);
        below = applied.tree;
    }
    // What would land is known without its size.
    let stats = project.repo.diff_stats(&pairs, temp_objects).unwrap_or_default();
    proq_base::interrupt::require_no_signal()?;
    let mut check_commands = |lanes: &[AppliedLane]| {
        let numbers = verifier.command_numbers_on(&stack.onto, lanes);
        verifier.commands.lines_of(&numbers)
    };
    let forecast_lane = |(index, applied): (usize, &AppliedLane)| LaneForecast {
        lane: applied.candidate.lane.name.clone(),
        diffstat: stats.get(index + 1).copied(),
        check_commands: check_commands(slice::from_ref(applied)),
    };
    let lanes = stack.applied_lanes.iter().enumerate().map(forecast_lane).collect();
    Ok(Some(BaseForecast {
        lanes,
        onto: stack.onto.clone(),
        strategy: stack.strategy,
        tree: top.tree,
        diffstat: stats.first().copied(),
        check_commands: check_commands(&stack.applied_lanes),
    }))
}
