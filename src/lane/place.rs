//! Owns the folder in the main checkout that lanes' worktrees lie in: made once, and kept out of everybody's `git status` and `git add`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Error, Project};

/// What in the folder itself keeps all of it out, and the line for that.
const IGNORE: &str = ".gitignore";
const ALL: &[u8] = b"*";

/// Files that should keep the lanes' folder out of `git status` and do not; none while nothing is in it.
pub(crate) fn not_kept_out(project: &Project) -> Vec<PathBuf> {
    let dir = project.lanes_dir();
    let mut out = Vec::new();
    let lanes = |mut all: std::fs::ReadDir| all.any(|entry| entry.is_ok_and(|e| e.file_name() != IGNORE));
    if !std::fs::read_dir(&dir).is_ok_and(lanes) {
        return out;
    }
    let ignore = dir.join(IGNORE);
    if !has_line(&std::fs::read(&ignore).unwrap_or_default(), ALL) {
        out.push(ignore);
    }
    if let Some(inside) = project.repo.main_worktree().and_then(|main| dir.strip_prefix(main).ok()) {
        let file = project.repo.common_dir().join("info/exclude");
        let old = std::fs::read(&file).unwrap_or_default();
        if !has_line(&old, line_for(inside).as_bytes()) {
            out.push(file);
        }
    }
    out
}

/// The line that excludes a folder.
fn line_for(inside: &Path) -> String {
    format!("/{}/", inside.display())
}

fn has_line(text: &[u8], line: &[u8]) -> bool {
    text.split(|b| *b == b'\n').any(|l| l.trim_ascii() == line)
}

/// Makes the folder that a lane is to lie in: that one, or whichever else. Called under the worktrees' lock.
pub(super) fn prepare_for(project: &Project, lane: &Path) -> Result<(), Error> {
    match lane.parent() {
        Some(dir) if dir != project.lanes_dir() => {
            std::fs::create_dir_all(dir).map_err(Error::io("create", dir))
        }
        _ => prepare(project),
    }
}

/// Makes the folder. Called under the worktrees' lock.
pub(crate) fn prepare(project: &Project) -> Result<(), Error> {
    let dir = project.lanes_dir();
    // Both, since a tracked `!*/` beats info/exclude, and `git clean -fdX` beats neither. Nothing is to be seen of it at any moment.
    if let Some(inside) = project.repo.main_worktree().and_then(|main| dir.strip_prefix(main).ok()) {
        exclude_everywhere(project, line_for(inside).as_bytes())?;
    }
    exclude(&dir.join(IGNORE), ALL)
}

/// Keeps files that agents leave out of `git status` and `git add` in all worktrees, by lines of `info/exclude`.
///
/// # Errors
/// When that file cannot be written.
pub(crate) fn exclude_patterns(project: &Project, patterns: &[String]) -> Result<(), Error> {
    patterns.iter().try_for_each(|pattern| exclude_everywhere(project, pattern.as_bytes()))
}

/// Adds a line to `info/exclude`, which is one file for all worktrees and all users of the repository.
pub(super) fn exclude_everywhere(project: &Project, line: &[u8]) -> Result<(), Error> {
    let folder = project.repo.common_dir().join("info");
    let file = folder.join("exclude");
    let is_new = !file.exists();
    exclude(&file, line)?;
    if is_new {
        // A folder that somebody else made is theirs to share.
        drop(project.repo.share(&folder));
        project.repo.share(&file).map_err(Error::io("write", &file))?;
    }
    Ok(())
}

/// Adds a line to a file of what is excluded, which is made with its folder where it is missing.
fn exclude(file: &Path, line: &[u8]) -> Result<(), Error> {
    let old = std::fs::read(file).unwrap_or_default();
    if has_line(&old, line) {
        return Ok(());
    }
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    }
    let gap = if old.is_empty() || old.ends_with(b"\n") { "" } else { "\n" };
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .and_then(|mut f| {
            f.write_all(&[gap.as_bytes(), line, b"\n"].concat())?;
            // The lanes outlive a power cut, so this does too.
            f.sync_all()
        })
        .map_err(Error::io("write", file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_added_once_and_never_glued_to_another() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("info/exclude");
        exclude(&file, b"/x/").unwrap();
        std::fs::write(&file, "# mine\n*.o").unwrap();
        exclude(&file, b"/x/").unwrap();
        exclude(&file, b"/x/").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n*.o\n/x/\n");
    }
}
