//! Owns checking captured conflicts: record and ref belong together, and the lane says so.

use super::finding::Finding;
use super::scene::{Scene, quoted};
use crate::store::Record;
use crate::store::records::{ConflictRecord, LaneRecord, LaneState, ResolveRecord};

/// Where conflicts keep their objects.
pub(super) const REFS: &str = "refs/proq/conflict/";

/// Every conflict, by record and by ref.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    let layout = scene.project.store.layout();
    for lane in &scene.lanes {
        let name = &lane.name;
        let (subject, again) = (format!("conflict of lane '{name}'"), format!("git proq merge {name}"));
        let kept = scene.refs.contains_key(&format!("{REFS}{name}"));
        match ConflictRecord::find(&layout.conflict(name)) {
            Err(e) => {
                out.push(Finding::of_error("conflict-record", subject, &e).left("merging captures it anew"));
            }
            Ok(Some(_)) if !kept => {
                let message =
                    format!("no ref keeps the conflict of lane '{name}': its two sides may get lost");
                let found = Finding::error("conflict-ref", subject, message);
                out.push(found.help(again).left("merging captures it anew"));
            }
            Ok(None) if lane.state == LaneState::Conflict => {
                let message = format!("lane '{name}' is in conflict, but nothing tells with what");
                let found = Finding::error("conflict-record", subject, message);
                out.push(found.help(again).left("merging captures it anew"));
            }
            Ok(_) => {}
        }
    }
    out.extend(lone_refs(scene));
    for lane in &scene.lanes {
        out.extend(resolving(scene, lane));
    }
    out
}

/// A conflict that is laid out to be resolved: its folder, record and ref belong together.
fn resolving(scene: &Scene<'_>, lane: &LaneRecord) -> Option<Finding> {
    let (project, name) = (scene.project, &lane.name);
    let subject = format!("conflict of lane '{name}'");
    let abort = format!("git proq resolve {name} --abort");
    let dir = project.resolve_dir(name);
    let problem = match project.resolving(name) {
        Err(e) => {
            let why = "what is laid out is for a person to judge";
            return Some(Finding::of_error("resolve-record", subject, &e).left(why));
        }
        Ok(Some(open)) if !project.repo.is_own_worktree(&open.path) => {
            format!(
                "{}, where the conflict of lane '{name}' is laid out, is no worktree any more",
                open.path.display()
            )
        }
        Ok(Some(_)) if !scene.refs.contains_key(&ResolveRecord::ref_name(name)) => {
            format!("no ref keeps what git made of the conflict of lane '{name}'")
        }
        Ok(None) if !scene.is_held(name) && dir.exists() => {
            let message = format!("{} is left of a conflict that nobody resolves", dir.display());
            return Some(
                Finding::warning("resolve-folder", subject, message)
                    .help(format!("ls -la {}", quoted(&dir)))
                    .left("what is in it is somebody's"),
            );
        }
        Ok(_) => return None,
    };
    Some(
        Finding::error("resolve-record", subject, problem)
            .help(abort)
            .left("giving it up keeps what is left"),
    )
}

/// Refs whose lane or record is gone. Those of removed lanes stay on purpose.
fn lone_refs(scene: &Scene<'_>) -> Vec<Finding> {
    let layout = scene.project.store.layout();
    let past = layout.names_in("history");
    let known = |lane: &str| {
        layout.conflict(lane).exists()
            || past.iter().any(|p| {
                p.rsplit_once('@').is_some_and(|(name, _)| name == lane)
                    && layout.folder_of("history", p).join("conflict.toml").exists()
            })
    };
    let lone = scene.below(REFS).filter(|(lane, _)| !known(lane));
    lone.map(|(lane, tip)| {
        let message = format!("{REFS}{lane} keeps a conflict that no lane has on record");
        let why = "both sides of a conflict hang on it";
        Finding::warning("conflict-ref", format!("conflict of lane '{lane}'"), message)
            .help(format!("git update-ref -d {REFS}{lane} {tip}"))
            .left(why)
    })
    .collect()
}
