//! Owns checking captured conflicts: record and ref belong together, and the lane says so.

use super::finding::Finding;
use super::scene::Scene;
use crate::store::Record;
use crate::store::records::{ConflictRecord, LaneState};

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
    out
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
