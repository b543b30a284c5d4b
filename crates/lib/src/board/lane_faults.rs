//! Lanes that have lost their branch or worktree, or whose worktree is unusable, and the commands that help.

use proq_store::records::lane::LaneRecord;

use super::rows::lane_list::missing_parts;
use crate::lane::Project;
use crate::lane::context::{head_ownership, misplaced};
use crate::lane::inspection::evidence;
use crate::lane::inspection::list::LaneView;
use crate::lane::removal::remove_lane;
use crate::snapshot::snap_view;

/// Returns a line for each fault of the lanes: folders that are not the lanes' worktrees first, then lost
/// branches and worktrees, then worktrees that git cannot use. A line names the lane, the fault and, if there
/// is one, the command that helps.
#[must_use]
pub fn lane_faults(project: &Project, views: &[LaneView]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut missing = Vec::new();
    let mut defects = Vec::new();
    for view in views {
        let name = &view.lane.name;
        let owned_lane = view.lane.clone().into_owned_lane().ok();
        let fault = owned_lane.as_ref().and_then(|lane| {
            let fault = misplaced::find_folder_fault(project, lane)?;
            let help = fault.fix_command(&project.repo, lane).map(|command| format!(": {command}"));
            Some(format!("lane '{name}': {}{}", fault.describe(lane), help.unwrap_or_default()))
        });
        if let (None, Some(lane), parts @ [_, ..]) = (&fault, &owned_lane, missing_parts(view).as_slice()) {
            let help = restore_command(project, view, lane);
            missing.push(format!("lane '{name}' no longer has a {}: {help}", parts.join(" or ")));
        }
        faults.extend(fault);
        if let Some((defect, branch)) = view.worktree_defect.zip(view.lane.branch()) {
            let repair = defect.repair_command(&project.repo, &view.lane.path, branch);
            defects.push(format!("lane '{name}': {}: {repair}", defect.describe()));
        }
    }
    faults.into_iter().chain(missing).chain(defects).collect()
}

/// Returns the command that restores the lost branch or worktree of a lane, or else the one that removes the
/// lane. Cleanup retains commits that are not on the base.
fn restore_command(project: &Project, view: &LaneView, lane: &LaneRecord) -> String {
    if let Some(move_command) = snap_view::restore_folder_command(project, lane) {
        return move_command;
    }
    if view.tip.is_some() {
        return remove_lane::missing_folder_command(project, lane);
    }
    let is_lost = view.tip.is_none() && evidence::lost_commit(project, lane).ok().flatten().is_some();
    let recreate_command = head_ownership::recreate_branch_command(project, lane).filter(|_| is_lost);
    recreate_command.unwrap_or_else(|| remove_lane::removal_command(project, lane))
}
