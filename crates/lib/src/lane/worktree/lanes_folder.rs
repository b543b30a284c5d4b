//! Folder for lanes' worktrees in the main checkout: created once, and excluded from `git status` and `git
//! add`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use proq_git::Repo;

use crate::lane::{Error, Project};

/// File in the folder that excludes everything in it, and the line for that.
const IGNORE_FILE: &str = ".gitignore";
const IGNORE_ALL_LINE: &[u8] = b"*";

/// Returns the files that should exclude the lanes' folder from `git status` and lack the line for it. Empty
/// while the folder is empty.
pub(crate) fn files_missing_exclude(project: &Project) -> Vec<PathBuf> {
    let dir = project.lanes_dir();
    let mut out = Vec::new();
    let has_lanes = |mut entries: std::fs::ReadDir| {
        entries.any(|entry| entry.is_ok_and(|e| e.file_name() != IGNORE_FILE))
    };
    if !std::fs::read_dir(&dir).is_ok_and(has_lanes) {
        return out;
    }
    let ignore = dir.join(IGNORE_FILE);
    if !has_line(&std::fs::read(&ignore).unwrap_or_default(), IGNORE_ALL_LINE) {
        out.push(ignore);
    }
    if let Some(relative) = project.repo.main_worktree().and_then(|main| dir.strip_prefix(main).ok()) {
        let file = project.repo.common_dir().join("info/exclude");
        let text = std::fs::read(&file).unwrap_or_default();
        if !has_line(&text, exclude_line(relative).as_bytes()) {
            out.push(file);
        }
    }
    out
}

/// Returns the exclude line for a folder.
fn exclude_line(relative: &Path) -> String {
    format!("/{}/", relative.display())
}

/// Returns whether a line of `text`, without white space around it, is `line`.
fn has_line(text: &[u8], line: &[u8]) -> bool {
    text.split(|b| *b == b'\n').any(|l| l.trim_ascii() == line)
}

/// Creates the folder that will contain the worktree `lane`: the lanes' folder or the one the user
/// configured. The lock on worktrees is held.
pub(crate) fn create_parent_folder(project: &Project, lane: &Path) -> Result<(), Error> {
    match lane.parent() {
        Some(dir) if dir != project.lanes_dir() => {
            std::fs::create_dir_all(dir).map_err(Error::io("create", dir))
        }
        _ => create_lanes_folder(project),
    }
}

/// Creates the lanes' folder with its exclude lines. The lock on worktrees is held.
pub(crate) fn create_lanes_folder(project: &Project) -> Result<(), Error> {
    let dir = project.lanes_dir();
    // Both lines are needed: a tracked `!*/` overrides info/exclude, and `git clean -fdX` ignores both. They
    // are written first, so that git status never lists the folder.
    if let Some(relative) = project.repo.main_worktree().and_then(|main| dir.strip_prefix(main).ok()) {
        add_to_info_exclude(&project.repo, exclude_line(relative).as_bytes())?;
    }
    append_missing_line(&dir.join(IGNORE_FILE), IGNORE_ALL_LINE)
}

/// Excludes files that agents leave behind from `git status` and `git add` in all worktrees, with lines in
/// `info/exclude`.
///
/// # Errors
/// Fails when that file cannot be written.
pub(crate) fn exclude_patterns(repo: &Repo, patterns: &[String]) -> Result<(), Error> {
    patterns.iter().try_for_each(|pattern| add_to_info_exclude(repo, pattern.as_bytes()))
}

/// Adds a line to `info/exclude`, which is one file for all worktrees and all users of the repository.
pub(crate) fn add_to_info_exclude(repo: &Repo, line: &[u8]) -> Result<(), Error> {
    let folder = repo.common_dir().join("info");
    let file = folder.join("exclude");
    let is_new = !file.exists();
    append_missing_line(&file, line)?;
    if is_new {
        // Sharing may fail for a folder that another user created; its owner is the one to share it.
        drop(repo.share_permissions(&folder));
        repo.share_permissions(&file).map_err(Error::io("write", &file))?;
    }
    Ok(())
}

/// Appends a line to an exclude file if it is missing. The file and its folder are created if necessary.
fn append_missing_line(file: &Path, line: &[u8]) -> Result<(), Error> {
    let text = std::fs::read(file).unwrap_or_default();
    if has_line(&text, line) {
        return Ok(());
    }
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    }
    let separator = if text.is_empty() || text.ends_with(b"\n") { "" } else { "\n" };
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .and_then(|mut f| {
            f.write_all(&[separator.as_bytes(), line, b"\n"].concat())?;
            // The lanes outlive a power cut, so the exclude line has to as well.
            f.sync_all()
        })
        .map_err(Error::io("write", file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_missing_line_once_on_its_own_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("info/exclude");
        append_missing_line(&file, b"/x/").unwrap();
        std::fs::write(&file, "# mine\n*.o").unwrap();
        append_missing_line(&file, b"/x/").unwrap();
        append_missing_line(&file, b"/x/").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n*.o\n/x/\n");
    }
}
