//! Owns where tasks make their repositories: in memory where that can be written to, else where temporary files go.

use std::io;
use std::path::{Path, PathBuf};

use crate::copy;

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
