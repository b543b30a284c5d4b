//! Private folders and atomic file replacement: a reader, or a power cut, sees the old file or the new one.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use proq_base::fail_points;

use super::id::new_id;
use super::store_names::STORE_DIR;
use crate::Error;

/// Creates a folder that only its owner can read, because logs, prompts and parked files are private. Missing
/// parents are created too, but never the repository. A process that still writes after the repository was
/// removed gets an error.
pub fn create_private_dir(dir: &Path) -> Result<(), Error> {
    use std::os::unix::fs::DirBuilderExt;
    let create = || std::fs::DirBuilder::new().mode(0o700).create(dir);
    let created = match create() {
        Err(e)
            if e.kind() == std::io::ErrorKind::NotFound && dir.file_name() != Some(OsStr::new(STORE_DIR)) =>
        {
            if let Some(parent) = dir.parent() {
                create_private_dir(parent)?;
            }
            create()
        }
        created => created,
    };
    match created {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        created => created.map_err(Error::io("create", dir)),
    }
}

/// Writes `bytes` to a temporary file next to `path`, syncs it and renames it into place. Creates the parent
/// folder if it is missing.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    create_private_dir(path.parent().unwrap_or(Path::new(".")))?;
    write_in_existing_dir(path, bytes)
}

/// Replaces the file at `path` durably, like [`write()`], but fails where its parent folder is missing. A
/// folder that was moved away concurrently is therefore not created again.
pub fn write_in_existing_dir(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, bytes)?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// Replaces a file like [`write()`], without syncing its folder. The new name becomes durable with the last
/// file of the folder; until then a power cut may leave the old file.
pub fn write_without_dir_sync(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    create_private_dir(path.parent().unwrap_or(Path::new(".")))?;
    replace(path, bytes)
}

/// Writes and syncs a temporary file, and renames it to `path`. Neither creates nor syncs the parent folder.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temp_path = parent.join(format!(".{name}.{}", new_id()));
    let written = File::create_new(&temp_path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(e) = written {
        drop(std::fs::remove_file(&temp_path));
        return Err(Error::io("write", path)(e));
    }
    fail_points::hit("record.drafted");
    std::fs::rename(&temp_path, path).map_err(|e| {
        drop(std::fs::remove_file(&temp_path));
        Error::io("replace", path)(e)
    })
}

/// Replaces a file that can be regenerated, without any sync. A power cut may leave arbitrary contents, which
/// the readers detect.
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new("."));
    create_private_dir(parent)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temp_path = parent.join(format!(".{name}.{}", new_id()));
    let written = std::fs::write(&temp_path, bytes).and_then(|()| std::fs::rename(&temp_path, path));
    written.map_err(|e| {
        drop(std::fs::remove_file(&temp_path));
        Error::io("write", path)(e)
    })
}

/// Removes the temporary files that a killed writer of `path` left next to it. The caller must keep all other
/// writers of `path` out.
pub fn remove_temp_files_of(path: &Path) -> std::io::Result<()> {
    let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
    let Some(Ok(entries)) = path.parent().map(std::fs::read_dir) else { return Ok(()) };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Renames a file or folder to a name that must be free. Of two concurrent callers only the first succeeds,
/// on every file system.
pub fn rename_no_replace(from: &Path, to: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
            // Some file systems do not support a rename that refuses to replace. `link` refuses for files;
            // for folders, `rename` replaces only an empty folder.
            if from.is_dir() {
                return match to.symlink_metadata() {
                    Ok(_) => Err(std::io::ErrorKind::AlreadyExists.into()),
                    Err(_) => std::fs::rename(from, to),
                };
            }
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        Err(e) => Err(e.into()),
    }
}

/// Exchanges the names of two files in one step. Fails on file systems that do not support it.
pub fn exchange_files(first: &Path, second: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, first, CWD, second, RenameFlags::EXCHANGE)?)
}

/// Syncs a folder, so that the names in it are durable.
pub fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(Error::io("sync", dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::layout::Layout;
    use proq_base::lane_name::LaneName;

    /// Promise: operations/full-disk
    #[test]
    fn failed_write_leaves_no_temp_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("taken");
        std::fs::create_dir_all(path.join("full")).unwrap();
        assert!(write(&path, b"x").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        write(&dir.path().join("a"), b"1").unwrap();
        write(&dir.path().join("a"), b"2").unwrap();
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"2");
        assert!(write_in_existing_dir(&dir.path().join("gone/a"), b"3").is_err());
        write_in_existing_dir(&dir.path().join("a"), b"2").unwrap();
        write_without_dir_sync(&dir.path().join("a"), b"3").unwrap();
        assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"3");
        assert!(write_without_dir_sync(&path, b"x").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn private_dir_needs_existing_repository() {
        let dir = tempfile::tempdir().unwrap();
        let gone = Layout::new(&dir.path().join("gone/.git"));
        let lane = LaneName::parse("x").unwrap();
        assert!(create_private_dir(&gone.lane(&lane)).is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let there = Layout::new(dir.path());
        create_private_dir(&there.lane(&lane)).unwrap();
        create_private_dir(&there.lane(&lane)).unwrap();
        create_private_dir(&dir.path().join("a/b/c")).unwrap();
        assert!(there.lane(&lane).is_dir() && dir.path().join("a/b/c").is_dir());
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(create_private_dir(&dir.path().join("file")).is_err());
    }
}
