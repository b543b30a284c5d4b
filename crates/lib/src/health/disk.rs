//! Health checks of the storage: access rights, features of the file system, free space, and ignore rules.

use std::path::{Path, PathBuf};

use proq_base::explain::shell_quote_path as quoted;
use proq_store::repository::probe::{free_space, probe_file_system};

use super::check_context::CheckContext;
use super::finding::Finding;
use super::repair::Repair;
use crate::lane::worktree::lanes_folder::files_missing_exclude;

/// Free space in bytes below which a landing will fail sooner or later.
const LOW_SPACE_BYTES: u64 = 1 << 30;
/// Free space in bytes below which commands fail now.
const CRITICAL_SPACE_BYTES: u64 = 100 << 20;

/// Checks git-proq's folder `proq/`, its file system, the free space, and the ignore rules for the lanes'
/// folders.
pub(super) fn check(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    out.extend(check_access(context));
    out.extend(check_file_system(context));
    out.extend(check_all_free_space(context));
    out.extend(check_lanes_folder_ignored(context));
    out.extend(git_clean_note(context));
    out
}

/// Checks the free space of each disk that git-proq writes to.
pub(super) fn check_all_free_space(context: &CheckContext<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    let mut checked_devices = Vec::new();
    for dir in storage_folders(context) {
        if dir.exists() && !checked_devices.contains(&device_id(&dir)) {
            checked_devices.push(device_id(&dir));
            out.extend(free_space(&dir).and_then(|free| check_free_space(&dir, free)));
        }
    }
    out
}

/// Returns the folders to check for free space: the repository, and every folder that contains lanes.
fn storage_folders(context: &CheckContext<'_>) -> Vec<PathBuf> {
    let project = context.project;
    let configured = project.location().ok().map(|location| location.folder().to_owned());
    let lanes = context.lanes.iter().filter_map(|lane| lane.path.parent()).map(Path::to_owned);
    [project.repo.common_dir().to_owned(), project.lanes_dir()]
        .into_iter()
        .chain(configured)
        .chain(lanes)
        .collect()
}

/// Returns the id of the disk that a path is on; none when it cannot be read.
fn device_id(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|meta| meta.dev())
}

/// Checks that the folder `proq/` belongs to the user and that nobody else can read it.
fn check_access(context: &CheckContext<'_>) -> Option<Finding> {
    let layout = context.project.store.layout();
    let (found, root) = (layout.store_access()?, layout.root());
    let subject = root.display().to_string();
    if !found.is_owned {
        let message =
            format!("{} belongs to another user; what you do here may fail half-way", root.display());
        return Some(
            Finding::error("permissions", subject, message)
                .with_help(format!("sudo chown -R \"$USER\" {}", quoted(root)))
                .with_left_reason("only its owner may change that"),
        );
    }
    if found.is_private {
        return None;
    }
    let message = format!("other users can read {}: prompts, logs, saved files", root.display());
    Some(
        Finding::error("permissions", subject, message)
            .with_help(format!("chmod 700 {}", quoted(root)))
            .with_repair(Repair::RestrictToOwner),
    )
}

/// Returns whether this user may not list a folder, or not even reach it.
fn is_permission_denied(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Checks that the store's file system is writable and has the features that git-proq needs.
fn check_file_system(context: &CheckContext<'_>) -> Vec<Finding> {
    let root = context.project.store.layout().root();
    let dir = if root.exists() { root } else { context.project.repo.common_dir() };
    let subject = dir.display().to_string();
    let mut out = Vec::new();
    let features = match probe_file_system(dir) {
        Ok(found) => found,
        Err(e) => {
            let can_read = !is_permission_denied(&context.project.store.layout().lanes());
            let effect = if can_read {
                "lanes can be read, not changed"
            } else {
                "lanes can be neither read nor changed"
            };
            let message = format!("{} is not writable ({e}); {effect}", dir.display());
            return vec![Finding::warning("writable", subject, message)];
        }
    };
    let mut report = |check, problem: &str| {
        let message = format!("the file system of {} {problem}", dir.display());
        let found = Finding::error(check, subject.clone(), message);
        out.push(
            found
                .with_help("move the repository to a local disk")
                .with_left_reason("it is how that disk is mounted"),
        );
    };
    if !features.locks {
        report("locks", "does not keep locks, so two commands at once may undo each other's work");
    }
    if !features.rename_no_replace {
        report(
            "rename",
            "cannot rename without replacing, so a file created at the wrong moment may be lost",
        );
    }
    if !features.hard_links {
        report(
            "hard-links",
            "has no hard links, which keep your files while a preview or landing changes them",
        );
    }
    if features.ignores_case {
        let message =
            "upper and lower case are the same here: names of files that differ in nothing else collide";
        out.push(Finding::info("case", subject.clone(), message));
    }
    if features.normalizes_accents {
        let message = "names with accents have two spellings here that are the same file";
        out.push(Finding::info("accents", subject, message));
    }
    out
}

/// Checks the free space of the disk of `dir`, in bytes.
fn check_free_space(dir: &Path, free: u64) -> Option<Finding> {
    let text = format!("{} MB are free on the disk of {}", free >> 20, dir.display());
    let subject = dir.display().to_string();
    let help = "git proq cleanup";
    match free {
        0..CRITICAL_SPACE_BYTES => {
            let message = format!("only {text}: commands will fail and undo their changes");
            Some(
                Finding::error("disk-space", subject, message)
                    .with_help(help)
                    .with_left_reason("what can go is for you to say"),
            )
        }
        CRITICAL_SPACE_BYTES..LOW_SPACE_BYTES => {
            Some(Finding::warning("disk-space", subject, format!("only {text}")).with_help(help))
        }
        LOW_SPACE_BYTES.. => None,
    }
}

/// Finds ignore files, of the repository and in the lanes' folder, without the line that keeps that folder out of
/// `git status`.
fn check_lanes_folder_ignored(context: &CheckContext<'_>) -> Vec<Finding> {
    let missing = files_missing_exclude(context.project);
    let found = missing.into_iter().map(|file| {
        let message =
            format!("{} does not keep the lanes' folder out of git status and git add", file.display());
        Finding::error("ignored", file.display().to_string(), message)
            .with_help("git proq doctor --fix")
            .with_repair(Repair::IgnoreLanesFolder)
    });
    found.collect()
}

/// Notes that `git clean -ffdx` would delete the lanes inside the main checkout; none without such lanes.
fn git_clean_note(context: &CheckContext<'_>) -> Option<Finding> {
    let main = context.project.repo.main_worktree()?;
    let lanes_inside = context.lanes.iter().filter(|lane| lane.path.starts_with(main)).count();
    if lanes_inside == 0 {
        return None;
    }
    let message =
        "`git clean -ffdx` in the main checkout would delete the lanes in it; `git clean -fdx` does not";
    Some(Finding::info("clean", ".proq-worktrees", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::finding::Severity;

    #[test]
    fn low_space_is_warning_and_almost_none_is_error() {
        let severity_of = |free| check_free_space(Path::new("/x"), free).map(|found| found.severity);
        assert_eq!(severity_of(2 << 30), None);
        assert_eq!(severity_of(500 << 20), Some(Severity::Warning));
        assert_eq!(severity_of(99 << 20), Some(Severity::Error));
        assert_eq!(severity_of(0), Some(Severity::Error));
    }
}
