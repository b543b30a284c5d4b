//! Owns checking for what looks like a lane's and is none: branches, worktrees, folders, registrations.

use super::finding::Finding;
use super::repair::Repair;
use super::scene::{Scene, quoted};
use crate::explain::word;
use crate::git::Registration;
use crate::lane;
use crate::store::LockName;
use crate::store::Record;
use crate::store::records::{LaneRecord, TrashRecord};

/// Everything that no lane has on record.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = branches(scene);
    for found in &scene.registrations {
        out.extend(registration(scene, found));
    }
    out.extend(folders(scene));
    out
}

/// Whether a lane of this name is being made or removed right now. Its record may not exist.
fn is_held(scene: &Scene<'_>, name: &str) -> bool {
    scene.project.store.locks().is_held(&LockName::Run(name.to_owned())).unwrap_or(true)
}

fn branches(scene: &Scene<'_>) -> Vec<Finding> {
    let project = scene.project;
    let prefix = format!("refs/heads/{}/", project.settings.prefix);
    let mut out = Vec::new();
    // Those of batches are looked at with these.
    for (name, _) in scene.below(&prefix).filter(|(name, _)| !name.starts_with("batch-")) {
        let branch = format!("{}/{name}", project.settings.prefix);
        // A lane's own, or what it was renamed to.
        let is_of = |lane: &LaneRecord| {
            lane.place.branch == branch
                || (scene.branch(&lane.place.branch).is_none()
                    && lane::renamed_to(project, lane).as_ref() == Some(&branch))
        };
        let known = scene.lanes.iter().any(is_of);
        if let Some(shown) = name.strip_suffix("-preview") {
            let open = scene.preview.as_ref().is_some_and(|open| open.branch == branch);
            let on = scene.head == Some(crate::git::Head::Branch(branch.clone()));
            if !open && !on && !known {
                let message = format!("'{branch}' is left of a preview of '{shown}' that is over");
                out.push(
                    Finding::warning("preview-branch", branch.clone(), message)
                        .help(format!("git branch -d {}", word(&branch)))
                        .left("commits may have been made on it; git refuses if they are nowhere else"),
                );
            }
        } else if !known && !scene.has_lane(name) && !is_held(scene, name) {
            let message = format!("branch '{branch}' belongs to no lane and takes the name '{name}'");
            out.push(
                Finding::warning("branch-without-lane", branch.clone(), message)
                    .help(format!("git branch -m {} {}", word(&branch), word(name)))
                    .left("there may be work on it"),
            );
        }
    }
    out
}

fn registration(scene: &Scene<'_>, found: &Registration) -> Option<Finding> {
    let name = scene.project.name_at(&found.path, found.branch.as_deref())?;
    let known = scene.lanes.iter().any(|lane| lane.path == found.path || lane.place.worktree_id == found.id);
    if known || scene.has_lane(name.as_str()) || is_held(scene, name.as_str()) {
        return None;
    }
    let subject = format!("worktree '{}'", found.id);
    if found.path.exists() {
        let message = format!("{} is a worktree that no lane has on record", found.path.display());
        return Some(
            Finding::error("worktree-without-lane", subject, message)
                .help("git proq cleanup")
                .left("cleanup looks for work in it first"),
        );
    }
    let message = format!("git has a worktree '{}' on record whose lane and folder are gone", found.id);
    let finding = Finding::warning("registration", subject, message);
    Some(if found.locked {
        finding.help(format!("git worktree unlock {}", quoted(&found.path))).left("somebody has locked it")
    } else {
        finding
            .help("git proq doctor --fix")
            .repair(Repair::RetireRegistration(name.to_string(), found.path.clone()))
    })
}

/// Folders among the lanes' in the main checkout that are no worktree of anybody's.
fn folders(scene: &Scene<'_>) -> Vec<Finding> {
    let home = scene.project.lanes_dir();
    let removed = set_aside(scene);
    let mut out = Vec::new();
    for entry in std::fs::read_dir(&home).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let known = scene.lanes.iter().any(|lane| lane.path == path)
            || scene.registrations.iter().any(|r| r.path == path)
            || removed.contains(&path)
            || scene.has_lane(&name);
        let ours = name == ".gitignore" || name == ".resolve" || name == ".look";
        if known || ours || is_held(scene, &name) {
            continue;
        }
        let message = format!("{} belongs to no lane and is no worktree", path.display());
        out.push(
            Finding::warning("folder-without-lane", name, message)
                .help(format!("ls -la {}", quoted(&path)))
                .left("what is in it is somebody's"),
        );
    }
    out
}

/// Folders of removed lanes that could not be moved to the trash, which is on another disk.
fn set_aside(scene: &Scene<'_>) -> Vec<std::path::PathBuf> {
    let layout = scene.project.store.layout();
    let record =
        |name: &String| TrashRecord::find(&layout.folder_of("trash", name).join("trash.toml")).ok().flatten();
    layout.names_in("trash").iter().filter_map(record).filter_map(|record| record.worktree).collect()
}
