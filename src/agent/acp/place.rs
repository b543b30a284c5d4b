//! Owns whether a file lies in a lane, whatever its path is made of.

use std::path::{Component, Path, PathBuf};

/// Where `path` leads, from the folder `dir` on which has to be one of the file system's own names: relative to it if it lies
/// in there. Links are followed as far as there is anything.
pub(super) fn within(dir: &Path, path: &Path) -> Option<PathBuf> {
    let asked = dir.join(path);
    let mut there = asked.as_path();
    let mut missing = Vec::new();
    let found = loop {
        if let Ok(found) = there.canonicalize() {
            break found;
        }
        // A link to nowhere would lead somewhere once there is something.
        if there.symlink_metadata().is_ok() {
            return None;
        }
        match there.components().next_back()? {
            Component::Normal(name) => missing.push(name),
            Component::CurDir => {}
            // What is above a folder that is not there yet is not known.
            _ => return None,
        }
        there = there.parent()?;
    };
    let whole = missing.into_iter().rev().fold(found, |path, name| path.join(name));
    whole.strip_prefix(dir).ok().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_out_is_outside() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let lane = root.join("lane");
        std::fs::create_dir_all(lane.join("sub")).unwrap();
        for (link, to) in [("out", ".."), ("dangling", "/nowhere/at/all"), ("own", "sub")] {
            std::os::unix::fs::symlink(to, lane.join(link)).unwrap();
        }
        let inside = |path: &str| within(&lane, Path::new(path)).map(|p| p.to_string_lossy().into_owned());
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
