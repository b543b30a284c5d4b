//! Owns checking for what processes that died left behind: git's lock files and half-written records.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::finding::Finding;
use super::repair::Repair;
use super::scene::{Scene, quoted};
use crate::git::lock_owner;
use crate::process::birth_of;
use crate::store::maker_of;
use crate::store::records::LaneRecord;

/// No git command that is alive keeps a lock file for so long, unless somebody sits in its editor.
const LONG: Duration = Duration::from_mins(5);

/// What is older than this nobody comes back to.
const OLD: Duration = Duration::from_hours(24);

/// Lock files and half-written files.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for lock in scene.project.repo.lock_files() {
        out.extend(lock_file(scene, &lock));
    }
    out.extend(half_written(scene));
    out
}

fn age(path: &Path) -> Option<Duration> {
    let changed = path.symlink_metadata().ok()?.modified().ok()?;
    Some(SystemTime::now().duration_since(changed).unwrap_or_default())
}

fn is_dead(pid: u32) -> bool {
    birth_of(pid).is_none()
}

/// The lane whose last run left a lock on its index: it was there when the run's end was written down, and nobody is at work there.
fn left_by(scene: &Scene<'_>, lock: &Path) -> Option<String> {
    let project = scene.project;
    let is_of = |lane: &&LaneRecord| {
        let index = project.repo.git_dir_of(&lane.path).map(|git_dir| git_dir.join("index.lock"));
        index.is_ok_and(|index| index == lock)
    };
    let lane = scene.lanes.iter().filter(|lane| !scene.is_held(&lane.name)).find(is_of)?;
    let time = |path: &Path| path.symlink_metadata().ok()?.modified().ok();
    let ended = time(&project.store.layout().run_record(&lane.name, lane.attempt))?;
    (time(lock)? <= ended).then(|| lane.name.clone())
}

fn lock_file(scene: &Scene<'_>, lock: &Path) -> Option<Finding> {
    let age = age(lock)?;
    let owner = lock_owner(lock);
    let whose = match owner {
        Some(pid) if is_dead(pid) => format!("of git-proq process {pid}, which is dead"),
        None if age > LONG => format!("{} minutes old", age.as_secs() / 60),
        None => format!("left by the last run of lane '{}', which has ended", left_by(scene, lock)?),
        _ => return None,
    };
    let message = format!("{} ({whose}) keeps git from changing what it locks", lock.display());
    Some(
        Finding::error("git-lock", lock.display().to_string(), message)
            .help(format!("rm {}", quoted(lock)))
            .left("only you can tell that no git command is at work there"),
    )
}

fn half_written(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for file in scene.project.store.layout().half_written() {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !maker_of(&name).is_some_and(is_dead) {
            continue;
        }
        let message =
            format!("{} was being written when its process died; the record itself is whole", file.display());
        let found = Finding::warning("half-written", name, message).help("git proq doctor --fix");
        out.push(if age(&file).is_some_and(|a| a > OLD) {
            found.repair(Repair::PutAside(file))
        } else {
            found.left("it is less than a day old")
        });
    }
    out
}
