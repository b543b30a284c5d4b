//! Owns what all tasks start from: the program under test, and a folder in memory where that can be had.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::copy;

/// The program under test: the one that was named, or this checkout's, built now.
pub(crate) fn program(named: Option<&Path>, release: bool) -> io::Result<PathBuf> {
    if let Some(path) = named {
        return path.canonicalize();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--locked"]).args(release.then_some("--release")).current_dir(root);
    if !build.status()?.success() {
        return Err(io::Error::other("git-proq could not be built"));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    target.join(if release { "release" } else { "debug" }).join("git-proq").canonicalize()
}

/// A new folder, `kind` with this process's number behind it. Those of processes that are gone are removed, if their name
/// begins with `swept`.
pub(crate) fn folder(kind: &str, swept: &str) -> io::Result<PathBuf> {
    let make = |above: &Path| {
        let folder = above.join(format!("{kind}{}", std::process::id()));
        std::fs::create_dir_all(&folder).map(|()| folder)
    };
    let memory = Path::new("/dev/shm");
    let folder = make(memory).or_else(|_| make(&std::env::temp_dir()))?;
    for entry in std::fs::read_dir(folder.parent().unwrap_or(memory))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let dead = |pid: &str| !Path::new("/proc").join(pid).exists();
        if Path::new("/proc/self").exists() && name.strip_prefix(swept).is_some_and(dead) {
            copy::remove(&entry.path())?;
        }
    }
    Ok(folder)
}
