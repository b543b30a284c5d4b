//! Resolution of paths against a lane's folder, through links and `..`, to recognize paths outside the lane.

use std::path::{Component, Path, PathBuf};

/// Returns `path` relative to the canonical folder `dir`, with links and `..` resolved; none when it leads
/// out of the folder or through a dangling link. The last components of the path need not exist.
pub(super) fn resolve_relative_within(dir: &Path, path: &Path) -> Option<PathBuf> {
    let joined = dir.join(path);
    let mut existing = joined.as_path();
    let mut missing = Vec::new();
    let resolved = loop {
        if let Ok(canonical) = existing.canonicalize() {
            break canonical;
        }
        // A dangling link leads elsewhere as soon as its target exists.
        if existing.symlink_metadata().is_ok() {
            return None;
        }
        match existing.components().next_back()? {
            Component::Normal(name) => missing.push(name),
            Component::CurDir => {}
            // The parent of a folder that does not exist is unknown.
            _ => return None,
        }
        existing = existing.parent()?;
    };
    let full_path = missing.into_iter().rev().fold(resolved, |path, name| path.join(name));
    full_path.strip_prefix(dir).ok().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: agent-requests/permission-requests
    #[test]
    fn refuses_paths_that_leave_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let lane = root.join("lane");
        std::fs::create_dir_all(lane.join("sub")).unwrap();
        for (link, to) in [("out", ".."), ("dangling", "/nowhere/at/all"), ("own", "sub")] {
            std::os::unix::fs::symlink(to, lane.join(link)).unwrap();
        }
        let inside = |path: &str| {
            resolve_relative_within(&lane, Path::new(path)).map(|p| p.to_string_lossy().into_owned())
        };
        assert_eq!(inside("new/file").as_deref(), Some("new/file"));
        assert_eq!(inside(&lane.join("sub/x").display().to_string()).as_deref(), Some("sub/x"));
        assert_eq!(inside("sub/../x").as_deref(), Some("x"));
        assert_eq!(inside("own/x").as_deref(), Some("sub/x"));
        assert_eq!(inside(".").as_deref(), Some(""));
        for out in [
            "..",
            "../lane2/x",
            "/etc/passwd",
            "out/x",
            "dangling",
            "dangling/x",
            "new/../../x",
            "sub/../../x",
        ] {
            assert_eq!(inside(out), None, "{out}");
        }
    }
}
