//! Owns checking for what processes that died left behind: git's lock files and half-written records.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::finding::Finding;
use super::repair::Repair;
use super::scene::{Scene, quoted};
use crate::git::lock_owner;
use crate::process::birth_of;
use crate::store::maker_of;

/// No git command that is alive keeps a lock file for so long, unless somebody sits in its editor.
const LONG: Duration = Duration::from_mins(5);

/// What is older than this nobody comes back to.
const OLD: Duration = Duration::from_hours(24);

/// Lock files and half-written files.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for lock in scene.project.repo.lock_files() {
        out.extend(lock_file(&lock));
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

fn lock_file(lock: &Path) -> Option<Finding> {
    let age = age(lock)?;
    let owner = lock_owner(lock);
    let whose = match owner {
        Some(pid) if is_dead(pid) => format!("of git-proq process {pid}, which is dead"),
        None if age > LONG => format!("{} minutes old", age.as_secs() / 60),
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
