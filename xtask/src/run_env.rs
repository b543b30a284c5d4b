//! What all tasks start from: the program under test, and a folder in memory where possible.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::copy;

/// Returns the program under test: the named one, or this checkout's, built now.
pub(crate) fn build_program(named: Option<&Path>, release: bool) -> io::Result<PathBuf> {
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

/// Creates a folder named `kind` and this process's number. Folders of exited processes are removed if their
/// name starts with `removable_prefix`.
pub(crate) fn create_folder(kind: &str, removable_prefix: &str) -> io::Result<PathBuf> {
    let create_in = |above: &Path| {
        let folder = above.join(format!("{kind}{}", std::process::id()));
        std::fs::create_dir_all(&folder).map(|()| folder)
    };
    let memory = Path::new("/dev/shm");
    let folder = create_in(memory).or_else(|_| create_in(&std::env::temp_dir()))?;
    for entry in std::fs::read_dir(folder.parent().unwrap_or(memory))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let has_exited = |pid: &str| !Path::new("/proc").join(pid).exists();
        if Path::new("/proc/self").exists() && name.strip_prefix(removable_prefix).is_some_and(has_exited) {
            copy::remove(&entry.path())?;
        }
    }
    Ok(folder)
}
