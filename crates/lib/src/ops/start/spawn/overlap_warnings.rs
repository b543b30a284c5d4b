//! Warnings about other lanes that may change the same files as a new lane.

use proq_git::base::error::list_paths;
use proq_git::status::scope::Scope;

use crate::lane;
use crate::lane::Project;
use crate::lane::creation::create::LanePlan;
use crate::lane::inspection::scope_overlap;
use crate::lane::inspection::scope_overlap::{OverlappingLane, ScopeOverlap};

/// Maximum number of lanes with an overlapping scope that are named in warnings.
const MAX_LANES_NAMED: usize = 5;

/// Warns of other lanes whose work or scope overlaps the planned lane's. If they cannot be determined, that
/// too is only a warning.
pub(super) fn warn_of_overlapping_lanes(project: &Project, plan: &LanePlan<'_>) {
    if plan.scope().is_empty() {
        return;
    }
    let result = Scope::parse(plan.scope())
        .map_err(lane::Error::from)
        .and_then(|scope| scope_overlap::overlapping_lanes(project, plan.base().start, &scope));
    let lanes = match result {
        Ok(lanes) => lanes,
        Err(e) => {
            let text = format!("cannot tell which lanes work in the same scope: {e}");
            return project.listener.warn(text);
        }
    };
    for lane in lanes.iter().take(MAX_LANES_NAMED) {
        project.listener.warn(format!("{}; they may conflict: git proq matrix", describe_overlap(lane)));
    }
    if lanes.len() > MAX_LANES_NAMED {
        let more = match lanes.len() - MAX_LANES_NAMED {
            1 => "1 more lane".to_owned(),
            n => format!("{n} more lanes"),
        };
        project.listener.warn(format!("{more} may conflict with it as well: git proq matrix"));
    }
}

/// Describes another lane whose work or scope overlaps the planned lane's.
fn describe_overlap(overlapping: &OverlappingLane) -> String {
    let OverlappingLane { lane, is_busy, glob, overlap } = overlapping;
    match overlap {
        ScopeOverlap::Files(files) => {
            let names = list_paths(files);
            let names_suffix = if names == *glob { String::new() } else { format!(" ({names})") };
            if *is_busy {
                format!("lane '{lane}' also works in {glob}{names_suffix}")
            } else {
                format!("lane '{lane}' has unmerged work in {glob}{names_suffix}")
            }
        }
        ScopeOverlap::Scope(other_glob) => {
            let activity =
                if *is_busy { "is working with the scope" } else { "is not merged and has the scope" };
            let overlap_text =
                if other_glob == glob { " too".to_owned() } else { format!(", which meets {glob}") };
            format!("lane '{lane}' {activity} {other_glob}{overlap_text}")
        }
    }
}
