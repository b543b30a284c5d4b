//! Validation and output of the lane arguments that several commands share: checks, scope and sparse
//! checkout.

use proq_git::base::error;
use proq_git::status::scope::Scope;
use proq_lib::lane;
use proq_lib::lane::Project;
use proq_lib::lane::creation::create::LanePlan;
use proq_lib::lane::inspection::scope_overlap;
use proq_lib::lane::inspection::scope_overlap::{OverlappingLane, ScopeOverlap};

use crate::cli::invocation::context::CommandContext;
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::ui;

/// Maximum number of lanes with an overlapping scope that are named in warnings.
const MAX_OVERLAPPING_LANES_NAMED: usize = 5;

/// Returns the check commands unchanged.
///
/// # Errors
/// [`UsageError::MissingArgument`] if a command is blank: the user would take the lane for checked.
pub(crate) fn validate_checks(commands: &[String]) -> Result<Vec<String>, Failure> {
    if commands.iter().any(|line| line.trim().is_empty()) {
        let reason = "--check names no command";
        let example = "git proq spawn claude \"implement payments\" --check \"make test-payments\"";
        return Err(UsageError::MissingArgument { problem: reason, example }.into());
    }
    Ok(commands.to_vec())
}

/// Returns the globs of the lane's scope unchanged.
///
/// # Errors
/// [`proq_git::Error::InvalidGlob`] if a glob is invalid.
pub(crate) fn validate_scope(globs: &[String]) -> Result<Vec<String>, Failure> {
    Scope::parse(globs)?;
    Ok(globs.to_vec())
}

/// Returns `requested`: whether the lane's checkout is limited to the folders of its scope.
///
/// # Errors
/// [`UsageError::MissingArgument`] if sparse checkout is requested without a scope.
pub(crate) fn validate_sparse(requested: bool, scope: &[String]) -> Result<bool, Failure> {
    if requested && scope.is_empty() {
        let reason = "--sparse checks out what the scope names, and there is no scope; nothing was made";
        let example = "git proq spawn claude \"implement payments\" --sparse --scope src/pay/";
        return Err(UsageError::MissingArgument { problem: reason, example }.into());
    }
    Ok(requested)
}

/// Prints the checks, scope and sparse checkout of a planned lane.
pub(crate) fn print_lane_args(context: &CommandContext, plan: &LanePlan<'_>) {
    for line in plan.checks() {
        context.ui.print_line(format!("  lands if  `{line}` succeeds"));
    }
    for glob in plan.scope() {
        context.ui.print_line(format!("  scope     {glob}"));
    }
    if plan.is_sparse() {
        context.ui.print_line("  has       only the folders of that, and the files above them");
    }
}

/// Warns of other lanes whose work or scope overlaps the planned lane's. If they cannot be determined, that
/// too is only a warning.
pub(crate) fn warn_of_overlapping_lanes(context: &CommandContext, project: &Project, plan: &LanePlan<'_>) {
    if plan.scope().is_empty() {
        return;
    }
    let result = Scope::parse(plan.scope())
        .map_err(lane::Error::from)
        .and_then(|scope| scope_overlap::overlapping_lanes(project, plan.base().start, &scope));
    let overlapping_lanes = match result {
        Ok(overlapping_lanes) => overlapping_lanes,
        Err(e) => {
            return context.ui.warn(format!("which lanes are at work in the scope too is not known: {e}"));
        }
    };
    for overlapping_lane in overlapping_lanes.iter().take(MAX_OVERLAPPING_LANES_NAMED) {
        context
            .ui
            .warn(format!("{}; they may conflict: git proq matrix", describe_overlap(overlapping_lane)));
    }
    if overlapping_lanes.len() > MAX_OVERLAPPING_LANES_NAMED {
        let more_lanes = ui::pluralize(overlapping_lanes.len() - MAX_OVERLAPPING_LANES_NAMED, "more lane");
        context.ui.warn(format!("{more_lanes} may conflict with it as well: git proq matrix"));
    }
}

/// Describes another lane whose work or scope overlaps the planned lane's, for a warning.
fn describe_overlap(overlapping_lane: &OverlappingLane) -> String {
    let OverlappingLane { lane, is_busy, glob, overlap: scope_overlap } = overlapping_lane;
    match scope_overlap {
        ScopeOverlap::Files(files) => {
            let names = error::list_paths(files);
            let names_suffix = if names == *glob { String::new() } else { format!(" ({names})") };
            if *is_busy {
                format!("lane '{lane}' is at work in {glob} too{names_suffix}")
            } else {
                format!("lane '{lane}' has work in {glob} that has not landed{names_suffix}")
            }
        }
        ScopeOverlap::Scope(other_glob) => {
            let activity =
                if *is_busy { "is at work with the scope" } else { "has not landed and has the scope" };
            let overlap_text =
                if other_glob == glob { " too".to_owned() } else { format!(", which meets {glob}") };
            format!("lane '{lane}' {activity} {other_glob}{overlap_text}")
        }
    }
}
