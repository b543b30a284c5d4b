//! Health checks of each lane: record, branch, folder and git's worktree registration agree, and its state is
//! true.

use proq_base::explain::shell_quote_path as quoted;
use proq_git::CommitId;
use proq_git::worktrees::health_probe::WorktreeRegistration;
use proq_store::base::record::Record;
use proq_store::base::run_number::RunNumber;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::{AnyLane, LaneRecord, MergeStrategy};
use proq_store::records::lane_state::LaneState;
use proq_store::records::run::RunRecord;

use super::check_context::CheckContext;
use super::finding::Finding;
use super::repair::Repair;
use crate::lane::context::head_ownership::{
    find_off_branch, find_renamed_branch, last_branch_commit, recreate_branch_command,
};
use crate::lane::context::misplaced::{LaneFolderFault, find_folder_fault};
use crate::lane::context::symbolic_branch::find_symbolic_branch;
use crate::lane::removal::remove_lane::{missing_folder_command, removal_command};
use crate::lane::state::lane_state::effective_state;
use crate::snapshot::snap_view::restore_folder_command;

/// Checks every lane on record, and the records of removed lanes.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for lane in &context.lanes {
        out.extend(check_record_name(context, lane));
        if !context.is_being_changed(lane) {
            out.extend(check_branch(context, lane));
            out.extend(check_folder(context, lane));
            out.extend(check_state(context, lane));
            out.extend(check_runs(context, lane));
            out.extend(check_preview_edits(context, lane));
            out.extend(check_landing(context, lane));
        }
    }
    for lane in &context.guest_lanes {
        out.extend(check_state(context, lane));
        out.extend(check_runs(context, lane));
    }
    out.extend(folders_without_record(context));
    out.extend(check_removed_lane_records(context));
    out
}

fn lane_subject<P>(lane: &LaneRecord<P>) -> String {
    format!("lane '{}'", lane.name)
}

/// Checks that the record is in the folder of its lane's name, and that no other lane has its branch or
/// folder.
fn check_record_name(context: &CheckContext<'_>, lane: &LaneRecord) -> Vec<Finding> {
    let mut out = Vec::new();
    if !context.has_lane(lane.name.as_str()) {
        let message = format!("the record of lane '{}' is in a folder with another name", lane.name);
        out.push(
            Finding::error("lane-record", lane_subject(lane), message)
                .with_left_reason("it may be a copy that you made"),
        );
    }
    let is_twin = |other: &&LaneRecord| other.path == lane.path || other.kind.branch == lane.kind.branch;
    if let Some(other) = context.lanes.iter().filter(|o| o.name < lane.name).find(is_twin) {
        let message = format!("lanes '{}' and '{}' claim the same branch or folder", other.name, lane.name);
        let reason = "which of the two is right is for a person to judge";
        out.push(
            Finding::error("lane-record", lane_subject(lane), message)
                .with_left_reason(reason)
                .with_help(format!("git proq show {}", lane.name)),
        );
    }
    out
}

/// Checks that the lane's branch exists and is no symbolic ref.
fn check_branch(context: &CheckContext<'_>, lane: &LaneRecord) -> Vec<Finding> {
    let mut out = Vec::new();
    let LaneRecord { name, base, .. } = lane;
    let branch = &lane.kind.branch;
    if context.branch_tip(branch).is_none() {
        let branch_trace =
            match (find_renamed_branch(context.project, lane), last_branch_commit(context.project, lane)) {
                (Some(new_name), _) => format!("it was renamed to '{new_name}'"),
                (None, Some(id)) => format!("its last commit {} still exists", id.short()),
                (None, None) => "git has no log of where it was".to_owned(),
            };
        let help = recreate_branch_command(context.project, lane);
        let help = help.unwrap_or_else(|| removal_command(context.project, lane));
        let message = format!("lane '{name}' no longer has a branch; {branch_trace}");
        out.push(
            Finding::error("lane-branch", lane_subject(lane), message)
                .with_help(help)
                .with_left_reason("you may have deleted it on purpose"),
        );
    }
    if let Ok(Some(found)) = find_symbolic_branch(&context.project.repo, lane) {
        let message = format!("lane '{name}': {}; git-proq does not commit or merge there", found.describe());
        out.push(
            Finding::error("lane-branch", lane_subject(lane), message).with_help(found.repair_command()),
        );
    }
    if context.branch_tip(base).is_none() {
        let message = format!(
            "the base '{base}' of lane '{name}' no longer exists; --onto merges it into another branch"
        );
        out.push(Finding::warning("lane-base", lane_subject(lane), message).with_help("git branch"));
    }
    out
}

/// Checks that the lane's folder exists and is its worktree.
fn check_folder(context: &CheckContext<'_>, lane: &LaneRecord) -> Vec<Finding> {
    let name = &lane.name;
    let misplaced = find_folder_fault(context.project, lane);
    if let Some(found) = misplaced.as_ref().filter(|found| **found != LaneFolderFault::Absent) {
        return vec![misplaced_finding(context, lane, found)];
    }
    if !lane.path.exists() {
        let message = match misplaced {
            Some(found) => format!("lane '{name}': {}", found.describe(lane)),
            None => format!("the folder of lane '{name}' is missing, with its uncommitted changes"),
        };
        if let Some(return_command) = restore_folder_command(context.project, lane) {
            let message =
                format!("the folder of lane '{name}' is missing; its uncommitted changes are in a snapshot");
            return vec![
                Finding::error("lane-folder", lane_subject(lane), message).with_help(return_command),
            ];
        }
        let found = Finding::error("lane-folder", lane_subject(lane), message)
            .with_help(missing_folder_command(context.project, lane))
            .with_left_reason("it may be on a disk that is not mounted");
        return vec![found];
    }
    let Some(found) = context.registrations.iter().find(|r| r.path == lane.path) else {
        // The lane is just being created or removed.
        return Vec::new();
    };
    if let Ok(Some(missing)) = context.project.repo.find_worktree_defect(&lane.path) {
        let message =
            format!("lane '{name}': {}; git-proq does not run, commit or merge there", missing.describe());
        let help = missing.repair_command(&context.project.repo, &lane.path, &lane.kind.branch);
        let found = Finding::error("lane-worktree", lane_subject(lane), message).with_help(help);
        return vec![found.with_left_reason(format!("or remove it: git proq discard --force {name}"))];
    }
    check_registration(context, lane, found)
}

fn misplaced_finding(context: &CheckContext<'_>, lane: &LaneRecord, found: &LaneFolderFault) -> Finding {
    let message = format!("lane '{}': {}", lane.name, found.describe(lane));
    let left_reason = match found {
        LaneFolderFault::Foreign { .. } => "the folder belongs to another repository",
        LaneFolderFault::NotAFolder(_) | LaneFolderFault::Unrecorded(_) => "the files there may be yours",
        LaneFolderFault::Unreadable(_) => "its owner decides who may read it",
        _ => "the command of git repairs this, or refuses",
    };
    let finding = Finding::error("lane-worktree", lane_subject(lane), message).with_left_reason(left_reason);
    match found.fix_command(&context.project.repo, lane) {
        Some(help) => finding.with_help(help),
        None => finding,
    }
}

/// Checks git's registration of the lane's worktree: its id, and the branch that it is on.
fn check_registration(
    context: &CheckContext<'_>,
    lane: &LaneRecord,
    found: &WorktreeRegistration,
) -> Vec<Finding> {
    let mut out = Vec::new();
    let name = &lane.name;
    if found.id != lane.kind.worktree_id {
        let message = format!(
            "git's record of lane '{name}' is '{}', but the lane's is '{}'",
            found.id, lane.kind.worktree_id
        );
        out.push(
            Finding::error("lane-worktree", lane_subject(lane), message)
                .with_help(format!("git proq show {name}"))
                .with_left_reason("its worktree was created again"),
        );
    }
    // Without its branch, the worktree has nothing to switch back to.
    let has_branch = context.branch_tip(&lane.kind.branch).is_some() && !context.is_locked(name.as_str());
    if let Some(head_branch) =
        found.branch.as_ref().filter(|head_branch| **head_branch != lane.kind.branch && has_branch)
    {
        let message =
            format!("lane '{name}' has '{head_branch}' checked out, so commits there are not merged");
        let switch_command = || format!("git -C {} switch {}", quoted(&lane.path), lane.kind.branch);
        let found = find_off_branch(context.project, lane).ok().flatten();
        let return_command = found.map_or_else(switch_command, |off| off.return_command);
        out.push(Finding::warning("lane-head", lane_subject(lane), message).with_help(return_command));
    }
    out
}

/// Finds a lane whose recorded state is not its effective one, or whose supervisor is gone.
fn check_state<P>(context: &CheckContext<'_>, lane: &LaneRecord<P>) -> Option<Finding> {
    let name = &lane.name;
    match effective_state(context.project, lane) {
        Err(e) => Some(Finding::from_error("lane-state", lane_subject(lane), &e)),
        Ok((LaneState::Orphaned, detail)) => {
            let detail = detail.unwrap_or_default();
            let message =
                format!("lane '{name}' is orphaned: {detail}; it can be neither merged nor removed");
            let stop_command = format!("git proq stop {name}");
            Some(
                Finding::warning("lane-orphan", lane_subject(lane), message)
                    .with_help(stop_command)
                    .with_left_reason("its agent may be running"),
            )
        }
        Ok((current, detail)) if current != lane.state() => {
            let reason = detail.unwrap_or_else(|| "its run is over".to_owned());
            let message = format!("lane '{name}' claims to be {}, but {reason}", lane.state());
            Some(
                Finding::error("lane-state", lane_subject(lane), message)
                    .with_help(format!("git proq logs {name}"))
                    .with_repair(Repair::FinishRun(name.clone())),
            )
        }
        Ok(_) => None,
    }
}

/// Finds runs of the lane whose record is missing or unreadable.
fn check_runs<P>(context: &CheckContext<'_>, lane: &LaneRecord<P>) -> Vec<Finding> {
    let layout = context.project.store.layout();
    let mut out = Vec::new();
    for run_number in RunNumber::first().through(lane.last_run) {
        match RunRecord::load_if_exists(&layout.run_record(&lane.name, run_number)) {
            Ok(Some(_)) => {}
            // The record is written when the agent starts: a run that is just starting has none yet.
            Ok(None) if context.is_locked(lane.name.as_str()) => {}
            Ok(None) => {
                let message = format!("the record of run {run_number} of lane '{}' is missing", lane.name);
                out.push(Finding::warning("run-record", lane_subject(lane), message));
            }
            Err(e) => {
                out.push(
                    Finding::from_error("run-record", lane_subject(lane), &e)
                        .with_left_reason("it says how the run ended"),
                );
            }
        }
    }
    out
}

/// Finds preview edits that the lane waits for and of which neither record nor ref is left.
fn check_preview_edits(context: &CheckContext<'_>, lane: &LaneRecord) -> Vec<Finding> {
    let missing = lane.preview_edit_snapshots.iter().filter(|id| !context.has_snapshot(id));
    missing
        .map(|id| {
            let message = format!(
                "lane '{}' expects edits of a preview ({id}) that are lost: neither record nor ref exists",
                lane.name
            );
            let (lane_name, snap) = (lane.name.clone(), id.clone());
            Finding::error("lane-edits", lane_subject(lane), message)
                .with_help("git proq doctor --fix")
                .with_repair(Repair::ForgetEdits { lane: lane_name, snapshot: snap })
        })
        .collect()
}

/// Finds a landed lane whose landing commit is no longer on its base.
fn check_landing(context: &CheckContext<'_>, lane: &LaneRecord) -> Option<Finding> {
    let landed = lane.landed.as_ref()?;
    let repo = &context.project.repo;
    let base = context.branch_tip(&landed.onto)?;
    let is_on_base = |id: CommitId| repo.has_object(id) && repo.is_ancestor(id, base).unwrap_or(false);
    if is_on_base(landed.commit) && (landed.method != MergeStrategy::Merge || is_on_base(landed.tip)) {
        return None;
    }
    let message = format!(
        "lane '{}' landed on {} as {}, which is no longer on it: the branch was reset or rewritten",
        lane.name,
        landed.onto,
        landed.commit.short()
    );
    let help = match context.branch_tip(&lane.kind.branch) {
        Some(_) => format!("git proq merge {}", lane.name),
        None => format!("git branch {} {}", lane.kind.branch, landed.tip.short_in_command()),
    };
    Some(
        Finding::error("lane-landed", lane_subject(lane), message)
            .with_help(help)
            .with_left_reason("you may have undone it on purpose"),
    )
}

/// Finds lane folders without a record: a process was killed while it created or removed the lane.
fn folders_without_record(context: &CheckContext<'_>) -> Vec<Finding> {
    let layout = context.project.store.layout();
    let is_unfinished = |name: &&String| !context.is_locked(name) && !layout.has_record_of_lane_entry(name);
    let unfinished = context.lane_names.iter().filter(is_unfinished);
    unfinished
        .map(|name| {
            let dir = layout.lanes().join(name);
            let message = format!("{} belongs to a lane whose creation was not completed", dir.display());
            Finding::warning("lane-record", format!("lane '{name}'"), message)
                .with_help(format!("ls -R {}", quoted(&dir)))
                .with_left_reason("it may have the prompt of an agent")
        })
        .collect()
}

/// Finds removed lanes whose record is missing or unreadable.
fn check_removed_lane_records(context: &CheckContext<'_>) -> Vec<Finding> {
    let layout = context.project.store.layout();
    let mut out = Vec::new();
    for removed_lane in Layout::entry_names(&layout.removed_lanes()) {
        let (subject, dir) = (format!("removed lane {removed_lane}"), layout.removed_lane(&removed_lane));
        match AnyLane::load_if_exists(&Layout::lane_record_in(&dir)) {
            Ok(Some(_)) => {}
            Ok(None) => {
                let message = format!("the record of removed lane {removed_lane} is missing");
                out.push(
                    Finding::warning("history-record", subject, message)
                        .with_help(format!("ls -R {}", quoted(&dir))),
                );
            }
            Err(e) => out.push(
                Finding::from_error("history-record", subject, &e)
                    .with_left_reason("only you can judge its contents"),
            ),
        }
    }
    out
}
