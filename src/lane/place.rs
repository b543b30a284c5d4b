//! Owns the folder that lanes' worktrees lie in: made once, and kept out of everybody's `git status` and `git add`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use super::{Error, Project};

/// Makes the folder. Called under the worktrees' lock.
pub(super) fn prepare(project: &Project) -> Result<(), Error> {
    let dir = project.lanes_dir();
    std::fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
    // Both, since a tracked `!*/` beats info/exclude, and `git clean -fdX` beats neither.
    let ignore = dir.join(".gitignore");
    if !ignore.exists() {
        std::fs::write(&ignore, "*\n").map_err(Error::io("write", &ignore))?;
    }
    let Some(main) = project.repo.main_worktree() else { return Ok(()) };
    let Ok(inside) = dir.strip_prefix(main) else { return Ok(()) };
    exclude(&project.repo.common_dir().join("info/exclude"), &format!("/{}/", inside.display()))
}

/// Adds a line to git's own exclude file, which is never tracked.
fn exclude(file: &Path, line: &str) -> Result<(), Error> {
    let old = std::fs::read(file).unwrap_or_default();
    if old.split(|b| *b == b'\n').any(|l| l.trim_ascii() == line.as_bytes()) {
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
        .and_then(|mut f| f.write_all(format!("{gap}{line}\n").as_bytes()))
        .map_err(Error::io("write", file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_added_once_and_never_glued_to_another() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("info/exclude");
        exclude(&file, "/x/").unwrap();
        std::fs::write(&file, "# mine\n*.o").unwrap();
        exclude(&file, "/x/").unwrap();
        exclude(&file, "/x/").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n*.o\n/x/\n");
    }
}
