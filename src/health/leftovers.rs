//! Owns checking for what processes that died left behind: git's lock files, work in progress, half-written records.

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

/// Lock files, work in progress, half-written files.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for lock in scene.project.repo.lock_files() {
        out.extend(lock_file(&lock));
    }
    // While an operation is open, its recovery knows what this work is.
    if scene.project.store.layout().names_in("open").is_empty() {
        out.extend(work(scene));
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

fn work(scene: &Scene<'_>) -> Vec<Finding> {
    let layout = scene.project.store.layout();
    let mut out = Vec::new();
    for id in layout.names_in("work") {
        let dir = layout.folder_of("work", &id);
        let dead = maker_of(&id).map_or_else(|| age(&dir).is_some_and(|a| a > OLD), is_dead);
        if !dead {
            continue;
        }
        let (subject, look) = (format!("work {id}"), format!("ls -R {}", quoted(&dir)));
        match contents(&dir) {
            Contents::Nothing => {
                let message = format!("{} is left of a process that died, and empty", dir.display());
                out.push(
                    Finding::warning("work", subject, message).help(look).repair(Repair::RemoveHollow(dir)),
                );
            }
            Contents::Own => {
                let message =
                    format!("{} is left of a process that died; no file of yours is in it", dir.display());
                let found = Finding::warning("work", subject, message).help(look);
                out.push(if age(&dir).is_some_and(|a| a > OLD) {
                    found.repair(Repair::PutAside(dir))
                } else {
                    found.left("it is less than a day old")
                });
            }
            Contents::Files => {
                let message = format!(
                    "{} holds files that a process was moving when it died; they may be the only copies",
                    dir.display()
                );
                out.push(
                    Finding::error("work", subject, message).help(look).left("they are yours to put back"),
                );
            }
        }
    }
    out
}

/// What is in a folder for work in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Contents {
    /// No file at all.
    Nothing,
    /// Indexes and the like.
    Own,
    /// Files of a worktree, which are moved in folders called `files`.
    Files,
}

fn contents(dir: &Path) -> Contents {
    let mut found = Contents::Nothing;
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let below = match entry.file_type() {
            Ok(kind) if kind.is_dir() => match contents(&entry.path()) {
                Contents::Own if entry.file_name() == "files" => Contents::Files,
                other => other,
            },
            _ => Contents::Own,
        };
        found = found.max(below);
    }
    found
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
