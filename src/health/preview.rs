//! Owns checking the open preview against the main checkout: whose changes wait, and whether they can come back.

use super::finding::Finding;
use super::repair::Repair;
use super::scene::Scene;
use crate::git::Head;
use crate::store::records::PreviewRecord;

const BACK: &str = "git proq preview --back";

/// The preview on record, or a checkout that shows one without.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    match &scene.preview {
        Some(open) => [origin(scene, open), lane(scene, open), place(scene, open), changes(scene, open)]
            .into_iter()
            .flatten()
            .collect(),
        None => unrecorded(scene).into_iter().collect(),
    }
}

fn of(open: &PreviewRecord) -> String {
    format!("preview of '{}'", open.lane)
}

fn is_home(scene: &Scene<'_>, open: &PreviewRecord) -> bool {
    scene.head.as_ref() == Some(&open.came_from)
}

fn is_shown(scene: &Scene<'_>, open: &PreviewRecord) -> bool {
    scene.head == Some(Head::Branch(open.branch.clone()))
}

fn origin(scene: &Scene<'_>, open: &PreviewRecord) -> Option<Finding> {
    let Head::Branch(branch) = &open.came_from else { return None };
    if scene.branch(branch).is_some() {
        return None;
    }
    let message = format!("'{branch}', which the preview of '{}' goes back to, is gone", open.lane);
    let help = format!("git branch {branch} {}", open.came_from_commit.short());
    Some(
        Finding::error("preview-origin", of(open), message).help(help).left("somebody deleted it on purpose"),
    )
}

fn lane(scene: &Scene<'_>, open: &PreviewRecord) -> Option<Finding> {
    if scene.has_lane(&open.lane) || is_home(scene, open) {
        return None;
    }
    let message = format!("the main checkout shows lane '{}', which is gone", open.lane);
    Some(Finding::warning("preview-lane", of(open), message).help(BACK))
}

fn place(scene: &Scene<'_>, open: &PreviewRecord) -> Option<Finding> {
    let waiting = open.snapshot.as_ref().is_some_and(|id| scene.waits(id));
    let wait = if waiting { "; your own changes wait" } else { "" };
    if is_shown(scene, open) {
        return scene.branch(&open.branch).is_none().then(|| {
            let message = format!("the main checkout is on '{}', which is gone", open.branch);
            Finding::error("preview-branch", of(open), message)
                .help(format!("git branch {} {}", open.branch, open.tip.short()))
                .left("commits may have been made on it")
        });
    }
    let on = scene.head.as_ref().map_or_else(|| "no commit".to_owned(), ToString::to_string);
    let message = format!("the preview of '{}' was left by hand, for {on}{wait}", open.lane);
    let finding = Finding::warning("preview-place", of(open), message);
    let over = is_home(scene, open) && !waiting && scene.branch(&open.branch).is_none();
    Some(if over {
        finding.help(BACK).repair(Repair::ClosePreview)
    } else if is_home(scene, open) {
        finding.help(BACK).left("changes come back only when you say so")
    } else {
        let help = format!("git switch {} && {BACK}", open.came_from);
        finding.help(help).left("you switched on purpose, perhaps")
    })
}

fn changes(scene: &Scene<'_>, open: &PreviewRecord) -> Option<Finding> {
    let id = open.snapshot.as_ref().filter(|id| !scene.has_snap(id))?;
    // At home it was brought back by somebody who was cut off before closing the preview.
    if is_home(scene, open) {
        return None;
    }
    let message = format!(
        "your changes from before the preview of '{}' (snapshot {id}) cannot be found: neither record nor ref is left",
        open.lane
    );
    Some(
        Finding::error("preview-changes", of(open), message)
            .help("git fsck --lost-found")
            .left("what is lost cannot be made again"),
    )
}

fn unrecorded(scene: &Scene<'_>) -> Option<Finding> {
    let Some(Head::Branch(branch)) = &scene.head else { return None };
    // One that cannot be read is said already.
    if scene.project.store.layout().preview().exists() {
        return None;
    }
    let lane = scene.project.lane_of_preview(branch)?;
    let message = format!("the main checkout is on the preview branch of '{lane}', and no preview is open");
    Some(
        Finding::error("preview-record", branch.clone(), message)
            .help("git switch -")
            .left("where you came from was in the record"),
    )
}
