//! Owns checking where things are kept: who may look, what the file system can do, room on the disk, what git ignores.

use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::repair::Repair;
use super::scene::{Scene, quoted};
use crate::lane::not_kept_out;
use crate::store::{free_space, try_out};

/// Less free space than this stops a landing sooner or later, and now.
const SCARCE: u64 = 1 << 30;
const NONE_LEFT: u64 = 100 << 20;

/// The folder `proq/`, its file system, and the lanes' folder.
pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    out.extend(access(scene));
    out.extend(abilities(scene));
    let mut seen = Vec::new();
    for dir in places(scene) {
        if dir.exists() && !seen.contains(&device(&dir)) {
            seen.push(device(&dir));
            out.extend(free_space(&dir).and_then(|free| space(&dir, free)));
        }
    }
    out.extend(ignored(scene));
    out.extend(clean(scene));
    out
}

/// The repository, and where lanes lie.
fn places(scene: &Scene<'_>) -> Vec<PathBuf> {
    let project = scene.project;
    let set = project.location().ok().map(|location| location.folder().to_owned());
    let lanes = scene.lanes.iter().filter_map(|lane| lane.path.parent()).map(Path::to_owned);
    [project.repo.common_dir().to_owned(), project.lanes_dir()].into_iter().chain(set).chain(lanes).collect()
}

fn device(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|meta| meta.dev())
}

fn access(scene: &Scene<'_>) -> Option<Finding> {
    let layout = scene.project.store.layout();
    let (found, root) = (layout.access()?, layout.root());
    let subject = root.display().to_string();
    if !found.mine {
        let message =
            format!("{} belongs to another user; what you do here may fail half-way", root.display());
        return Some(
            Finding::error("permissions", subject, message)
                .help(format!("sudo chown -R \"$USER\" {}", quoted(root)))
                .left("only its owner may change that"),
        );
    }
    if found.private {
        return None;
    }
    let message =
        format!("others may look into {}: prompts, logs, files that were set aside", root.display());
    Some(
        Finding::error("permissions", subject, message)
            .help(format!("chmod 700 {}", quoted(root)))
            .repair(Repair::ClosePrivate),
    )
}

fn abilities(scene: &Scene<'_>) -> Vec<Finding> {
    let root = scene.project.store.layout().root();
    let dir = if root.exists() { root } else { scene.project.repo.common_dir() };
    let subject = dir.display().to_string();
    let mut out = Vec::new();
    let found = match try_out(dir) {
        Ok(found) => found,
        Err(e) => {
            let message =
                format!("{} cannot be written to ({e}); lanes can be looked at, not changed", dir.display());
            return vec![Finding::warning("writable", subject, message)];
        }
    };
    let mut wrong = |check, what: &str| {
        let message = format!("the file system of {} {what}", dir.display());
        let found = Finding::error(check, subject.clone(), message);
        out.push(found.help("move the repository to a local disk").left("it is how that disk is mounted"));
    };
    if !found.locks {
        wrong("locks", "does not keep locks, so two commands at once may undo each other's work");
    }
    if !found.careful_rename {
        wrong("rename", "cannot rename without replacing, so a file made at the wrong moment may be lost");
    }
    if !found.hard_links {
        wrong(
            "hard-links",
            "has no hard links, which keep your files while a preview or landing changes them",
        );
    }
    if found.ignores_case {
        let message =
            "upper and lower case are the same here: names of files that differ in nothing else collide";
        out.push(Finding::info("case", subject.clone(), message));
    }
    if found.merges_accents {
        let message = "names with accents have two spellings here that are the same file";
        out.push(Finding::info("accents", subject, message));
    }
    out
}

fn space(dir: &Path, free: u64) -> Option<Finding> {
    let text = format!("{} MB are free on the disk of {}", free >> 20, dir.display());
    let subject = dir.display().to_string();
    let help = "git proq cleanup";
    match free {
        0..NONE_LEFT => {
            let message = format!("only {text}: commands will stop half-way and take back what they did");
            Some(
                Finding::error("disk-space", subject, message)
                    .help(help)
                    .left("what can go is for you to say"),
            )
        }
        NONE_LEFT..SCARCE => Some(Finding::warning("disk-space", subject, format!("only {text}")).help(help)),
        SCARCE.. => None,
    }
}

fn ignored(scene: &Scene<'_>) -> Vec<Finding> {
    let missing = not_kept_out(scene.project);
    let found = missing.into_iter().map(|file| {
        let message =
            format!("{} does not keep the lanes' folder out of git status and git add", file.display());
        Finding::error("ignored", file.display().to_string(), message)
            .help("git proq doctor --fix")
            .repair(Repair::KeepOut)
    });
    found.collect()
}

fn clean(scene: &Scene<'_>) -> Option<Finding> {
    let main = scene.project.repo.main_worktree()?;
    let inside = scene.lanes.iter().filter(|lane| lane.path.starts_with(main)).count();
    if inside == 0 {
        return None;
    }
    let message =
        "`git clean -ffdx` in the main checkout would delete the lanes in it; `git clean -fdx` does not";
    Some(Finding::info("clean", ".proq-worktrees", message))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity;
    use super::*;

    #[test]
    fn little_room_is_a_warning_and_none_an_error() {
        let of = |free| space(Path::new("/x"), free).map(|found| found.severity);
        assert_eq!(of(2 << 30), None);
        assert_eq!(of(500 << 20), Some(Severity::Warning));
        assert_eq!(of(99 << 20), Some(Severity::Error));
        assert_eq!(of(0), Some(Severity::Error));
    }
}
