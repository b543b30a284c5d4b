//! Health checks for items that resemble a lane's but belong to none: branches, worktrees, folders,
//! registrations.

use proq_base::explain::{shell_quote, shell_quote_path as quoted};
use proq_base::lane_name::LaneName;
use proq_git::worktrees::health_probe::WorktreeRegistration;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::LaneRecord;
use proq_store::records::trash::TrashRecord;

use super::check_context::CheckContext;
use super::finding::Finding;
use super::repair::Repair;
use crate::lane::context::head_ownership;

/// Checks for branches, worktrees and folders that no lane has on record.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = check_branches(context);
    for found in &context.registrations {
        out.extend(check_registration(context, found));
    }
    out.extend(check_folders(context));
    out
}

/// Returns whether a lane of this name is being created or removed now. Its record may not exist. False for a
/// text that is no lane's name.
fn is_lane_locked(context: &CheckContext<'_>, name: &str) -> bool {
    let is_held = |name| context.project.store.locks().is_held(&LockName::Run(name)).unwrap_or(true);
    LaneName::parse(name).is_ok_and(is_held)
}

/// Finds lane branches and preview branches that belong to no lane on record.
fn check_branches(context: &CheckContext<'_>) -> Vec<Finding> {
    let project = context.project;
    let prefix = format!("refs/heads/{}/", project.settings.branch_prefix);
    let mut out = Vec::new();
    // The checks of batches cover the branches of batches.
    for (name, _) in context.refs_below(&prefix).filter(|(name, _)| !name.starts_with("batch-")) {
        let branch = format!("{}/{name}", project.settings.branch_prefix);
        // The lane's branch, or the new name of its renamed branch.
        let owns_branch = |lane: &LaneRecord| {
            lane.kind.branch == branch
                || (context.branch_tip(&lane.kind.branch).is_none()
                    && head_ownership::find_renamed_branch(project, lane).as_ref() == Some(&branch))
        };
        let is_known = context.lanes.iter().any(owns_branch);
        if let Some(previewed) = name.strip_suffix("-preview") {
            let is_open = context.preview.as_ref().is_some_and(|open| open.branch == branch);
            let is_checked_out = context.head == Some(proq_git::base::head::Head::Branch(branch.clone()));
            if !is_open && !is_checked_out && !is_known {
                let message = format!("'{branch}' is left over from a preview of '{previewed}'");
                out.push(
                    Finding::warning("preview-branch", branch.clone(), message)
                        .with_help(format!("git branch -d {}", shell_quote(&branch)))
                        .with_left_reason("it may have commits; git refuses if they are nowhere else"),
                );
            }
        } else if !is_known && !context.has_lane(name) && !is_lane_locked(context, name) {
            let message = format!("branch '{branch}' belongs to no lane and blocks the name '{name}'");
            out.push(
                Finding::warning("branch-without-lane", branch.clone(), message)
                    .with_help(format!("git branch -m {} {}", shell_quote(&branch), shell_quote(name)))
                    .with_left_reason("it may have work"),
            );
        }
    }
    out
}

/// Finds a worktree at a lane's path that no lane has on record; `found` is git's registration of it.
fn check_registration(context: &CheckContext<'_>, found: &WorktreeRegistration) -> Option<Finding> {
    let name = context.project.lane_name_at(&found.path, found.branch.as_deref())?;
    let is_known =
        context.lanes.iter().any(|lane| lane.path == found.path || lane.kind.worktree_id == found.id);
    if is_known || context.has_lane(name.as_str()) || is_lane_locked(context, name.as_str()) {
        return None;
    }
    let subject = format!("worktree '{}'", found.id);
    if found.path.exists() {
        let message = format!("{} is a worktree that belongs to no lane", found.path.display());
        return Some(
            Finding::error("worktree-without-lane", subject, message)
                .with_help("git proq cleanup")
                .with_left_reason("cleanup checks it for work first"),
        );
    }
    let message =
        format!("git has a record of worktree '{}', whose lane and folder no longer exist", found.id);
    let finding = Finding::warning("registration", subject, message);
    Some(if found.locked {
        finding
            .with_help(format!("git worktree unlock {}", quoted(&found.path)))
            .with_left_reason("it is locked")
    } else {
        finding
            .with_help("git proq doctor --fix")
            .with_repair(Repair::RetireRegistration(name, found.path.clone()))
    })
}

/// Finds folders in the lanes' folder of the main checkout that are no worktrees.
fn check_folders(context: &CheckContext<'_>) -> Vec<Finding> {
    let lanes_folder = context.project.lanes_dir();
    let removed = trash_on_other_disks(context);
    let mut out = Vec::new();
    for entry in std::fs::read_dir(&lanes_folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_known = context.lanes.iter().any(|lane| lane.path == path)
            || context.registrations.iter().any(|r| r.path == path)
            || removed.contains(&path)
            || context.has_lane(&name);
        let is_internal = name == ".gitignore" || name == ".resolve" || name == ".look";
        if is_known || is_internal || is_lane_locked(context, &name) {
            continue;
        }
        let message = format!("{} belongs to no lane and is not a worktree", path.display());
        out.push(
            Finding::warning("folder-without-lane", name, message)
                .with_help(format!("ls -la {}", quoted(&path)))
                .with_left_reason("its contents may be yours"),
        );
    }
    out
}

/// Returns the folders of trash entries that are outside of the trash, because it is on another disk.
fn trash_on_other_disks(context: &CheckContext<'_>) -> Vec<std::path::PathBuf> {
    let layout = context.project.store.layout();
    let record = |name: &String| {
        TrashRecord::load_if_exists(&Layout::trash_record_in(&layout.trash().join(name))).ok().flatten()
    };
    Layout::entry_names(&layout.trash())
        .iter()
        .filter_map(record)
        .filter_map(|record| record.current_path)
        .collect()
}
