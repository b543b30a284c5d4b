//! Health checks of captured conflicts: record, ref and the state of the lane agree.

use proq_base::explain::shell_quote_path as quoted;
use proq_base::lane_name::LaneName;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::conflict::{ConflictRecord, ResolutionRecord};
use proq_store::records::lane::LaneRecord;
use proq_store::records::lane_state::LaneState;

use super::check_context::CheckContext;
use super::finding::Finding;

/// Prefix of the refs that keep the commits of captured conflicts.
pub(super) const CONFLICT_REFS: &str = "refs/proq/conflict/";

/// Checks every conflict, by record and by ref.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    let layout = context.project.store.layout();
    for lane in &context.lanes {
        let name = &lane.name;
        let (subject, merge_command) =
            (format!("conflict of lane '{name}'"), format!("git proq merge {name}"));
        let has_ref = context.refs.contains_key(&format!("{CONFLICT_REFS}{name}"));
        match ConflictRecord::load_if_exists(&layout.conflict_record(name)) {
            Err(e) => {
                out.push(
                    Finding::from_error("conflict-record", subject, &e)
                        .with_left_reason("merging captures it again"),
                );
            }
            Ok(Some(_)) if !has_ref => {
                let message = format!("no ref keeps the conflict of lane '{name}': its sides may get lost");
                let found = Finding::error("conflict-ref", subject, message);
                out.push(found.with_help(merge_command).with_left_reason("merging captures it again"));
            }
            Ok(None) if lane.state() == LaneState::Conflict => {
                let message = format!("lane '{name}' is in conflict, but the conflict has no record");
                let found = Finding::error("conflict-record", subject, message);
                out.push(found.with_help(merge_command).with_left_reason("merging captures it again"));
            }
            Ok(_) => {}
        }
    }
    out.extend(orphaned_refs(context));
    for lane in &context.lanes {
        out.extend(check_resolution(context, lane));
    }
    out
}

/// Checks an open conflict resolution: its folder, record and ref belong together.
fn check_resolution(context: &CheckContext<'_>, lane: &LaneRecord) -> Option<Finding> {
    let (project, name) = (context.project, &lane.name);
    let subject = format!("conflict of lane '{name}'");
    let abort_command = format!("git proq resolve {name} --abort");
    let dir = project.resolution_dir(name);
    let problem = match project.find_resolution(name) {
        Err(e) => {
            let reason = "only you can judge its contents";
            return Some(Finding::from_error("resolve-record", subject, &e).with_left_reason(reason));
        }
        Ok(Some(resolution)) if !project.repo.is_registered_worktree(&resolution.worktree_path) => {
            format!(
                "{}, where the conflict of lane '{name}' is resolved, is no longer a worktree",
                resolution.worktree_path.display()
            )
        }
        Ok(Some(_)) if !context.refs.contains_key(&ResolutionRecord::ref_name(name)) => {
            format!("no ref keeps git's merge of the conflict of lane '{name}'")
        }
        Ok(None) if !context.is_locked(name.as_str()) && dir.exists() => {
            let message = format!("{} is left over from a conflict", dir.display());
            return Some(
                Finding::warning("resolve-folder", subject, message)
                    .with_help(format!("ls -la {}", quoted(&dir)))
                    .with_left_reason("its contents may be yours"),
            );
        }
        Ok(_) => return None,
    };
    Some(
        Finding::error("resolve-record", subject, problem)
            .with_help(abort_command)
            .with_left_reason("aborting saves its contents"),
    )
}

/// Finds conflict refs whose lane or record is gone. The refs of removed lanes stay on purpose.
fn orphaned_refs(context: &CheckContext<'_>) -> Vec<Finding> {
    let layout = context.project.store.layout();
    let history = Layout::entry_names(&layout.removed_lanes());
    let is_known = |lane: &str| {
        LaneName::parse(lane).is_ok_and(|name| layout.conflict_record(&name).exists())
            || history.iter().any(|p| {
                p.rsplit_once('@').is_some_and(|(name, _)| name == lane)
                    && Layout::conflict_record_in(&layout.removed_lane(p)).exists()
            })
    };
    let orphaned = context.refs_below(CONFLICT_REFS).filter(|(lane, _)| !is_known(lane));
    orphaned
        .map(|(lane, tip)| {
            let message = format!("{CONFLICT_REFS}{lane} keeps a conflict that belongs to no lane");
            let reason = "both sides of a conflict hang on it";
            Finding::warning("conflict-ref", format!("conflict of lane '{lane}'"), message)
                .with_help(format!("git update-ref -d {CONFLICT_REFS}{lane} {tip}"))
                .with_left_reason(reason)
        })
        .collect()
}
