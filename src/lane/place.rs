//! Owns the folder in the main checkout that lanes' worktrees lie in: made once, and kept out of everybody's `git status` and `git add`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Error, Project};

/// Files that should keep the lanes' folder out of `git status` and do not; none while there is no such folder.
pub(crate) fn not_kept_out(project: &Project) -> Vec<PathBuf> {
    let dir = project.lanes_dir();
    let mut out = Vec::new();
    if !dir.exists() {
        return out;
    }
    let ignore = dir.join(".gitignore");
    if !ignore.exists() {
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
    std::fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
    // Both, since a tracked `!*/` beats info/exclude, and `git clean -fdX` beats neither.
    let ignore = dir.join(".gitignore");
    if !ignore.exists() {
        std::fs::write(&ignore, "*\n").map_err(Error::io("write", &ignore))?;
    }
    let Some(main) = project.repo.main_worktree() else { return Ok(()) };
    let Ok(inside) = dir.strip_prefix(main) else { return Ok(()) };
    exclude(&project.repo.common_dir().join("info/exclude"), line_for(inside).as_bytes())
}

/// Adds a line to git's own exclude file, which is never tracked.
pub(super) fn exclude(file: &Path, line: &[u8]) -> Result<(), Error> {
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
        .and_then(|mut f| f.write_all(&[gap.as_bytes(), line, b"\n"].concat()))
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
